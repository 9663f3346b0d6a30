package grab

import (
	"math"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Times, on the clock of the turn.
const (
	// DetachAfter is how long a poll waits for a grab of a silent partition.
	DetachAfter = 50 * time.Millisecond
	// SilentAfter is how late a verdict is when its partition counts as silent.
	SilentAfter = 100 * time.Millisecond
	// HeardAfter is when an answer counts as received, if no one has said otherwise and the server then answers.
	HeardAfter = 250 * time.Millisecond
	// RepeatWithin is for how long an answer may be sent again: a dead connection is found out within.
	RepeatWithin = 5 * time.Second
)

const (
	// SilentGrabsMax is how many grabs a silent partition may have without a verdict.
	SilentGrabsMax = 64
	// AsideMax is how many triggers of a silent partition are kept.
	AsideMax = 16_384
)

// lane is the way to one history partition: a few batches under way, the next one
// gathering.
type lane[L any] struct {
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
	flight, receipts []*batch[L]
	// delivered: what the batches up to this one granted has reached its polls. It was reported at reportedAt; unreported:
	// there is more to report.
	delivered  uint64
	reportedAt time.Duration
	unreported bool

	// grabs and backs count batches of these kinds in flight, undecided their grabs.
	grabs, backs, undecided int
	gather                  []Request[L]
	// restUntil: the grabs that gather wait for others until then.
	restUntil time.Duration
	handBacks []handBack[L]
	// stops are to be sent, stopsOf counts those of each domain that has any, stopping batches of them in flight.
	stops    []StopRequest
	stopsOf  map[*limit.Domain]int
	stopping int

	// aside are triggers kept until it answers again, asideN how many, dropped that there
	// were too many.
	aside   []table.Chunk
	asideN  int
	dropped bool
}

// batch is one message of events, or a fence.
type batch[L any] struct {
	receipt
	lane *lane[L]
	out  Batch
	// grabs or backs or stops are its events; nonce is what those of the grabs are counted from.
	nonce uint64
	grabs []Request[L]
	backs []handBack[L]
	stops []StopRequest
	// left counts events without a verdict.
	left            int
	firstAt, sentAt time.Duration
	// copies counts how often it was sent.
	copies int
	// detached: no poll waits for its grabs.
	detached bool
}

// nonceOf is the nonce of the i-th grab.
func (b *batch[L]) nonceOf(i int) uint64 {
	return ids.Nonce(b.nonce+uint64(i), b.grabs[i].From.Scarce)
}

// grant is the attempt of the i-th grab.
func (b *batch[L]) grant(i int, task []byte) Grant {
	t := b.grabs[i].Trigger
	return Grant{Task: task, of: &b.receipt, attempt: HandBack{
		ID: t.ID, Version: t.Version, Position: t.Position, Nonce: b.nonceOf(i), Domain: b.grabs[i].From.Domain,
	}}
}

func (b *batch[L]) finished() bool { return b.left == 0 && b.unconfirmed == 0 }

// handBack is a granted attempt that no worker has.
type handBack[L any] struct {
	Grant
	// confirms: when history knows of it, the grant is confirmed.
	confirms bool
	// unsure is a request that was refused, of which an earlier copy may have been granted.
	unsure *Request[L]
	done   bool
}

// budget is how many grabs more may be meant for it.
func (l *lane[L]) budget() int {
	switch {
	case !l.open:
		return 0
	case !l.silent:
		return math.MaxInt
	case l.grabs >= l.inFlightMax:
		return 0
	}
	return SilentGrabsMax - l.undecided - len(l.gather)
}

// silentAt is when it counts as silent if it does not answer; a verdict is due.
func (l *lane[L]) silentAt() time.Duration { return max(l.flight[0].firstAt, l.heardAt) + SilentAfter }

// find returns the batch of a number that is not answered.
func (l *lane[L]) find(number uint64) *batch[L] {
	for _, b := range l.flight {
		if b.out.Number == number {
			return b
		}
	}
	return nil
}

// add numbers a batch. One without events waits for nothing.
func (l *lane[L]) add(b *batch[L], now time.Duration) {
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

// rested reports whether the grabs that have gathered may be sent.
func (l *lane[L]) rested(now time.Duration) bool {
	return now >= l.restUntil || len(l.gather) >= restEnough ||
		slices.ContainsFunc(l.gather, func(r Request[L]) bool { return r.From.Scarce })
}

// rest begins when a batch of n grabs is over that took so long.
func (l *lane[L]) rest(n int, took, now time.Duration) {
	l.restUntil = now + min(took*restShare*time.Duration(min(n-1, restCompany))/restCompany, restMax)
}

// close takes an answered batch out of flight.
func (l *lane[L]) close(b *batch[L], now time.Duration) {
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
func (l *lane[L]) advance() {
	n := 0
	for n < len(l.receipts) && l.receipts[n].finished() {
		l.unreported = l.unreported || l.receipts[n].granted > 0
		n++
	}
	l.delivered += uint64(n)
	l.receipts = slices.Delete(l.receipts, 0, n)
}

// keep puts a trigger aside; false if there are too many, and it is forgotten.
func (l *lane[L]) keep(r *Request[L]) bool {
	if l.asideN >= AsideMax {
		l.dropped = true
		return false
	}
	l.asideN++
	if n := len(l.aside); n > 0 {
		last, from := &l.aside[n-1], r.From
		if last.Tasklist == from.Tasklist && last.Column == from.Column && last.Place() == from.Place() && last.Cost == from.Cost && last.Len() < table.ChunkTriggersMax {
			last.Triggers = ids.AppendTrigger(last.Triggers, r.Trigger)
			return true
		}
	}
	l.aside = append(l.aside, r.Chunk())
	return true
}

// busy reports whether something is under way, or about to be.
func (l *lane[L]) busy() bool {
	return len(l.flight) > 0 || l.unreported || len(l.gather)+len(l.stops) > 0
}

// wake is when something of it is due.
func (l *lane[L]) wake(w time.Duration) time.Duration {
	if l.unreported {
		w = min(w, l.reportedAt+HeardAfter)
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
			w = min(w, b.firstAt+DetachAfter)
		}
	}
	return w
}
