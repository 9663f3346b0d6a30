package intake

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/filing"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/direct"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/groupcommit"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/poll"

	core "github.com/yardmaster-io/yardmaster/services/frontend/internal/core/intake"
)

// flush appends one batch, as few messages as its priorities and the room for shared ones allow, and
// reports to each submission.
func (a *appender) flush(p int, batch []*submission) {
	now := time.Now()
	batch = a.dropLate(batch)
	if len(batch) == 0 {
		return
	}
	if !a.in.Placement.Healthy(p) { // failed while these waited
		a.placeAgain(batch)
		return
	}
	a.startDirectly(batch)
	messages, late := a.messages(p, batch)
	for _, s := range late {
		a.carry(s)
	}
	msgs := make([]natslog.Msg, len(messages))
	for i := range messages {
		msgs[i] = messages[i].Msg
	}
	ctx, cancel := context.WithTimeout(a.in.Run.Base(), a.in.AppendTimeout)
	defer cancel()
	urgent := uint64(0) // where the last message lies that takes of the room
	a.in.Placement.Began(p, len(msgs))
	a.in.Log.AppendEach(ctx, msgs, func(i int, outcome natslog.Appended) {
		a.in.Placement.Ended(p, outcome.Err)
		if messages[i].urgent {
			urgent = max(urgent, outcome.Seq)
		}
		a.flushed(&messages[i], now, outcome)
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.partitions[p].room.Landed(urgent)
}

// dropLate ends those that waited too long for their turn, and returns the others.
func (a *appender) dropLate(batch []*submission) []*submission {
	kept := batch[:0]
	for _, s := range batch {
		if a.in.Run.Base().Err() == nil && s.Next(s.now()).Do == core.Append {
			kept = append(kept, s)
			continue
		}
		a.returned(s)
		a.carry(s)
	}
	return kept
}

// startDirectly has submissions start with their append where polls wait here, but for those that are to be filed apart, where not all is read at once.
func (a *appender) startDirectly(batch []*submission) {
	var all []*poll.Submit
	for _, s := range batch {
		if !a.in.Polls.Has(s.call.Domain, s.accepted.Tasklist) {
			continue
		}
		r := s.filing()
		a.mu.Lock()
		a.partitions[s.partition].setApart(&r)
		a.mu.Unlock()
		if !r.Apart && !r.ListApart {
			s.starts = &poll.Submit{Domain: s.call.Domain, Tasklist: s.accepted.Tasklist, Records: s.accepted.Records, NowMS: s.now().UnixMilli()}
			all = append(all, s.starts)
		}
	}
	if len(all) > 0 {
		a.in.Polls.Begin(all)
	}
}

// flushed reports to the submissions of a message how its append went.
func (a *appender) flushed(m *flushMessage, sent time.Time, outcome natslog.Appended) {
	err := outcome.Err
	is := outcomeOf(err, outcome.Duplicate)
	if is != core.Superseded {
		a.learn(m.batch[0].partition, m.batch, err)
	}
	for _, s := range m.batch {
		s.began = sent
		s.Appended(is, s.now())
	}
	switch is {
	case core.Superseded:
		go a.readClose(m.batch)
	case core.Acknowledged, core.Duplicate:
		a.in.metrics.appends.Record(time.Since(sent), 1)
		a.acknowledged(m.batch, outcome.Seq, sent)
	case core.NoAnswer:
		a.in.Env.Log.Warn("an append has no known outcome, repeating it", "subject", m.Subject, "error", err)
		for _, s := range m.batch {
			a.in.Polls.Unknown(s.starts)
		}
		go a.resend(*m, sent)
	default:
		for _, s := range m.batch {
			a.in.Polls.NotStored(s.starts)
			a.carry(s)
		}
	}
}

// readClose reads whether the batch of submissions is closed, which the log has refused.
func (a *appender) readClose(batch []*submission) {
	ctx, cancel := context.WithTimeout(a.in.Run.Base(), a.in.AppendTimeout)
	defer cancel()
	refused, _ := a.in.reads.refusedBy(ctx, batch[0])
	for _, s := range batch {
		a.returned(s)
		s.closeRead(refused)
		a.carry(s)
	}
}

// resend repeats a message of unknown outcome, the very same one with the same
// id, until the log tells. Only an acknowledgement says that it is stored: a refusal of the
// repeat says nothing about the first try. Each submission waits until its own
// deadline and is then answered UNKNOWN.
func (a *appender) resend(m flushMessage, sent time.Time) {
	for delay := backoff.New(againFirst, againLast); ; {
		m.batch = a.untilDeadline(m.batch)
		if len(m.batch) == 0 {
			return
		}
		sleep(a.in.Run.Base(), delay.Next(), m.batch)
		if a.in.Run.Base().Err() != nil {
			continue
		}
		seq, duplicate, err := a.append(m.batch[0].partition, m.Msg) // a duplicate is itself
		for _, s := range m.batch {
			s.Appended(outcomeOf(err, duplicate), s.now())
		}
		if err != nil {
			a.in.metrics.appendsFailed.Add(1)
			continue
		}
		a.learn(m.batch[0].partition, m.batch, nil)
		a.acknowledged(m.batch, seq, sent)
		return
	}
}

// acknowledged answers submissions whose message the log has acknowledged. Those that it may have taken too late are
// void if it has, which its own time tells.
func (a *appender) acknowledged(batch []*submission, seq uint64, sent time.Time) {
	a.in.metrics.submitMessages.Add(1)
	acked := time.Now()
	var late []*submission
	for _, s := range batch {
		s.counted.seq = seq
		stored := s.Next(s.now()).Do == core.Finish
		a.in.Polls.Stored(s.starts, seq, stored && acked.Sub(sent) < direct.HandedWithin)
		if !stored {
			late = append(late, s)
			continue
		}
		a.carry(s)
	}
	if len(late) > 0 {
		go a.verify(late, seq)
	}
}

// verify answers submissions that the log may have taken too late.
func (a *appender) verify(late []*submission, seq uint64) {
	for delay := backoff.New(againFirst, againLast); ; {
		late = a.untilDeadline(late)
		for len(late) > 0 {
			ctx, cancel := context.WithTimeout(a.in.Run.Base(), a.in.AppendTimeout)
			stored, err := a.in.reads.holds(ctx, late[0], seq)
			cancel()
			if err != nil {
				break
			}
			late[0].Verified(stored, true)
			a.carry(late[0])
			late = late[1:]
		}
		if len(late) == 0 {
			return
		}
		sleep(a.in.Run.Base(), delay.Next(), late)
	}
}

// untilDeadline ends those whose time is over.
func (a *appender) untilDeadline(batch []*submission) []*submission {
	now := time.Now()
	kept := batch[:0]
	for _, s := range batch {
		if a.in.Run.Base().Err() != nil || !now.Before(s.call.Deadline) {
			a.in.finish(s, s.Expired().End)
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

// flushMessage is one on its way into the log, with the submissions that it holds.
type flushMessage struct {
	natslog.Msg
	batch []*submission
	// urgent: it is on the most urgent lane.
	urgent bool
}

// messages cuts a batch into messages. Submissions that cannot be encoded are refused; late are those that have no place
// in this flush.
func (a *appender) messages(p int, batch []*submission) (messages []flushMessage, late []*submission) {
	requests := make([]filing.Request, len(batch))
	for i, s := range batch {
		requests[i] = s.filing()
	}
	a.mu.Lock()
	for i := range requests {
		a.partitions[p].setApart(&requests[i])
	}
	plan, left := filing.Plan(requests, &a.partitions[p].room, groupcommit.MessageBytesMax)
	a.mu.Unlock()
	for _, i := range left {
		late = append(late, batch[i])
	}
	messages = make([]flushMessage, 0, len(plan))
	for _, planned := range plan {
		m := flushMessage{batch: make([]*submission, len(planned.Requests)), urgent: planned.Lane == ids.LaneFirst}
		for k, i := range planned.Requests {
			m.batch[k] = batch[i]
			batch[i].counted.lane = planned.Lane
			if planned.Domain != "" || !m.urgent {
				a.in.Polls.NotStored(batch[i].starts) // where it is not read at once
			}
		}
		data, err := merged(m.batch, a.in.LogVersion()).MarshalVT()
		if err != nil {
			for _, s := range m.batch {
				a.returned(s)
				a.in.Polls.NotStored(s.starts)
				s.broken(notEncoded(err))
				a.carry(s)
			}
			continue
		}
		m.Msg = m.batch[0].member(natslog.Msg{Subject: subject(p, planned.Destination), MsgID: newMessageID().String(), Data: data})
		messages = append(messages, m)
	}
	return messages, late
}
