package gateway

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// A repeat by token must not double what its first try stored, and must store
// what it did not. The first try was merged with others into one message, so the
// repeat cannot send that one again. It does three things instead, each of which
// closes what the one before leaves open (decision 0005):
//
//  1. ask the owners for its first task: known means stored, since a request is
//     whole. This also covers tasks whose message the log has forgotten.
//  2. append its own tasks under the id of the first try's message. Stored means
//     that the first try was not, nor ever will be: the id is taken.
//  3. refused as a repetition: look at the message that has the id. Its tasks
//     are there, or it is another request's repeat. Then append under an id of
//     its own, which its own repeats take too.

// repeatOf returns what carries out the repeat of s. Its error refuses s; on
// success s has been answered.
func (s *submission) repeatOf(g *Gateway, t token) func(ctx context.Context) (codec.Message, error) {
	return func(ctx context.Context) (codec.Message, error) {
		s.place(t.partition)
		began := time.Now()
		for delay := settleFirst; ; delay = min(2*delay, settleLast) {
			messages, err := g.repeat(ctx, s, t.message)
			if err == nil {
				g.storedAll([]*submission{s}, messages, began, time.Now())
				return nil, nil
			}
			if fault.CodeOf(err) == fault.Internal && errors.As(err, new(*fault.Error)) {
				return nil, err // a defect: asking again gains nothing
			}
			pause(ctx, delay)
			if ctx.Err() != nil {
				g.unknown(s, t.message)
				return nil, nil
			}
		}
	}
}

// repeatUntil is when a repeat ends, at its deadline or before the log forgets the message of the first try.
func (s *submission) repeatUntil() time.Time {
	left := s.at.Add(topology.DedupeWindow - repeatEnds).Sub(s.call.Now) // by the server's clock
	if forgotten := s.call.Received.Add(left); forgotten.Before(s.call.Deadline) {
		return forgotten
	}
	return s.call.Deadline
}

// repeat tries once. It returns how many messages it stored; an error leaves the
// outcome as unknown as it was.
func (g *Gateway) repeat(ctx context.Context, s *submission, first messageID) (messages int, err error) {
	if known, err := g.knows(ctx, s); known || err != nil {
		return 0, err
	}
	msg, err := s.message(first, g.logVersion())
	if err != nil {
		return 0, err
	}
	seq, duplicate, err := g.appender.append(msg)
	if err != nil || !duplicate {
		return 1, err
	}
	holder, err := g.History.Message(ctx, s.partition, seq)
	if err != nil {
		return 0, err
	}
	if holder == nil {
		// Finished and forgotten since we asked: then the owners know by now.
		if known, err := g.knows(ctx, s); known || err != nil {
			return 0, err
		}
	} else if holds(holder, s.id(0)) {
		return 0, nil
	}
	msg.MsgID = first.String() + "." + strconv.FormatUint(s.seed, 16)
	_, duplicate, err = g.appender.append(msg)
	if duplicate {
		return 0, err
	}
	return 1, err
}

// message is s as a message of its own in its partition.
func (s *submission) message(id messageID, version uint32) (natslog.Msg, error) {
	data, err := merged([]*submission{s}, version).MarshalVT()
	if err != nil {
		return natslog.Msg{}, fault.New(fault.Internal, "encode a batch: %v", err)
	}
	return natslog.Msg{Subject: subject(s.partition, s.destination()), MsgID: id.String(), Data: data}, nil
}

// knows asks the owners whether they know the first task of s.
func (g *Gateway) knows(ctx context.Context, s *submission) (bool, error) {
	task, err := g.lookUp(ctx, s.call.Domain, s.id(0), time.Time{})
	return task != nil, err
}

// holds tells whether a message of the log has this task.
func holds(data []byte, id ids.TaskID) bool {
	var b logv1.Batch
	if b.UnmarshalVT(data) != nil {
		return false
	}
	for _, r := range b.Tasks {
		if bytes.Equal(r.Id, id[:]) {
			return true
		}
	}
	return false
}
