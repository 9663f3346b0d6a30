package limit

import (
	"cmp"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// pausesMax is how many pauses that are over a domain remembers.
const pausesMax = 8

// The kinds of a Delay.
const (
	DelayLimit = "limit"
	DelayRate  = "rate"
	DelayPause = "pause"
)

// Delay is a time in which triggers of a type could not start: a limit was full, a rate was used up, or they were paused.
type Delay struct {
	Kind         string
	Ref          table.Ref
	Since, Until time.Duration
}

// pause is one that is over.
type pause struct {
	Setting
	since, until time.Duration
}

// covers reports whether tasks of a type in a tasklist are among those that it covers.
func (l *Setting) covers(tasklist, typ string) bool {
	return l.Wide || l.Tasklist != "" && l.Tasklist == tasklist || slices.Contains(l.Types, typ)
}

// paused remembers a pause that is over.
func (d *Domain) paused(l *Limit, now time.Duration) {
	if len(d.pauses) == pausesMax {
		d.pauses = slices.Delete(d.pauses, 0, 1)
	}
	d.pauses = append(d.pauses, pause{l.Setting, l.Usage.MetAt, now})
}

// Delays returns when the limits and rates of a column, and pauses, held its triggers up for the last time, in the order in which that began.
func (l *List) Delays(at table.Column, now time.Duration) (all []Delay) {
	add := func(kind string, ref table.Ref, since, until time.Duration) {
		if until > since {
			all = append(all, Delay{kind, ref, since, until})
		}
	}
	for _, p := range l.domain.pauses {
		if p.covers(l.Name, at.Type) {
			add(DelayPause, p.Ref, p.since, p.until)
		}
	}
	path := l.PathOf(at)
	for _, one := range path.limits {
		since, until := one.Usage.Last(now)
		add(DelayLimit, one.Ref, since, until)
	}
	for _, one := range path.Rates {
		since, until := one.Usage.Last(now)
		add(DelayRate, one.Ref, since, until)
	}
	slices.SortStableFunc(all, func(a, b Delay) int { return cmp.Compare(a.Since, b.Since) })
	return all
}
