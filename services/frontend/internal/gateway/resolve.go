package gateway

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/direct"
)

// How soon an append of unknown outcome is repeated; more seldom as it goes on.
const resolveFirst, resolveLast = 100 * time.Millisecond, time.Second

// resolve repeats a message of unknown outcome, the very same one with the same
// id, until the log tells. Only an acknowledgement resolves it: a refusal of the
// repeat says nothing about the first try. Each submission waits until its own
// deadline and is then answered UNKNOWN.
func (a *appender) resolve(m message, sent time.Time) {
	for delay := backoff.New(resolveFirst, resolveLast); ; {
		m.batch = a.untilDeadline(m.batch)
		if len(m.batch) == 0 {
			return
		}
		sleep(a.g.base, delay.Next(), m.batch)
		if a.g.base.Err() != nil {
			continue
		}
		seq, _, err := a.append(m.batch[0].partition, m.Msg) // a duplicate is itself
		if err != nil {
			a.g.metrics.appendsFailed.Add(1)
			continue
		}
		a.learn(m.batch[0].partition, m.batch, nil)
		a.landed(m.batch, seq, sent)
		return
	}
}

// append stores one message in partition p.
func (a *appender) append(p int, msg natslog.Msg) (seq uint64, duplicate bool, err error) {
	a.g.placement.Began(p, 1)
	defer func() { a.g.placement.Ended(p, err) }()
	ctx, cancel := context.WithTimeout(a.g.base, a.g.Config.AppendTimeout)
	defer cancel()
	return a.g.History.Append(ctx, msg)
}

// landed answers submissions whose message the log has acknowledged. Those that it may have taken too late are
// void if it has, which its own time tells.
func (a *appender) landed(batch []*submission, seq uint64, sent time.Time) {
	acked := time.Now()
	inTime := make([]*submission, 0, len(batch))
	var late []*submission
	for _, s := range batch {
		s.held.seq = seq
		certain := s.inTime()
		a.g.polls.Stored(s.starts, seq, certain && acked.Sub(sent) < direct.HandedWithin)
		if certain {
			inTime = append(inTime, s)
		} else {
			late = append(late, s)
		}
	}
	a.g.storedAll(inTime, 1, sent, acked)
	if len(late) > 0 {
		go a.checkLate(late, seq, sent)
	}
}

// checkLate answers submissions that the log may have taken too late.
func (a *appender) checkLate(late []*submission, seq uint64, sent time.Time) {
	for delay := backoff.New(resolveFirst, resolveLast); ; {
		late = a.untilDeadline(late)
		for len(late) > 0 {
			ctx, cancel := context.WithTimeout(a.g.base, a.g.Config.AppendTimeout)
			stored, err := a.g.holds(ctx, late[0], seq)
			cancel()
			if err != nil {
				break
			}
			if stored {
				a.g.storedAll(late[:1:1], 0, sent, time.Now())
			} else {
				late[0].unavailable("the log took it too late")
			}
			late = late[1:]
		}
		if len(late) == 0 {
			return
		}
		sleep(a.g.base, delay.Next(), late)
	}
}

// untilDeadline answers UNKNOWN to those whose time is over.
func (a *appender) untilDeadline(batch []*submission) []*submission {
	now := time.Now()
	kept := batch[:0]
	for _, s := range batch {
		if a.g.base.Err() != nil || !now.Before(s.call.Deadline) {
			a.g.unknown(s)
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
	backoff.Sleep(ctx, d)
}
