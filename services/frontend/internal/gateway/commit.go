package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/filing"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/polls"
)

// partition is what waits for one partition, and what its owner says of it.
type partition struct {
	// submits have all domains, tasklists and priorities.
	submits *gathering[*submission]
	// keyed are the tasks with unique keys. Those of each domain go by themselves, since one key
	// that is taken refuses a whole atomic batch.
	keyed *gathering[*part]

	// The appender's lock guards these: what may still be filed on the most urgent lane, and the places whose tasks the
	// owner wants to be filed there.
	room  filing.Room
	apart map[ids.Place]bool
}

// enqueue hands s to the group commit of its partition. If its domain has no room there to wait, it is refused.
func (a *appender) enqueue(s *submission) {
	if !a.partitions[s.partition].submits.add(s) {
		a.returned(s)
		a.g.refuseFull(s)
	}
}

// After a flush of several, the next waits for companyShare of the time that it took, and companyMax at most.
// Clients that were answered come again: without a rest two halves of them take turns, with a sync for each.
const (
	companyShare = 4
	companyMax   = 2 * time.Millisecond
)

// inCompany flushes so many, and rests.
func (a *appender) inCompany(n int, flush func()) {
	began := time.Now()
	flush()
	if n > 1 {
		backoff.Sleep(a.g.base, min(time.Since(began)/companyShare, companyMax))
	}
}

// flush appends one batch, as few messages as its priorities and the room for shared ones allow, and
// tells each submission.
func (a *appender) flush(p int, batch []*submission) {
	now := time.Now()
	batch = a.dropLate(batch, now)
	if len(batch) == 0 {
		return
	}
	if !a.g.placement.Healthy(p) { // failed while these waited
		for _, s := range batch {
			a.returned(s)
			a.place(s)
		}
		return
	}
	a.startDirectly(batch)
	messages, late := a.messages(p, batch)
	for _, s := range late {
		a.enqueue(s)
	}
	msgs := make([]natslog.Msg, len(messages))
	for i := range messages {
		msgs[i] = messages[i].Msg
	}
	ctx, cancel := context.WithTimeout(a.g.base, a.g.Config.AppendTimeout)
	defer cancel()
	urgent := uint64(0) // where the last message lies that takes of the room
	a.g.placement.Began(p, len(msgs))
	a.g.History.AppendEach(ctx, msgs, func(i int, outcome natslog.Appended) {
		a.g.placement.Ended(p, outcome.Err)
		if messages[i].urgent {
			urgent = max(urgent, outcome.Seq)
		}
		a.flushed(&messages[i], now, outcome)
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.partitions[p].room.Landed(urgent)
}

// startDirectly has submissions start with their append where polls wait here, but for those that are to be filed apart, where not all is read at once.
func (a *appender) startDirectly(batch []*submission) {
	var all []*polls.Submit
	for _, s := range batch {
		if !a.g.polls.Has(s.call.Domain, s.accepted.Tasklist) {
			continue
		}
		r := s.filing()
		a.mu.Lock()
		a.partitions[s.partition].setApart(&r)
		a.mu.Unlock()
		if !r.Apart && !r.ListApart {
			s.starts = &polls.Submit{Domain: s.call.Domain, Tasklist: s.accepted.Tasklist, Records: s.accepted.Records, NowMS: s.call.now().UnixMilli()}
			all = append(all, s.starts)
		}
	}
	if len(all) > 0 {
		a.g.polls.Begin(all)
	}
}

// flushed tells the submissions of a message how its append went.
func (a *appender) flushed(m *message, sent time.Time, outcome natslog.Appended) {
	err := outcome.Err
	if errors.Is(err, natslog.ErrWrongLast) {
		go a.meetsClose(m.batch)
		return
	}
	a.learn(m.batch[0].partition, m.batch, err)
	switch {
	case err == nil:
		a.g.metrics.appends.Record(time.Since(sent), 1)
		a.landed(m.batch, outcome.Seq, sent)
	case errors.Is(err, natslog.ErrNotStored):
		for _, s := range m.batch {
			a.g.polls.NotStored(s.starts)
			a.place(s)
		}
	default:
		a.g.Log.Warn("an append has no known outcome, repeating it", "subject", m.Subject, "error", err)
		for _, s := range m.batch {
			a.g.polls.Unknown(s.starts)
		}
		go a.resolve(*m, sent)
	}
}

// message is one on its way into the log, with the submissions that it holds.
type message struct {
	natslog.Msg
	batch []*submission
	// urgent: it is on the most urgent lane.
	urgent bool
}

// messages cuts a batch into messages. Submissions that cannot be encoded are refused; late are those that have no place
// in this flush.
func (a *appender) messages(p int, batch []*submission) (messages []message, late []*submission) {
	requests := make([]filing.Request, len(batch))
	for i, s := range batch {
		requests[i] = s.filing()
	}
	a.mu.Lock()
	for i := range requests {
		a.partitions[p].setApart(&requests[i])
	}
	plan, left := filing.Plan(requests, &a.partitions[p].room, batchBytesMax)
	a.mu.Unlock()
	for _, i := range left {
		late = append(late, batch[i])
	}
	messages = make([]message, 0, len(plan))
	for _, planned := range plan {
		m := message{batch: make([]*submission, len(planned.Requests)), urgent: planned.Lane == ids.LaneFirst}
		for k, i := range planned.Requests {
			m.batch[k] = batch[i]
			batch[i].held.lane = planned.Lane
			if planned.Domain != "" || !m.urgent {
				a.g.polls.NotStored(batch[i].starts) // where it is not read at once
			}
		}
		data, err := merged(m.batch, a.g.LogVersion()).MarshalVT()
		if err != nil {
			for _, s := range m.batch {
				a.returned(s)
				a.g.polls.NotStored(s.starts)
				s.refuse(fault.New(fault.Internal, "encode a batch: %v", err))
			}
			continue
		}
		m.Msg = m.batch[0].member(natslog.Msg{Subject: subject(p, planned.Destination), MsgID: newMessageID().String(), Data: data})
		messages = append(messages, m)
	}
	return messages, late
}

// destination is where s belongs in the log.
func (s *submission) destination() filing.Destination {
	d := filing.Destination{Lane: s.accepted.Lane, Domain: s.call.Domain, Tasklist: s.accepted.Tasklist}
	if batch := s.batch(); batch != "" {
		d.Tasklist = topology.BatchTasklist(d.Domain, batch)
	}
	return d
}

// filing is what planning a flush needs to know of s.
func (s *submission) filing() filing.Request {
	return filing.Request{Destination: s.destination(), Tasks: s.tasks(), Bytes: max(1, s.weight), Alone: s.batch() != "", Started: s.starts.Starts()}
}

// subject is where a message for a destination is filed.
func subject(p int, d filing.Destination) string {
	switch {
	case d.Domain == "":
		return topology.SubmitShared(p, d.Lane)
	case d.Tasklist == "":
		return topology.SubmitOf(p, d.Lane, d.Domain)
	}
	return topology.Submit(p, d.Lane, d.Domain, d.Tasklist)
}

// load implements gathered.
func (s *submission) load() (domain string, weight int) { return s.call.Domain, s.weight }

func merged(batch []*submission, version uint32) *logv1.Batch {
	if len(batch) == 1 {
		return &logv1.Batch{Tasks: batch[0].accepted.Records, LogVersion: version}
	}
	n := 0
	for _, s := range batch {
		n += s.tasks()
	}
	tasks := make([]*logv1.Record, 0, n)
	for _, s := range batch {
		tasks = append(tasks, s.accepted.Records...)
	}
	return &logv1.Batch{Tasks: tasks, LogVersion: version}
}

// storedAll answers submissions that lie in so many messages of the log.
func (g *Gateway) storedAll(batch []*submission, messages int, sent, acked time.Time) {
	g.metrics.submitMessages.Add(int64(messages))
	for _, s := range batch {
		g.stored(s, sent, acked)
	}
}
