package match

import (
	"math"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// lane is the way to one history partition: a few batches under way, the next one
// gathering.
type lane struct {
	partition              int
	inFlightMax, eventsMax int
	// open: this owner's fence is in the log.
	open bool
	// silent: a verdict is due, and it says nothing. heardAt is when it last answered.
	silent  bool
	heardAt time.Duration

	// number is the last batch's. flight are the batches that are not answered, receipts all
	// those behind delivered.
	number           uint64
	flight, receipts []*batch
	// delivered: what the batches up to this one granted has reached its polls. reported is
	// what history knows of it, and since when; news is whether there is more to tell.
	delivered, reported uint64
	reportedAt          time.Duration
	news                bool

	// grabs and backs count batches of these kinds in flight, undecided their grabs.
	grabs, backs, undecided int
	gather                  []grab
	// restUntil: what gathers waits for company until then.
	restUntil time.Duration
	handBacks []handBack
	// stops are to be sent, stopsOf counts those of each domain that has any, stopping batches of them in flight.
	stops    []stop
	stopsOf  map[*limit.Domain]int
	stopping int

	// aside are triggers kept until it speaks again, asideN how many, dropped that there
	// were too many.
	aside   []table.Chunk
	asideN  int
	dropped bool
}

// origin is where the triggers of one chunk come from.
type origin struct {
	list *list
	// Chunk has no triggers, and so no step.
	table.Chunk
	// path is what was booked for each; empty = nothing. It never changes, whatever becomes of the limits. scarce: others may soon wait for one of these slots.
	path   []table.Ref
	scarce bool
	// rates are those of which starts were taken for each.
	rates []*limit.Limit
	at    time.Duration
}

// chunk is one of the triggers as it was in the table.
func (o *origin) chunk(t ids.Trigger) table.Chunk {
	c := o.Chunk
	c.Triggers = ids.AppendTrigger(nil, t)
	return c
}

// grab is a trigger on its way to a poll.
type grab struct {
	trigger ids.Trigger
	poll    *poll
	from    *origin
	// decided: history has answered. detached: the poll does not wait for it. unsure: it was refused, and
	// another copy of it may have been granted. full: it was refused since the answer of its poll is full.
	decided, detached, unsure, full bool
}

// nonceOf is the nonce of the i-th grab, g.
func (b *batch) nonceOf(i int, g *grab) uint64 { return ids.Nonce(b.nonce+uint64(i), g.from.scarce) }

// chunk is the grab's trigger as it was in the table.
func (g *grab) chunk() table.Chunk { return g.from.chunk(g.trigger) }

// batch is one message of events, or a fence.
type batch struct {
	lane *lane
	out  Batch
	// grabs or backs are its events; nonce is what those of the grabs are counted from.
	nonce uint64
	grabs []grab
	backs []handBack
	stops []stop
	// left counts events without a verdict, unconfirmed grants that may not have reached
	// their polls, granted all of them.
	left, unconfirmed, granted int
	firstAt, sentAt            time.Duration
	// copies counts how often it was sent.
	copies int
	// detached: no poll waits for its grabs.
	detached bool
}

// handBack is a granted attempt that no one holds.
type handBack struct {
	batch *batch
	i     int
	// confirms: when history knows of it, the grant is confirmed.
	confirms bool
	done     bool
}

func (b *batch) finished() bool { return b.left == 0 && b.unconfirmed == 0 }

// room is how many grabs more may be meant for it.
func (l *lane) room() int {
	switch {
	case !l.open:
		return 0
	case !l.silent:
		return math.MaxInt
	case l.grabs >= l.inFlightMax:
		return 0
	}
	return silentGrabsMax - l.undecided - len(l.gather)
}

// listen notes whether the partition is silent.
func (l *lane) listen(now time.Duration) { l.silent = len(l.flight) > 0 && now >= l.silentAt() }

// silentAt is when it counts as silent if it does not answer; a verdict is due.
func (l *lane) silentAt() time.Duration { return max(l.flight[0].firstAt, l.heardAt) + silentAfter }

// find returns the batch of a number that is not answered.
func (l *lane) find(number uint64) *batch {
	for _, b := range l.flight {
		if b.out.Number == number {
			return b
		}
	}
	return nil
}

// add numbers a batch. One without events waits for nothing.
func (l *lane) add(b *batch, now time.Duration) {
	l.number++
	b.lane, b.firstAt = l, now
	b.out.Partition, b.out.Number = l.partition, l.number
	l.receipts = append(l.receipts, b)
	if b.left > 0 {
		l.flight = append(l.flight, b)
	}
}

// After a batch of grabs the next one waits, so that it is larger: each is a message of the log, which
// syncs them to disk one after the other, and the submits of the partition wait behind them. The rest grows with
// the load, from nothing for one grab to restShare times what the batch took for restCompany of them, and ends
// when restEnough have gathered. A slot that others may wait for does not rest.
const (
	restShare   = 3
	restCompany = 24
	restMax     = 20 * time.Millisecond
	restEnough  = 100
)

// rested tells whether what has gathered may go.
func (l *lane) rested(now time.Duration) bool {
	return now >= l.restUntil || len(l.gather) >= restEnough ||
		slices.ContainsFunc(l.gather, func(g grab) bool { return g.from.scarce })
}

// rest begins when a batch of n grabs is over that took so long.
func (l *lane) rest(n int, took, now time.Duration) {
	l.restUntil = now + min(took*restShare*time.Duration(min(n-1, restCompany))/restCompany, restMax)
}

// close takes an answered batch out of flight.
func (l *lane) close(b *batch, now time.Duration) {
	if i := slices.Index(l.flight, b); i >= 0 {
		l.flight = slices.Delete(l.flight, i, i+1)
	}
	switch {
	case len(b.grabs) > 0:
		l.grabs--
		l.rest(len(b.grabs), now-b.firstAt, now)
	case len(b.backs) > 0:
		l.backs--
	case len(b.stops) > 0:
		l.stopping--
	}
}

// advance counts what has been delivered.
func (l *lane) advance() {
	n := 0
	for n < len(l.receipts) && l.receipts[n].finished() {
		l.news = l.news || l.receipts[n].granted > 0
		n++
	}
	l.delivered += uint64(n)
	l.receipts = slices.Delete(l.receipts, 0, n)
}

// keep puts a trigger aside, or forgets it if there are too many.
func (l *lane) keep(from *origin, t ids.Trigger) {
	if l.asideN >= asideMax {
		l.dropped = true
		return
	}
	l.asideN++
	from.list.ranks.Aside(from.Column, from.Rank)
	if n := len(l.aside); n > 0 {
		last := &l.aside[n-1]
		if last.Tasklist == from.Tasklist && last.Column == from.Column && last.Place() == from.Place() && last.Cost == from.Cost && last.Len() < table.ChunkTriggersMax {
			last.Triggers = ids.AppendTrigger(last.Triggers, t)
			return
		}
	}
	l.aside = append(l.aside, from.chunk(t))
}

// busy tells whether something is under way, or about to be.
func (l *lane) busy() bool { return len(l.flight) > 0 || l.news || len(l.gather)+len(l.stops) > 0 }

// wake is when it has to be looked at.
func (l *lane) wake(w time.Duration) time.Duration {
	if l.news {
		w = min(w, l.reportedAt+heardAfter)
	}
	if l.grabs < l.inFlightMax && len(l.gather) > 0 {
		w = min(w, l.restUntil)
	}
	if len(l.flight) == 0 {
		return w
	}
	if !l.silent {
		return min(w, l.silentAt())
	}
	for _, b := range l.flight {
		if !b.detached {
			w = min(w, b.firstAt+detachAfter)
		}
	}
	return w
}
