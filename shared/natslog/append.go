package natslog

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// BatchMsgsMax is how many messages the server takes in one AppendAtomic.
const BatchMsgsMax = 1000

// Headers of atomic batches (ADR-50 of NATS).
const (
	headerBatchID     = "Nats-Batch-Id"
	headerBatchSeq    = "Nats-Batch-Sequence"
	headerBatchCommit = "Nats-Batch-Commit"
)

// Msg is a message to append.
type Msg struct {
	Subject string
	Data    []byte
	// Header may be nil. It is passed through and not changed.
	Header nats.Header
	// MsgID is the Nats-Msg-Id by which the server recognises a repetition; empty
	// means that repeating stores it again.
	MsgID string
}

// Over is m that is stored only if the last message of its subject is this one; 0 = there is none. Else ErrWrongLast.
func (m Msg) Over(seq uint64) Msg {
	return m.with(nats.Header{jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(seq, 10)}})
}

// OverOf is m that is stored only if the last message of another subject of its stream is this one; 0 = there is none. Else ErrWrongLast. A cluster refuses
// it, too, while another message that expects something of that subject is on its way.
func (m Msg) OverOf(subject string, seq uint64) Msg {
	return m.Over(seq).with(nats.Header{jetstream.ExpectedLastSubjSeqSubjHeader: {subject}})
}

// Only is m that takes the place of all of its subject before it.
func (m Msg) Only() Msg {
	return m.with(nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}})
}

// InPlace is Only, and the message is forgotten after a while.
func (m Msg) InPlace(kept time.Duration) Msg {
	return m.Only().with(nats.Header{jetstream.MsgTTLHeader: {strconv.FormatInt(max(int64(kept/time.Second), 1), 10)}})
}

// with is m with more headers. The header of m is not changed.
func (m Msg) with(more nats.Header) Msg {
	header := make(nats.Header, len(m.Header)+len(more))
	maps.Copy(header, m.Header)
	maps.Copy(header, more)
	m.Header = header
	return m
}

// Append stores m and waits until the server says so, or until ctx ends.
// Duplicate tells that a message with this MsgID was stored before; seq is then
// that one's.
//
// A repetition with an expected last sequence in its header may be refused with
// ErrWrongLast because of its own first try: a single server compares sequences
// before it looks for duplicates (clusters and AppendAtomic do the opposite).
func Append(ctx context.Context, nc *nats.Conn, m Msg) (seq uint64, duplicate bool, err error) {
	ack, err := publish(ctx, nc, m.wire(0))
	if err != nil {
		return 0, false, fmt.Errorf("append to %s: %w", m.Subject, err)
	}
	return ack.Sequence, ack.Duplicate, nil
}

// AppendAtomic stores all messages, one behind the other, or none. Their subjects
// must be of one stream, which allows atomic batches. LastSeq is the sequence of
// the last one. Each message may carry its own
// Nats-Expected-Last-Subject-Sequence; at most BatchMsgsMax messages are taken,
// and the server works on 50 batches of a stream at a time and refuses more.
func AppendAtomic(ctx context.Context, nc *nats.Conn, msgs []Msg) (lastSeq uint64, err error) {
	switch len(msgs) {
	case 0:
		return 0, fmt.Errorf("append a batch: %w: it is empty", ErrNotStored)
	case 1:
		seq, duplicate, err := Append(ctx, nc, msgs[0])
		if err == nil && duplicate {
			err = fmt.Errorf("append to %s: %w", msgs[0].Subject, ErrDuplicate)
		}
		return seq, err
	}
	// The check stands before the first publish: a connection that buffers while
	// it is down would send a batch's head long after it was given up.
	if !nc.IsConnected() {
		return 0, fmt.Errorf("append a batch to %s: %w: not connected", msgs[0].Subject, ErrNotStored)
	}
	id := rand.Text()
	last := len(msgs) - 1
	for i := range msgs[:last] {
		// No answer is asked for: whatever is wrong with one of these, the commit
		// is refused for it.
		if err := nc.PublishMsg(msgs[i].inBatch(id, i+1)); err != nil {
			return 0, fmt.Errorf("append a batch to %s: %w: %w", msgs[i].Subject, ErrNotStored, err)
		}
	}
	commit := msgs[last].inBatch(id, last+1)
	commit.Header[headerBatchCommit] = []string{"1"}
	ack, err := publish(ctx, nc, commit)
	if err != nil {
		return 0, fmt.Errorf("append a batch to %s: %w", msgs[last].Subject, err)
	}
	if !mayLieThere(msgs, ack.Sequence) {
		return 0, fmt.Errorf("append a batch to %s: %w: the server answered with sequence %d, so it shut down between the messages", msgs[last].Subject, ErrOutcomeUnknown, ack.Sequence)
	}
	return ack.Sequence, nil
}

// mayLieThere reports whether the last message of a stored batch can have this sequence: the whole batch lies behind each message that it expects to be
// a last one. A server that shuts down while it stores a batch may answer with the sequence of a message before the last one, and stores the rest
// after its restart (seen with nats-server 2.15.2).
func mayLieThere(msgs []Msg, lastSeq uint64) bool {
	for _, m := range msgs {
		for _, name := range []string{jetstream.ExpectedLastSubjSeqHeader, jetstream.ExpectedLastSeqHeader} {
			for _, value := range m.Header[name] {
				expected, err := strconv.ParseUint(value, 10, 64)
				if err == nil && lastSeq < expected+uint64(len(msgs)) {
					return false
				}
			}
		}
	}
	return true
}

// wire is m as it travels, with room for more headers. Its header is a copy.
func (m Msg) wire(room int) *nats.Msg {
	msg := &nats.Msg{Subject: m.Subject, Data: m.Data, Header: m.Header}
	if m.MsgID == "" && room == 0 {
		return msg
	}
	msg.Header = make(nats.Header, len(m.Header)+1+room)
	maps.Copy(msg.Header, m.Header)
	if m.MsgID != "" {
		msg.Header[nats.MsgIdHdr] = []string{m.MsgID}
	}
	return msg
}

func (m Msg) inBatch(id string, seq int) *nats.Msg {
	msg := m.wire(3)
	msg.Header[headerBatchID] = []string{id}
	msg.Header[headerBatchSeq] = []string{strconv.Itoa(seq)}
	return msg
}

// pubAck is the server's answer to an append.
type pubAck struct {
	Sequence  uint64    `json:"seq"`
	Duplicate bool      `json:"duplicate"`
	Error     *apiError `json:"error"`
}

func publish(ctx context.Context, nc *nats.Conn, msg *nats.Msg) (pubAck, error) {
	var ack pubAck
	if ctx.Err() != nil {
		return ack, fmt.Errorf("%w: %w", ErrNotStored, ctx.Err())
	}
	answer, err := natsrpc.Request(ctx, nc, msg)
	switch {
	case err == nil:
	case isOneOf(err, nats.ErrNoResponders, natsrpc.ErrNotSent),
		// The client's own refusals, as opposed to failures on the way.
		isOneOf(err, nats.ErrMaxPayload, nats.ErrBadSubject, nats.ErrHeadersNotSupported, nats.ErrInvalidConnection, nats.ErrBadHeaderMsg):
		return ack, fmt.Errorf("%w: %w", ErrNotStored, err)
	default:
		return ack, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return readAck(answer.Data)
}

// readAck reads the server's answer to an append.
func readAck(data []byte) (ack pubAck, err error) {
	switch err := json.Unmarshal(data, &ack); {
	case err != nil:
		return ack, fmt.Errorf("%w: the answer is not JetStream's: %w", ErrOutcomeUnknown, err)
	case ack.Error != nil:
		return ack, fmt.Errorf("%w: %w", ack.Error.class(), ack.Error)
	case ack.Sequence == 0:
		return ack, fmt.Errorf("%w: the answer has no sequence", ErrOutcomeUnknown)
	}
	return ack, nil
}
