package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

const (
	snapshotCall = "$JS.API.STREAM.SNAPSHOT."
	restoreCall  = "$JS.API.STREAM.RESTORE."
	// chunkBytes is how much goes in one message.
	chunkBytes = 256 << 10
	// answerTimeout bounds one answer of a server.
	answerTimeout = 30 * time.Second
	// interestEvery is how often the first chunk is sent, until the server that reads it is known everywhere.
	interestEvery = 50 * time.Millisecond
	// lastChunk is the status of the empty message behind the last chunk.
	lastChunk = "204"
)

// errInterrupted: chunks may be missing.
var errInterrupted = errors.New("the connection was interrupted meanwhile")

// state is the state of a stream, as JetStream spells it.
type state struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
}

// snapshot writes the snapshot of a stream to w, without its consumers: each owner makes its own again.
func snapshot(ctx context.Context, nc *nats.Conn, stream string, w io.Writer) (config json.RawMessage, at state, err error) {
	reconnects := nc.Stats().Reconnects
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, at, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	// No limit: the server keeps to a window of its own.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, at, err
	}
	var answer struct {
		Config json.RawMessage `json:"config"`
		State  state           `json:"state"`
	}
	asked := map[string]any{"deliver_subject": inbox, "no_consumers": true, "chunk_size": chunkBytes}
	if err := call(ctx, nc, snapshotCall+stream, asked, &answer); err != nil {
		return nil, at, err
	}
	for {
		msg, err := next(ctx, sub)
		if err != nil {
			return nil, at, err
		}
		if len(msg.Data) == 0 {
			if status := msg.Header.Get("Status"); status != "" && status != lastChunk {
				return nil, at, fmt.Errorf("the server ended the copy: %s %s", status, msg.Header.Get("Description"))
			}
			if nc.Stats().Reconnects != reconnects {
				return nil, at, errInterrupted
			}
			return answer.Config, answer.State, nil
		}
		if _, err := w.Write(msg.Data); err != nil {
			return nil, at, err
		}
		if msg.Reply != "" { // the last chunk has none
			if err := msg.Respond(nil); err != nil {
				return nil, at, err
			}
		}
	}
}

func next(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return sub.NextMsgWithContext(ctx)
}

// restore makes a stream of a snapshot.
func restore(ctx context.Context, nc *nats.Conn, stream string, config json.RawMessage, at state, r io.Reader) error {
	var answer struct {
		DeliverSubject string `json:"deliver_subject"`
	}
	if err := call(ctx, nc, restoreCall+stream, map[string]any{"config": config, "state": at}, &answer); err != nil {
		return err
	}
	chunk := make([]byte, chunkBytes)
	for first := true; ; first = false {
		n, err := io.ReadFull(r, chunk)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if failed := send(ctx, nc, answer.DeliverSubject, chunk[:n], first); failed != nil || n == 0 { // the empty chunk ends it
			return failed
		}
	}
}

// send sends a chunk and waits until the server has taken it.
func send(ctx context.Context, nc *nats.Conn, subject string, chunk []byte, first bool) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for {
		msg, err := nc.RequestWithContext(ctx, subject, chunk)
		if first && errors.Is(err, nats.ErrNoResponders) && backoff.Sleep(ctx, interestEvery) {
			continue
		}
		if err != nil {
			return err
		}
		if len(msg.Data) == 0 {
			return nil
		}
		return readAnswer(msg.Data, &struct{}{})
	}
}

// call is a request of the JetStream API.
func call(ctx context.Context, nc *nats.Conn, subject string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	msg, err := nc.RequestWithContext(ctx, subject, data)
	if err != nil {
		return err
	}
	return readAnswer(msg.Data, answer)
}

// readAnswer reads an answer of the JetStream API, or its error.
func readAnswer(data []byte, answer any) error {
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(data, &failed); err != nil {
		return err
	}
	if failed.Error != nil {
		return failed.Error
	}
	return json.Unmarshal(data, answer)
}
