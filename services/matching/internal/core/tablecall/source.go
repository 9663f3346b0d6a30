package tablecall

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Source is a tasklist as calls see it: Of is the tasklist itself.
type Source[L List] struct {
	*limit.List
	Of    L
	Polls *pairing.Queue[L, grab.Grant]
	// Ranks are those of columns that groups share, while something waits there.
	Ranks fairness.Ranks
	// putting counts its chunks that no call has stored yet.
	putting int
	// Undecided counts grabs of its triggers that history has not decided.
	Undecided int
	// dirty: in Tables.dirty, to be asked for.
	dirty bool
	// asking: a call is under way that takes triggers of it. issued and done count these.
	asking       bool
	issued, done uint64
	// asks is what the call under way takes, and asked the last poll that it takes it for.
	asks  []table.Want
	asked uint64
}

// Idle reports whether no call is under way or wanted that takes triggers of it.
func (l *Source[L]) Idle() bool { return !l.dirty && !l.asking }

// AskedUpTo is the last poll for which the call under way takes triggers.
func (l *Source[L]) AskedUpTo() uint64 { return l.asked }

// AsksFor reports whether the call under way takes triggers that a poll accepts.
func (l *Source[L]) AsksFor(p *grab.Poll[L]) bool {
	return l.asking && slices.ContainsFunc(l.asks, func(w table.Want) bool {
		return slices.ContainsFunc(w.Candidates, func(c table.Candidate) bool { return p.Accepts(c.Type) })
	})
}

// MayGet reports whether a poll may yet get something: a call to the tables that is under way, or the next one, takes
// what it accepts.
func (l *Source[L]) MayGet(p *grab.Poll[L]) bool {
	return !l.Open() || l.AsksFor(p) || l.dirty && len(l.Index.Candidates(p.Types, 0, 1, l.Unavailable)) > 0
}

// MayStillGet reports whether the tables have yet to be asked for a poll whose time is over, once.
func (l *Source[L]) MayStillGet(p *grab.Poll[L]) bool {
	if !l.Open() {
		return !l.Down()
	}
	if p.LookBy == 0 {
		p.LookBy = l.issued
		if l.dirty {
			p.LookBy++
		}
	}
	return l.done < p.LookBy && !l.Idle()
}

// Precedes reports whether the tables are being asked, or are to be asked first since they hold something that is more urgent than a priority.
func (l *Source[L]) Precedes(priority int) bool {
	if l.asking || !l.dirty {
		return l.asking
	}
	first := l.Index.Candidates(nil, 0, 1, l.Unavailable)
	return len(first) > 0 && first[0].Priority < priority
}

// Found notes a column that the tables contain.
func (l *Source[L]) Found(k *table.Known) {
	step := l.Of.Weights().Step(k.Column)
	if k.Group == "" {
		l.Index.Put(k.Column, k.ReadyAt, k.Triggers)
	} else {
		l.Index.PutGroup(k.Column, k.ReadyAt, k.Rank, step, k.Triggers)
	}
	l.Ranks.Found(k, step)
}

// Saw takes in the head of a column after a call.
func (l *Source[L]) Saw(h table.Head) {
	l.Index.Seen(h)
	l.Ranks.End(h.Column, l.keepsRanks)
	if h.Empty {
		l.ForgetParked(h.Column)
	}
}

// Back brings a column back that was set aside.
func (l *Source[L]) Back(at table.Column) { l.Index.Back(at, l.Ranks.Now(at)) }

// SweepRanks forgets the ranks of columns where nothing waits.
func (l *Source[L]) SweepRanks() { l.Ranks.Sweep(l.keepsRanks) }

// Passable reports whether a new trigger may pass the table: nothing is there, or on its way there, that a poll may have.
func (l *Source[L]) Passable() bool { return l.putting == 0 && !l.Index.Any(l.Unavailable) }

// Putting reports whether chunks of it wait for a call that stores them.
func (l *Source[L]) Putting() bool { return l.putting > 0 }

// keepsRanks reports whether something waits in a column, or is on its way to one.
func (l *Source[L]) keepsRanks(at table.Column) bool {
	_, waits := l.Index.Waits(at)
	return waits || l.putting > 0
}

// rank assigns ranks to a chunk that is to be stored, if groups share its column.
func (l *Source[L]) rank(a *arrival.Arrival[L]) {
	head, _ := l.Index.Waits(fairness.Shared(a.Column))
	a.AssignRanks(&l.Ranks, head, l.Of.Weights())
}

// stored notes that a call stores a chunk.
func (l *Source[L]) stored(a *arrival.Arrival[L]) {
	l.putting--
	if a.Group == "" {
		l.Index.Put(a.Column, a.ReadyAt, a.Len())
		return
	}
	rank := a.Rank
	if rank == 0 {
		rank = a.Ranks()[0].At
	}
	l.Index.PutGroup(a.Column, a.ReadyAt, rank, l.Of.Weights().Step(a.Column)*int64(a.Starts()), a.Len())
}
