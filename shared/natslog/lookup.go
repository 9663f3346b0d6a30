package natslog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// answerWithin is how long one request for stored messages waits for its answer. While
// a stream of a cluster has no leader, the servers drop such requests; a caller whose
// context has no deadline would wait forever.
const answerWithin = 5 * time.Second

// Record is a stored message.
type Record struct {
	Seq     uint64
	Time    time.Time
	Subject string
	Data    []byte
	// Header is nil where the message has none.
	Header nats.Header
	// Pending is how many matching messages lay behind this one when the server
	// sent it. LastForSubject leaves it 0.
	Pending uint64
}

// Query asks for messages of a stream. Exactly one of Seq, Since and LastFor says
// where; NextFor may go with the first two.
type Query struct {
	// Seq is the first sequence wanted; without Batch and NextFor, the only one.
	Seq uint64 `json:"seq,omitempty"`
	// Since wants what was stored then or later.
	Since *time.Time `json:"start_time,omitempty"`
	// LastFor wants the last message of a subject, and cannot have a Batch.
	LastFor string `json:"last_by_subj,omitempty"`
	// NextFor wants messages of this subject only. With a wildcard the server may
	// have to walk; an exact one is cheap.
	NextFor string `json:"next_by_subj,omitempty"`
	// Batch is how many are wanted at most; 0 = one, whose Answer has no More.
	Batch int `json:"batch,omitempty"`
	// Bare wants the data alone of the one message at Seq: its Record has no subject, time
	// and header. It spares the server and us to write and read these.
	Bare bool `json:"no_hdr,omitempty"`
	// BytesMax ends a batch with the message that reaches it.
	BytesMax int `json:"max_bytes,omitempty"`
}

// LastSeq is the sequence of the last message ever stored in the stream, as its
// leader says; 0 where there was none.
func LastSeq(ctx context.Context, js jetstream.JetStream, stream string) (uint64, error) {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return 0, fmt.Errorf("last sequence of %s: %w", stream, err)
	}
	return s.CachedInfo().State.LastSeq, nil
}

// LastForSubject is the last message of a subject (wildcards allowed), as the
// stream's leader says; nil where there is none.
func LastForSubject(ctx context.Context, js jetstream.JetStream, stream, subject string) (*Record, error) {
	return get(ctx, js, stream, Query{LastFor: subject})
}

// Get is the message at a sequence, as the stream's leader says; nil where it is gone.
func Get(ctx context.Context, js jetstream.JetStream, stream string, seq uint64) (*Record, error) {
	return get(ctx, js, stream, Query{Seq: seq})
}

// Next is the first message from seq on whose subject matches, as the stream's leader
// says; nil where there is none.
func Next(ctx context.Context, js jetstream.JetStream, stream, subject string, seq uint64) (*Record, error) {
	return get(ctx, js, stream, Query{Seq: seq, NextFor: subject})
}

// NextSince is the first message whose subject matches that was stored at a time or later, as the stream's leader says; nil if there is none.
func NextSince(ctx context.Context, js jetstream.JetStream, stream, subject string, at time.Time) (*Record, error) {
	return get(ctx, js, stream, Query{Since: &at, NextFor: subject})
}

// nextMatch is the first sequence from seq on whose subject matches one of the
// filters, as the stream's leader says; 0 where there is none.
func nextMatch(ctx context.Context, js jetstream.JetStream, stream string, filters []string, seq uint64) (uint64, error) {
	if len(filters) == 0 {
		filters = []string{">"}
	}
	first := uint64(0)
	for _, f := range filters {
		r, err := Next(ctx, js, stream, f, seq)
		if err != nil {
			return 0, err
		}
		if r != nil && (first == 0 || r.Seq < first) {
			first = r.Seq
		}
	}
	return first, nil
}

// getAnswer is the answer to STREAM.MSG.GET of the JetStream API. It is spelled
// out here because nats.go asks any replica as soon as a stream allows that.
type getAnswer struct {
	Message *struct {
		Subject string    `json:"subject"`
		Seq     uint64    `json:"seq"`
		Header  []byte    `json:"hdrs"`
		Data    []byte    `json:"data"`
		Time    time.Time `json:"time"`
	} `json:"message"`
	Error *apiError `json:"error"`
}

func get(ctx context.Context, js jetstream.JetStream, stream string, query Query) (*Record, error) {
	var a getAnswer
	err := ask(ctx, js, "STREAM.MSG.GET."+stream, query, &a)
	switch {
	case err != nil:
	case a.Error != nil && a.Error.ErrCode == codeMsgNotFound:
		return nil, nil
	case a.Error != nil && a.Error.ErrCode == codeStreamNotFound:
		err = jetstream.ErrStreamNotFound
	case a.Error != nil:
		err = a.Error
	case a.Message == nil:
		err = errors.New("an empty answer")
	}
	if err != nil {
		return nil, fmt.Errorf("read a message of %s: %w", stream, err)
	}
	r := &Record{Seq: a.Message.Seq, Time: a.Message.Time, Subject: a.Message.Subject, Data: a.Message.Data}
	if len(a.Message.Header) > 0 {
		if r.Header, err = nats.DecodeHeadersMsg(a.Message.Header); err != nil {
			return nil, fmt.Errorf("read message %d of %s: %w", r.Seq, stream, err)
		}
	}
	return r, nil
}

// SubjectsMost is how many subjects Subjects returns, at most.
const SubjectsMost = 100_000

// Subjects are the subjects of a stream that match a filter, as the stream's leader says: at most SubjectsMost. Last is the stream's last sequence that the
// leader knew; it may have changed since it said another one.
func Subjects(ctx context.Context, js jetstream.JetStream, stream, filter string) (all []string, last uint64, err error) {
	var a struct {
		State struct {
			Subjects map[string]uint64 `json:"subjects"`
			LastSeq  uint64            `json:"last_seq"`
		} `json:"state"`
		Error *apiError `json:"error"`
	}
	err = ask(ctx, js, "STREAM.INFO."+stream, map[string]string{"subjects_filter": filter}, &a)
	if err == nil && a.Error != nil {
		err = a.Error
	}
	if err != nil {
		return nil, 0, fmt.Errorf("list the subjects of %s: %w", stream, err)
	}
	return slices.Collect(maps.Keys(a.State.Subjects)), a.State.LastSeq, nil
}

// ask sends a request to the JetStream API, and reads the answer into what answer points at.
func ask(ctx context.Context, js jetstream.JetStream, endpoint string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	msg, err := natsrpc.Request(ctx, js.Conn(), &nats.Msg{Subject: apiSubject(js, endpoint), Data: body})
	if err != nil {
		return err
	}
	return json.Unmarshal(msg.Data, answer)
}

// apiSubject is a subject of the JetStream API of the account or domain js is for.
func apiSubject(js jetstream.JetStream, endpoint string) string {
	opts := js.Options()
	switch {
	case opts.Domain != "":
		return "$JS." + opts.Domain + ".API." + endpoint
	case opts.APIPrefix != "":
		return strings.TrimSuffix(opts.APIPrefix, ".") + "." + endpoint
	}
	return jetstream.DefaultAPIPrefix + endpoint
}
