package gateway

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/visits"
)

// A poll of several tasklists visits one after another, and rests here where none has anything for it: visits.Book says where it goes.
//
//	at rest ──► on a visit, which is being sent to the owner of an epoch ──► answered
//	   ▲  │         │ found nothing, or there was no owner
//	   │  └► over   ├──► on the next visit
//	   └────────────┘
//
// In a tasklist of several partitions the first visit is to one of them, and to the first one where that has nothing: that one knows what the
// others want.

// several are the parts of a poll that it has if it is of several tasklists.
type several struct {
	*visits.Poll
	// served: some tasklist had an owner.
	served bool
	// rests: no owner has it.
	rests bool
	// first: it has not been at rest. rooted: the first partition of the tasklist has had it.
	first, rooted bool
}

// severalOf enters a poll of several tasklists. The caller holds the lock.
func (p *polls) severalOf(at *poll, now time.Time) {
	entries := make([]visits.Entry, len(at.tasklists))
	for i, l := range at.tasklists {
		entries[i] = visits.Entry{Name: l.Name, Weight: int(l.Weight)}
	}
	at.several = &several{
		Poll:  p.book.Add(at.number, at.req.Domain, entries, at.req.Types, int(at.req.MaxTasks), now),
		first: true,
	}
	at.req.Visit = true
}

// visit sends a poll that no one has to the next tasklist. Where there is none it rests, or ends if its time is over. The caller holds
// the lock.
func (p *polls) visit(at *poll, now time.Time) effect {
	for !p.stopped && (at.several.first || now.Before(at.until)) {
		to, ok := p.book.Next(at.several.Poll, now)
		if !ok {
			at.several.first = false
			if !now.Before(at.until) {
				break
			}
			at.several.rests = true
			p.endsAt(at, at.until)
			return effect{}
		}
		partition := 0
		if at.several.first {
			partition = p.g.pick(to.Domain, to.Name)
		}
		at.several.rooted = partition == 0
		if e, sent := p.enter(at, to.Name, partition, now); sent {
			return e
		}
	}
	return p.over(at)
}

// enter sends a poll to a partition of a tasklist, if it has an owner. The caller holds the lock.
func (p *polls) enter(at *poll, tasklist string, partition int, now time.Time) (effect, bool) {
	at.req.Tasklist, at.req.TasklistPartition = tasklist, int32(partition)
	at.shard = p.shardOf(at, partition)
	if p.epochs[at.shard] == 0 {
		p.book.Away(at.several.Poll, now)
		return effect{}, false
	}
	e := p.give(at, now)
	at.req.Moved = true // from now on
	return e, true
}

// visited sends a poll on that has found nothing where it was. The caller holds the lock.
func (p *polls) visited(at *poll, now time.Time) effect {
	at.several.served = true
	switch {
	case at.req.TasklistPartition == 0:
		p.book.Nothing(at.several.Poll, now)
	case !at.several.rooted:
		at.several.rooted = true
		return p.enterOr(at, 0, now)
	}
	return p.visit(at, now)
}

// enterOr sends a poll to another partition of the tasklist where it was; if that has no owner to the next tasklist. The caller holds the lock.
func (p *polls) enterOr(at *poll, partition int, now time.Time) effect {
	if partition >= 0 && partition < ids.PartitionsMax {
		if e, sent := p.enter(at, at.req.Tasklist, partition, now); sent {
			return e
		}
	}
	return p.visit(at, now)
}

// over ends a poll that no one has: without a task, or if no tasklist had an owner with an error. The caller holds the lock.
func (p *polls) over(at *poll) effect {
	if !at.several.served {
		return p.end(at, unserved())
	}
	p.forget(at)
	return effect{at: at, empty: true}
}

// wanted sends polls at rest to tasklists that want some.
func (p *polls) wanted(all []*rpcv1.PollsWanted) {
	for _, m := range all {
		wants := make([]visits.Want, 0, len(m.Wanted))
		for _, w := range m.Wanted {
			wants = append(wants, visits.Want{Type: w.Type, Triggers: int(min(w.Triggers, pollsWantedMax)), Limited: w.Limited})
		}
		p.visitAll(func(now time.Time) []*visits.Poll {
			return p.book.Wanted(visits.Tasklist{Domain: m.Domain, Name: m.Tasklist}, wants, now)
		})
	}
}

// pollsWantedMax is for how many triggers of a type polls are sent at once.
const pollsWantedMax = 1 << 20

// visitAll sends polls at rest on their way.
func (p *polls) visitAll(which func(now time.Time) []*visits.Poll) {
	var all []effect
	p.mu.Lock()
	now := time.Now()
	for _, one := range which(now) {
		at := p.severals[one.Number]
		at.several.rests = false
		p.endsAt(at, at.until.Add(pollOverAfter))
		all = append(all, p.visit(at, now))
	}
	p.mu.Unlock()
	for _, e := range all {
		p.carryOut(e)
	}
}

// renew has tasklists visited whose owner is a new one. The caller holds the lock.
func (p *polls) renew(shard int) {
	p.book.Renew(func(of visits.Tasklist) bool {
		return ids.MatchingShard(of.Domain, of.Name, 0, p.g.Partitioning.Matching) == shard
	})
}

// ofOne turns a poll of a single entry into one of a tasklist.
func ofOne(req *yardv1.PollRequest) {
	if len(req.Tasklists) == 1 {
		req.Tasklist, req.Tasklists = req.Tasklists[0].Name, nil
	}
}
