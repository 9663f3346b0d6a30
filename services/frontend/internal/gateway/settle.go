package gateway

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/batcher"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// How soon an append of unknown outcome is repeated; more seldom as it goes on.
const settleFirst, settleLast = 100 * time.Millisecond, time.Second

// settle repeats a message of unknown outcome, the very same one with the same
// id, until the log tells. Only an acknowledgement settles it: a refusal of the
// repeat says nothing about the first try. Each submission waits until its own
// deadline and is then answered UNKNOWN.
func (a *appender) settle(msg natslog.Msg, message messageID, batch []*submission, sent time.Time) {
	for delay := settleFirst; ; delay = min(2*delay, settleLast) {
		batch = a.untilDeadline(batch, message)
		if len(batch) == 0 {
			return
		}
		sleep(a.g.base, delay, batch)
		if a.g.base.Err() != nil {
			continue
		}
		seq, duplicate, err := a.append(msg)
		switch {
		case err != nil:
			a.g.metrics.appendsFailed.Add(1)
		case !duplicate:
			a.learn(batch[0].partition, batch, nil)
			a.g.storedAll(batch, 1, sent, time.Now())
			return
		case a.recognise(seq, batch, sent):
			return
		}
	}
}

// recognise looks at the message that the log has under the id of a batch. It is
// the batch itself, stored by an earlier try; or the repeat by token of one whose
// deadline came first, which took the id, and then the others were not stored
// and never will be: they begin anew. Ok is false where the log could not tell.
func (a *appender) recognise(seq uint64, batch []*submission, sent time.Time) (ok bool) {
	ctx, cancel := context.WithTimeout(a.g.base, a.g.Config.AppendTimeout)
	defer cancel()
	p := batch[0].partition
	holder, err := a.g.History.Message(ctx, p, seq)
	if err != nil || holder == nil { // forgotten: a repeat by token asks the owners
		return false
	}
	a.learn(p, batch, nil)
	messages := 1
	for _, s := range batch {
		if holds(holder, s.id(0)) {
			a.g.storedAll([]*submission{s}, messages, sent, time.Now())
			messages = 0 // count it once
			continue
		}
		a.place(s)
	}
	return true
}

// untilDeadline answers UNKNOWN to those whose time is over.
func (a *appender) untilDeadline(batch []*submission, message messageID) []*submission {
	now := time.Now()
	kept := batch[:0]
	for _, s := range batch {
		if a.g.base.Err() != nil || !now.Before(s.call.Deadline) {
			a.g.unknown(s, message)
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// sleep waits for d, for the first deadline of the batch, or for ctx.
func sleep(ctx context.Context, d time.Duration, batch []*submission) {
	for _, s := range batch {
		d = min(d, time.Until(s.call.Deadline))
	}
	pause(ctx, d)
}

// pause waits for d or for ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// noPartition is that of the key under which the requests of a domain wait that span
// tasklists.
const noPartition = -1

// placeSpanning sends s, which has several shares, in its turn. An atomic batch costs the log
// as much as dozens of messages, and all that are in flight stand before the appends of all
// others: so each domain has only so many in flight as a batcher has flushes.
func (a *appender) placeSpanning(s *submission) {
	key := destinationKey{partition: noPartition, domain: s.call.Domain}
	a.mu.Lock()
	err := a.enqueue(s, key, batcher.Config{MaxItems: 1}, func(_ destinationKey, batch []*submission) {
		for _, s := range batch {
			a.flushSpanning(s)
		}
	})
	a.mu.Unlock()
	if err != nil {
		s.refuseFull()
	}
}

// flushSpanning appends a request that spans tasklists as one atomic batch (I2),
// alone. It answers s, whatever happens.
func (a *appender) flushSpanning(s *submission) {
	for {
		now := time.Now()
		if why := a.tooLate(s, now); why != "" {
			s.unavailable(why)
			return
		}
		a.mu.Lock()
		p, ok := a.balancer.Pick(now, s.tasks(), rand.Uint64())
		wait, full := a.patience(s, now), a.balancer.Full(now) > 0
		a.mu.Unlock()
		if !ok && full {
			s.refuseStorageFull()
			return
		}
		if !ok {
			pause(a.g.base, wait)
			continue
		}
		s.place(p)
		message := newMessageID()
		msgs, err := s.messages(message, a.g.logVersion())
		if err != nil {
			a.returned(s)
			s.refuse(err)
			return
		}
		err = a.appendAtomic(msgs)
		a.learn(p, []*submission{s}, err)
		switch {
		case err == nil:
			a.g.storedAll([]*submission{s}, len(msgs), now, time.Now())
			return
		case !errors.Is(err, natslog.ErrNotStored):
			go a.settleSpanning(msgs, message, s, now)
			return
		}
	}
}

// settleSpanning is settle for an atomic batch: that the log refuses it as a
// repetition says that it has it.
func (a *appender) settleSpanning(msgs []natslog.Msg, message messageID, s *submission, sent time.Time) {
	for delay := settleFirst; ; delay = min(2*delay, settleLast) {
		if len(a.untilDeadline([]*submission{s}, message)) == 0 {
			return
		}
		sleep(a.g.base, delay, []*submission{s})
		if a.g.base.Err() != nil {
			continue
		}
		if err := a.appendAtomic(msgs); err == nil || errors.Is(err, natslog.ErrDuplicate) {
			a.learn(s.partition, nil, nil)
			a.g.storedAll([]*submission{s}, len(msgs), sent, time.Now())
			return
		}
		a.g.metrics.appendsFailed.Add(1)
	}
}

// messages are the shares of s as messages of its partition. The first carries
// the id: the log refuses a batch whole for one message that it knows.
func (s *submission) messages(message messageID, version uint32) ([]natslog.Msg, error) {
	msgs := make([]natslog.Msg, len(s.accepted.Shares))
	for i, share := range s.accepted.Shares {
		data, err := (&logv1.Batch{Tasks: share.Records, LogVersion: version}).MarshalVT()
		if err != nil {
			return nil, fault.New(fault.Internal, "encode a batch: %v", err)
		}
		msgs[i] = natslog.Msg{Subject: topology.Submit(s.partition, share.Lane, s.call.Domain, share.Tasklist), Data: data}
	}
	msgs[0].MsgID = message.String()
	return msgs, nil
}

func (a *appender) appendAtomic(msgs []natslog.Msg) error {
	ctx, cancel := context.WithTimeout(a.g.base, a.g.Config.AppendTimeout)
	defer cancel()
	return a.g.History.AppendAtomic(ctx, msgs)
}
