package gateway

import (
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/filing"
)

// appender brings submissions into the log: it chooses their partition, hands them to its group
// commit, and moves them to the next partition where that is known to have failed.
type appender struct {
	g *Gateway

	mu         sync.Mutex
	partitions []*partition
}

func newAppender(g *Gateway) *appender {
	a := &appender{g: g}
	for p := range g.Partitioning.History {
		submits := func(batch []*submission) { a.inCompany(len(batch), func() { a.flush(p, batch) }) }
		keyed := func(parts []*part) { a.inCompany(len(parts), func() { a.flushKeys(parts) }) }
		a.partitions = append(a.partitions, &partition{
			submits: newGathering(g.Catalog.Weight, queuedSubmitsBytes, flushBytesMax, flushShare, submits),
			keyed:   newGathering(g.Catalog.Weight, queuedSubmitsBytes, flushBytesMax, flushShare, keyed), room: filing.NewRoom(),
		})
	}
	return a
}

// TakeLoad takes in what the owner of a partition reports (topology.HintLoad).
func (g *Gateway) TakeLoad(data []byte) {
	var load rpcv1.HistoryLoad
	if load.UnmarshalVT(data) != nil {
		return // a hint: the next one comes soon
	}
	g.outcomes.report(&load)
	if p := int(load.Partition); p >= 0 && p < g.Partitioning.History {
		g.queues.report(&load)
	}
	g.appender.report(&load)
}

func (a *appender) report(load *rpcv1.HistoryLoad) {
	a.g.placement.Report(load)
	a.mu.Lock()
	defer a.mu.Unlock()
	p := int(load.Partition)
	if p < 0 || p >= len(a.partitions) {
		return // a hint from an unknown process
	}
	c := a.partitions[p]
	c.room.Report(load.SharedTasks, load.SharedBytes, load.SharedRead)
	c.apart = nil
	for _, at := range load.Apart {
		if c.apart == nil {
			c.apart = make(map[ids.Place]bool, len(load.Apart))
		}
		c.apart[ids.Place(at)] = true
	}
}

// setApart says whether the tasks of a request are to be filed apart. Those with order keys always are, by domain: a key may have several tasklists.
func (p *partition) setApart(r *filing.Request) {
	keyed := r.Lane == ids.LaneKeyed
	r.Apart = keyed || p.apart[ids.PlaceOf(r.Domain, "")]
	r.ListApart = len(p.apart) > 0 && !keyed && r.Tasklist != "" && p.apart[ids.PlaceOf(r.Domain, r.Tasklist)]
}

// place sends s to the best partition. It answers s, now or later, whatever happens.
func (a *appender) place(s *submission) {
	now := time.Now()
	if why := a.tooLate(s, now); why != "" {
		s.unavailable(why)
		return
	}
	p, ok := a.pick(s, now)
	if !ok {
		if a.full(s, now) {
			a.g.refuseStorageFull(s)
			return
		}
		time.AfterFunc(min(placeAgain, s.call.Deadline.Sub(now)), func() { a.place(s) })
		return
	}
	s.place(p)
	a.enqueue(s)
}

// pick chooses the partition of s.
func (a *appender) pick(s *submission, now time.Time) (p int, ok bool) {
	if s.pinned {
		return s.home, a.g.placement.Take(s.home, s.tasks(), now)
	}
	return a.g.placement.Pick(s.tasks(), now)
}

// full reports whether no partition that s may go to has space.
func (a *appender) full(s *submission, now time.Time) bool {
	if s.pinned {
		return !a.g.placement.HasRoom(s.home, now)
	}
	return a.g.placement.Full(now) == len(a.partitions)
}

// learn reports how an append to p went.
func (a *appender) learn(p int, batch []*submission, err error) {
	if err == nil {
		a.g.placement.Stored(p)
		return
	}
	a.g.metrics.appendsFailed.Add(1)
	n := 0
	for _, s := range batch {
		n += s.tasks()
	}
	a.g.placement.Failed(p, n, err)
}

// tick places again what waits for partitions that get less.
func (a *appender) tick(now time.Time) {
	for _, p := range a.g.placement.Tick(now) {
		for _, s := range a.partitions[p].submits.takeAll() {
			a.returned(s)
			a.place(s)
		}
	}
}

func (a *appender) hasRoom(p int) bool { return a.g.placement.HasRoom(p, time.Now()) }

func (a *appender) returned(s *submission) { a.g.placement.Returned(s.partition, s.tasks()) }

// dropLate answers those that waited too long for their turn.
func (a *appender) dropLate(batch []*submission, now time.Time) []*submission {
	kept := batch[:0]
	for _, s := range batch {
		if why := a.tooLate(s, now); why != "" {
			a.returned(s)
			s.unavailable(why)
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// tooLate says why s must not be sent any more, or nothing.
func (a *appender) tooLate(s *submission, now time.Time) string {
	if a.g.base.Err() != nil {
		return "the frontend is stopping"
	}
	if !now.Before(s.call.Deadline) || s.hasID && s.age() > sendUntil {
		return "no partition of the log took it in time"
	}
	return ""
}

// placeAgain is how soon a submission that found no healthy partition asks again.
const placeAgain = 250 * time.Millisecond
