package tablecall

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

const (
	// RetryEvery is how often tables are tried that do not answer.
	RetryEvery = 250 * time.Millisecond
	// WaitingChunksMax is how many chunks wait while tables are being opened.
	WaitingChunksMax = 4096
)

// Tables are those of one domain, with the limits that they count. Use NewTables.
//
//	opening ──► open: a life was found, or begun and all triggers asked for
//	   ▲          │
//	   └──────────┘ memory lost, or no answer
type Tables[L List] struct {
	*limit.Domain
	calls *Calls[L]
	// asked: they are being opened. If they did not answer the last time, they are opened again at retryAt.
	asked   bool
	retryAt time.Duration
	// epoch is the present life of the tables.
	epoch string
	// lost: triggers were released. They are asked for when the tables are open.
	lost bool
	// Life counts how often the domain started over.
	Life uint64
	// Policies are those of its limits that are full.
	Policies overflow.Policies
	// Sources are the tasklists of the domain, dirty those that are to be asked for: their polls may find something.
	Sources []*Source[L]
	dirty   []*Source[L]
	// puts are chunks to be stored.
	puts []arrival.Arrival[L]
	// clears are columns to be forgotten.
	clears []table.Place
	// call is under way.
	call *Call[L]
	// busy: in Calls.busy.
	busy bool
}

// NewTables returns the tables of a domain, which are opened.
func (s *Calls[L]) NewTables(domain string) *Tables[L] {
	t := &Tables[L]{calls: s}
	t.Domain = limit.NewDomain(s.limits, domain, t.work)
	t.open()
	return t
}

// work has the tables called, if there is something to call them for.
func (t *Tables[L]) work() {
	if !t.busy {
		t.busy = true
		t.calls.busy = append(t.calls.busy, t)
	}
}

// Mark has the triggers of a tasklist asked for.
func (t *Tables[L]) Mark(l *Source[L]) {
	if !l.dirty {
		l.dirty = true
		t.dirty = append(t.dirty, l)
	}
	t.work()
}

// markPolled does so if a poll waits.
func (t *Tables[L]) markPolled(l *Source[L]) {
	if l.Polls.Len() > 0 {
		t.Mark(l)
	}
}

// MarkAll marks the tasklists where polls wait.
func (t *Tables[L]) MarkAll() {
	for _, l := range t.Sources {
		t.markPolled(l)
	}
}

// InUse reports whether forgetting the tables would lose something. Chunks that wait keep their tasklists.
func (t *Tables[L]) InUse() bool {
	return len(t.Sources) > 0 || t.call != nil || t.asked || t.lost || t.Domain.InUse()
}

// Calling reports whether a call is under way.
func (t *Tables[L]) Calling() bool { return t.call != nil }

// Chunks counts the chunks that wait to be stored.
func (t *Tables[L]) Chunks() int { return len(t.puts) }

// UnderWay reports whether a call, or chunks that wait, are to be waited for.
func (t *Tables[L]) UnderWay() bool { return t.call != nil || len(t.puts) > 0 }

// open asks for the state of the tables.
func (t *Tables[L]) open() {
	t.Open = false
	if !t.asked {
		t.asked = true
		t.calls.out.Opens = append(t.calls.out.Opens, t.Name)
	}
}

// Retry opens tables again that did not answer.
func (t *Tables[L]) Retry() {
	if t.Down && !t.asked && t.call == nil && t.calls.now >= t.retryAt {
		t.open()
	}
}

// Asked reports whether the tables are being opened.
func (t *Tables[L]) Asked() bool { return t.asked }

// Renewed reports whether tables have begun another life: they have lost their memory.
func (t *Tables[L]) Renewed(o *table.Opened) bool {
	return o.Fresh || t.epoch != "" && t.epoch != o.Epoch
}

// Opened takes over the life of the tables. Nothing is known of their columns yet.
func (t *Tables[L]) Opened(o *table.Opened) {
	t.lost = t.lost || t.Renewed(o)
	t.asked, t.Open, t.Down, t.epoch = false, true, false, o.Epoch
	for _, l := range t.Sources {
		*l.Index = table.Index{}
		l.Ranks.Clear()
	}
}

// Start uses tables that are open, when their columns are known.
func (t *Tables[L]) Start() {
	if t.lost {
		t.lost = false
		t.calls.cfg.Retrigger(t.Name)
	}
	t.UnblockAll()
	t.calls.arrivals.All = append(t.calls.arrivals.All, t.unqueue()...)
	t.restart()
}

// restart has the polls looked at of tables that have changed their state.
func (t *Tables[L]) restart() {
	for _, l := range t.Sources {
		l.Of.Reconsider()
		l.Of.Changed()
	}
	t.MarkAll()
	t.work()
}

// Fail notes that the tables do not answer. A trigger that waits for them meets a poll, or is released.
func (t *Tables[L]) Fail() {
	t.asked, t.Open, t.Down, t.retryAt = false, false, true, t.calls.now+RetryEvery
	t.calls.arrivals.All = append(t.calls.arrivals.All, t.unqueue()...)
	t.UnreadAll()
	t.restart()
}

// Retrigger has history send all triggers of the domain again.
func (t *Tables[L]) Retrigger() {
	t.calls.cfg.Retrigger(t.Name)
	t.work()
}

// Put has a chunk stored, as soon as the tables are open. made reports whether a trigger was asked for recently: it is a duplicate, and is not
// stored.
func (t *Tables[L]) Put(a *arrival.Arrival[L], made func(packed []byte) bool) (duplicates int) {
	arrivals := t.calls.arrivals
	switch {
	case t.Down, !t.Open && len(t.puts) >= WaitingChunksMax: // history is asked for it later
		t.lost = true
		arrivals.Done(a)
		return 0
	case !t.Open: // it arrives again when they are
		t.put(t.calls.cfg.Source(a.List), *a)
		return 0
	}
	duplicates = a.Keep(func(i int) bool { return !made(a.Trigger(i)) })
	if len(a.Triggers) == 0 {
		arrivals.Done(a)
		return duplicates
	}
	l := t.calls.cfg.Source(a.List)
	l.rank(a)
	t.put(l, *a)
	l.UnreadBehind(&a.Chunk, a.Place())
	return duplicates
}

// PutBack has a chunk stored that was read ahead, before the next call takes anything.
func (t *Tables[L]) PutBack(l *Source[L], c table.Chunk) {
	if !t.Open {
		t.calls.arrivals.PutBack(l.Of, c)
		return
	}
	t.put(l, arrival.Of(l.Of, c))
}

// put has a chunk stored with the next call.
func (t *Tables[L]) put(l *Source[L], a arrival.Arrival[L]) {
	t.puts = append(t.puts, a)
	l.putting++
	t.markPolled(l)
	t.work()
}

// StartOver releases the triggers of the domain that wait here, has the tables forget theirs, and has history send all of them again. The call
// under way is void.
func (t *Tables[L]) StartOver() {
	t.Life++
	t.UnreadAll()
	t.calls.arrivals.FinishAll(t.unqueue())
	for _, l := range t.Sources {
		for at := range l.Index.All() {
			t.clears = append(t.clears, table.Place{Tasklist: l.Tasklist, Column: at})
			l.ForgetParked(at)
		}
		*l.Index = table.Index{}
		l.Ranks.Clear()
		l.Of.Changed()
	}
	t.Retrigger()
}

// HoldsUnknown reports whether the tables contain triggers of groups that are to be known, and are not.
func (t *Tables[L]) HoldsUnknown() bool {
	return slices.ContainsFunc(t.Sources, func(l *Source[L]) bool {
		return l.Index.Any(func(at table.Column) bool { return !l.UnknownGroups(at) })
	})
}

// unqueue are the chunks that wait to be stored, and wait no more.
func (t *Tables[L]) unqueue() []arrival.Arrival[L] {
	for i := range t.puts {
		t.calls.cfg.Source(t.puts[i].List).putting--
	}
	all := t.puts
	t.puts = nil
	return all
}

// Forget forgets the tasklists for which unused is true.
func (t *Tables[L]) Forget(unused func(l L) bool) {
	t.Sources = slices.DeleteFunc(t.Sources, func(l *Source[L]) bool { return unused(l.Of) })
}
