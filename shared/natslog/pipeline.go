package natslog

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// PipelineMsgsMax is how many messages AppendEach takes.
const PipelineMsgsMax = 1000

// Appended is the outcome of one message of AppendEach; Err is as of Append.
type Appended struct {
	Seq       uint64
	Duplicate bool
	Err       error
}

// AppendEach stores every message on its own and waits for all of them together:
// the server takes them one after the other, in order, without the way there and
// back between two. At most PipelineMsgsMax are taken.
func AppendEach(ctx context.Context, nc *nats.Conn, msgs []Msg) []Appended {
	out := make([]Appended, len(msgs))
	fail := func(err error) []Appended {
		for i := range out {
			out[i].Err = fmt.Errorf("append to %s: %w: %w", msgs[i].Subject, ErrNotStored, err)
		}
		return out
	}
	if len(msgs) > PipelineMsgsMax {
		return fail(fmt.Errorf("%d messages, at most %d go together", len(msgs), PipelineMsgsMax))
	}
	if !nc.IsConnected() {
		return fail(natsrpc.ErrNotSent)
	}
	inbox := nc.NewInbox()
	answers := make(chan *nats.Msg, len(msgs)+1) // each is answered once
	sub, err := nc.ChanSubscribe(inbox+".*", answers)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only where the connection is closed
	waiting, end := natsrpc.WhileConnected(ctx, nc)
	defer end()
	left, open := 0, make([]bool, len(msgs))
	for i := range msgs {
		m := msgs[i].wire(0)
		m.Reply = inbox + "." + strconv.Itoa(i)
		if err := nc.PublishMsg(m); err != nil {
			out[i].Err = fmt.Errorf("append to %s: %w: %w", m.Subject, ErrNotStored, err)
			continue
		}
		open[i] = true
		left++
	}
	for left > 0 {
		select {
		case m := <-answers:
			i, err := strconv.Atoi(m.Subject[len(inbox)+1:])
			if err != nil || i < 0 || i >= len(out) || !open[i] {
				continue
			}
			open[i] = false
			left--
			out[i] = appended(m, msgs[i].Subject)
		case <-waiting.Done():
			for i := range out {
				if open[i] {
					out[i].Err = fmt.Errorf("append to %s: %w: %w", msgs[i].Subject, ErrOutcomeUnknown, context.Cause(waiting))
				}
			}
			return out
		}
	}
	return out
}

func appended(m *nats.Msg, subject string) (out Appended) {
	if len(m.Data) == 0 && m.Header.Get(headerStatus) == statusNoResponders {
		return Appended{Err: fmt.Errorf("append to %s: %w: %w", subject, ErrNotStored, nats.ErrNoResponders)}
	}
	var ack pubAck
	switch err := json.Unmarshal(m.Data, &ack); {
	case err != nil:
		out.Err = fmt.Errorf("append to %s: %w: the answer is not JetStream's: %w", subject, ErrOutcomeUnknown, err)
	case ack.Error != nil:
		out.Err = fmt.Errorf("append to %s: %w: %w", subject, ack.Error.class(), ack.Error)
	case ack.Sequence == 0:
		out.Err = fmt.Errorf("append to %s: %w: the answer has no sequence", subject, ErrOutcomeUnknown)
	default:
		out.Seq, out.Duplicate = ack.Sequence, ack.Duplicate
	}
	return out
}
