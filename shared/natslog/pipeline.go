package natslog

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// PipelineMsgsMax is how many messages Pipeline takes.
const PipelineMsgsMax = 1000

// Appended is the outcome of one message of Pipeline; Err is as of Append.
type Appended struct {
	Seq       uint64
	Duplicate bool
	Err       error
}

// AppendEach is Pipeline, and returns the outcomes all together.
func AppendEach(ctx context.Context, nc *nats.Conn, msgs []Msg) []Appended {
	out := make([]Appended, len(msgs))
	Pipeline(ctx, nc, msgs, func(i int, a Appended) { out[i] = a })
	return out
}

// Pipeline stores every message on its own: the server takes them one after the other, in
// order, without the way there and back between two. At most PipelineMsgsMax are taken. It calls outcome
// once for each, as soon as it is known, and returns when all are. Outcome should be quick:
// meanwhile no other outcome is taken in.
func Pipeline(ctx context.Context, nc *nats.Conn, msgs []Msg, outcome func(i int, a Appended)) {
	failed := func(i int, class, err error) {
		outcome(i, Appended{Err: fmt.Errorf("append to %s: %w: %w", msgs[i].Subject, class, err)})
	}
	fail := func(err error) {
		for i := range msgs {
			failed(i, ErrNotStored, err)
		}
	}
	if len(msgs) > PipelineMsgsMax {
		fail(fmt.Errorf("%d messages, at most %d go together", len(msgs), PipelineMsgsMax))
		return
	}
	if !nc.IsConnected() {
		fail(natsrpc.ErrNotSent)
		return
	}
	inbox := nc.NewInbox()
	answers := make(chan *nats.Msg, len(msgs)+1) // each is answered once
	sub, err := nc.ChanSubscribe(inbox+".*", answers)
	if err != nil {
		fail(err)
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only where the connection is closed
	waiting, end := natsrpc.WhileConnected(ctx, nc)
	defer end()
	left, open := 0, make([]bool, len(msgs))
	for i := range msgs {
		m := msgs[i].wire(0)
		m.Reply = inbox + "." + strconv.Itoa(i)
		if err := nc.PublishMsg(m); err != nil {
			failed(i, ErrNotStored, err)
			continue
		}
		open[i] = true
		left++
	}
	for left > 0 {
		select {
		case m := <-answers:
			i, err := strconv.Atoi(m.Subject[len(inbox)+1:])
			if err != nil || i < 0 || i >= len(open) || !open[i] {
				continue
			}
			open[i] = false
			left--
			outcome(i, appended(m, msgs[i].Subject))
		case <-waiting.Done():
			for i := range open {
				if open[i] {
					failed(i, ErrOutcomeUnknown, context.Cause(waiting))
				}
			}
			return
		}
	}
}

func appended(m *nats.Msg, subject string) Appended {
	if len(m.Data) == 0 && m.Header.Get(headerStatus) == statusNoResponders {
		return Appended{Err: fmt.Errorf("append to %s: %w: %w", subject, ErrNotStored, nats.ErrNoResponders)}
	}
	ack, err := readAck(m.Data)
	if err != nil {
		return Appended{Err: fmt.Errorf("append to %s: %w", subject, err)}
	}
	return Appended{Seq: ack.Sequence, Duplicate: ack.Duplicate}
}
