package natslog

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/pace"
)

// Status codes and headers of the pull protocol.
const (
	headerStatus      = "Status"
	headerDescription = "Description"
	headerLastNumber  = "Nats-Last-Consumer"

	statusControl  = "100"
	statusNoMsgs   = "404"
	statusTimeout  = "408"
	statusConflict = "409"

	tooLarge       = "Message Size Exceeds MaxBytes"
	batchCompleted = "Batch Completed"
)

// receive returns the next record of the current consumer and keeps a request
// open. It fails with errBroken, errEnd, or because ctx ended.
func (c *cursor) receive(ctx context.Context) (Record, error) {
	for {
		msg, err := c.wait(ctx)
		if err != nil {
			return Record{}, err
		}
		if isControl(msg) {
			if err := c.control(msg); err != nil {
				return Record{}, err
			}
			continue
		}
		c.received(msg)
		meta, err := msg.Metadata()
		if err != nil {
			return Record{}, fmt.Errorf("%w: %w", errBroken, err)
		}
		if meta.Sequence.Consumer != c.delivered+1 {
			return Record{}, fmt.Errorf("%w: message %d came after %d", errBroken, meta.Sequence.Consumer, c.delivered)
		}
		c.delivered++
		if meta.Sequence.Stream < c.want {
			return Record{}, fmt.Errorf("%w: sequence %d came again", errBroken, meta.Sequence.Stream)
		}
		c.want = meta.Sequence.Stream + 1
		return Record{
			Seq: meta.Sequence.Stream, Time: meta.Timestamp, Subject: msg.Subject,
			Data: msg.Data, Header: msg.Header, Pending: meta.NumPending,
		}, nil
	}
}

// received counts a message of the open request.
func (c *cursor) received(msg *nats.Msg) {
	c.progress = true
	c.msgsLeft--
	c.bytesLeft -= msg.Size()
	if c.msgsLeft <= 0 || c.bytesLeft <= 0 {
		c.open = false // the next one asks for more once this one is handled
	}
}

// isControl reports whether a message is one of the server about the consumer.
func isControl(msg *nats.Msg) bool { return len(msg.Data) == 0 && msg.Header.Get(headerStatus) != "" }

// wait returns the next message of any kind.
func (c *cursor) wait(ctx context.Context) (*nats.Msg, error) {
	select {
	case msg := <-c.in:
		return msg, nil
	default:
	}
	c.silence.Reset(pace.Of(c.times * silenceMax))
	select {
	case msg := <-c.in:
		return msg, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case s := <-c.status:
		return nil, fmt.Errorf("%w: the connection became %v", errBroken, strings.ToLower(s.String()))
	case <-c.silence.C:
		return nil, fmt.Errorf("%w: the server is silent", errBroken)
	}
}

// control follows a status message of the server. Nil means: go on waiting.
func (c *cursor) control(msg *nats.Msg) error {
	status, text := msg.Header.Get(headerStatus), msg.Header.Get(headerDescription)
	if status == statusControl {
		// A heartbeat tells what the consumer sent last: a message lost between
		// servers, with none behind it, shows only here.
		last, err := strconv.ParseUint(msg.Header.Get(headerLastNumber), 10, 64)
		if err == nil && last > c.delivered && !c.acked {
			return fmt.Errorf("%w: message %d was lost", errBroken, last)
		}
		return nil
	}
	if msg.Subject != c.inbox+"."+strconv.Itoa(c.pull) || !c.open {
		return nil // of a request that is over anyway
	}
	switch {
	case status == statusNoMsgs && c.toEnd:
		c.open = false
		return errEnd
	case status == statusNoMsgs, status == statusTimeout:
	case status == statusConflict && text == batchCompleted:
	case status == statusConflict && text == tooLarge:
		if !c.progress {
			c.bytesMax *= 2 // stored when the server took larger messages than today
		}
	default:
		return fmt.Errorf("%w: %s %s", errBroken, status, text)
	}
	if err := c.request(); err != nil { // the one that was open has ended
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}
