package limit

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// TestWhenAPolicyMayAct: only of a limit that has one, which counts, is known, and has been full for long enough, as far as is known.
func TestWhenAPolicyMayAct(t *testing.T) {
	const now = 10 * time.Second
	for name, c := range map[string]struct {
		change   func(l *Limit)
		one, all bool // of a limit, of that of a group
	}{
		"full":                    {func(*Limit) {}, true, true},
		"it has no policy":        {func(l *Limit) { l.OnFull = Wait }, false, false},
		"in shadow":               {func(l *Limit) { l.Shadow = true }, false, true}, // none is that counts groups
		"a pause":                 {func(l *Limit) { l.Paused = true }, false, true},
		"a rate":                  {func(l *Limit) { l.Rate.EveryUS = 1 }, false, true},
		"free":                    {func(l *Limit) { l.Blocked = 0 }, false, false},
		"others are before":       {func(l *Limit) { l.Blocked = table.InLine }, false, false},
		"full, for too short":     {func(l *Limit) { l.Over.FullAt++ }, false, false},
		"not full all the time":   {func(l *Limit) { l.Over.FullAt = 0 }, false, false},
		"it is being counted":     {func(l *Limit) { l.Unknown = 1 }, false, false},
		"it is no more":           {func(l *Limit) { l.Domain.Limits = nil }, false, false},
		"its domain is forgotten": {func(l *Limit) { l.Domain.Forgotten = true }, false, false},
	} {
		l := &Limit{Setting: Setting{Ref: "x", Max: 1, OnFull: RejectNewest, OnFullAfter: time.Second}, Domain: &Domain{}, waitState: waitState{Blocked: table.Full}}
		l.Domain.Limits = map[table.Ref]*Limit{"x": l}
		l.Over.FullAt = now - time.Second
		one := &Limit{Domain: l.Domain, Of: l, Group: "g", waitState: waitState{Blocked: table.Full}, Over: l.Over}
		l.ByGroup = &PerGroup{Limits: map[string]*Limit{"g": one}}
		c.change(l)
		c.change(one)
		if l.Overflows(now) != c.one || one.Overflows(now) != c.all {
			t.Errorf("%s: %v, of a group %v", name, l.Overflows(now), one.Overflows(now))
		}
	}
}

// TestSinceWhenALimitIsFull: since it was seen full first. It begins again where some got slots for which none had waited.
func TestSinceWhenALimitIsFull(t *testing.T) {
	for name, c := range map[string]struct {
		before time.Duration
		change func(l *Limit, st *table.LimitState)
		waited bool
		booked int
		after  time.Duration
		ring   bool
	}{
		"first":                      {0, nil, false, 0, 9, true},
		"still":                      {3, nil, false, 0, 3, true},
		"for those that waited":      {3, nil, true, 2, 3, true},
		"for others":                 {3, nil, false, 2, 9, true},
		"more than there are":        {3, func(_ *Limit, st *table.LimitState) { st.Used++ }, false, 0, 3, true},
		"one is free":                {3, func(_ *Limit, st *table.LimitState) { st.Used-- }, false, 0, 0, false},
		"others are not known":       {3, func(_ *Limit, st *table.LimitState) { st.Restoring = true }, false, 0, 0, false},
		"its own are not known":      {3, func(l *Limit, _ *table.LimitState) { l.Unknown = 1 }, false, 0, 0, false},
		"nothing waits":              {0, func(l *Limit, _ *table.LimitState) { l.Blocked = 0 }, false, 0, 9, false},
		"it has no policy any more":  {3, func(l *Limit, _ *table.LimitState) { l.OnFull = Wait }, false, 0, 0, false},
		"one is free that was asked": {3, func(l *Limit, st *table.LimitState) { st.Used, l.Blocked = 0, 0 }, false, 0, 0, false},
	} {
		l, st := &Limit{Setting: Setting{Max: 2, OnFull: CancelOldest}, Domain: &Domain{}, waitState: waitState{Blocked: table.Full}}, &table.LimitState{Used: 2}
		l.Over = Overflow{FullAt: c.before, At: 77}
		ring := &l.Domain.Rings[ringOver]
		if c.before > 0 {
			l.InRing(ringOver, true)
		}
		if c.change != nil {
			c.change(l, st)
		}
		l.sawFull(st, c.waited, c.booked, 9)
		if l.Over.FullAt != c.after || (len(ring.all) == 1) != c.ring || (l.Over.At == 0) != (l.OnFull == Wait) {
			t.Errorf("%s: since %d, to be looked at: %d, %+v", name, l.Over.FullAt, len(ring.all), l.Over)
		}
	}
}
