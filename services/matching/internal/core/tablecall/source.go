package tablecall

import (
	"slices"

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
