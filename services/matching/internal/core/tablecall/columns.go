package tablecall

import (
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

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
