package gateway

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// How soon an append of unknown outcome is repeated; more seldom as it goes on.
const settleFirst, settleLast = 100 * time.Millisecond, time.Second

// settle repeats a message of unknown outcome, the very same one with the same
// id, until the log tells. Only an acknowledgement settles it: a refusal of the
// repeat says nothing about the first try. Each submission waits until its own
// deadline and is then answered UNKNOWN.
func (a *appender) settle(m message, sent time.Time) {
	for delay := settleFirst; ; delay = min(2*delay, settleLast) {
		m.batch = a.untilDeadline(m.batch, m.id)
		if len(m.batch) == 0 {
			return
		}
		sleep(a.g.base, delay, m.batch)
		if a.g.base.Err() != nil {
			continue
		}
		seq, duplicate, err := a.append(m.Msg)
		switch {
		case err != nil:
			a.g.metrics.appendsFailed.Add(1)
		case !duplicate:
			a.learn(m.batch[0].partition, m.batch, nil)
			a.g.storedAll(m.batch, 1, sent, time.Now())
			return
		case a.recognise(seq, m.batch, sent):
			return
		}
	}
}

func (a *appender) append(msg natslog.Msg) (seq uint64, duplicate bool, err error) {
	ctx, cancel := context.WithTimeout(a.g.base, a.g.Config.AppendTimeout)
	defer cancel()
	return a.g.History.Append(ctx, msg)
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
