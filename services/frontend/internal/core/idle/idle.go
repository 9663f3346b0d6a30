// Package idle is the polls that wait in a frontend.
//
// Owns: which polls stay here and for how long, when they are called to matching, and which of them get tasks that are submitted here.
// A poll that stays here can be given a task by the very write that accepts it; one that matching has cannot.
//
// A poll stays as long as nothing waits in its tasklist. Matching says so otherwise: it names the tasklists where something
// waits and no poll is there, at once and then each second. Their polls are sent to it, and new ones as they come, until they have room for as
// many tasks as it has triggers. The owner of a tasklist knows its workers by their polls, so one of each goes to it every KnownFor.
//
// Never does: I/O, reading a clock, or keeping what a poll is; a poll is a number here, and is in one place: here, or with the caller that took it.
//
// On failure: nothing can fail. If a call is lost, the next one comes a second later; and a poll that has waited for WaitMax is sent to
// matching, which asks history for what may have been lost.
package idle

import (
	"container/list"
	"maps"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/heap"
)

const (
	// WaitMax is how long a poll stays here.
	WaitMax = 10 * time.Second
	// KnownFor is after how long a poll of a worker goes to matching again.
	KnownFor = time.Minute
	// calledFor is for how long a call counts that is not repeated: a bit more than two repetitions.
	calledFor = 2500 * time.Millisecond
	// looksMax is how many polls are looked at for one that takes a type.
	looksMax = 32
	// workersMax is of how many workers of a tasklist it is known when a poll of theirs went to matching: names cost nothing to make up. Polls of others go.
	workersMax = 4096
	// listsMax is how many tasklists of a domain are known, as a poll is enough to make one. The polls of others go.
	listsMax = 4096
)

// Tasklist names one.
type Tasklist struct{ Domain, Name string }

// Poll is one that waits.
type Poll struct {
	// ID names it; no two have the same.
	ID uint64
	// Worker names who polls.
	Worker string
	// Types are those that it takes; none = all.
	Types []string
	// Max is how many tasks it takes, Bytes how many bytes of them.
	Max, Bytes int
}

func (p *Poll) takes(typ string) bool { return len(p.Types) == 0 || slices.Contains(p.Types, typ) }

// Task is what a poll is asked for.
type Task struct {
	Type  string
	Bytes int
}

// Polls are those that wait, by tasklist. The zero value is empty. It is not safe for concurrent use.
type Polls struct {
	lists map[Tasklist]*tasklist
	// listsOf counts them by domain.
	listsOf map[string]int
	byID    map[uint64]*waiting
	// byLeave are all, by when they have stayed long enough.
	byLeave heap.Heap[*waiting]
	// forgetAt is when it is looked at next what is not used any more.
	forgetAt time.Time
}

// tasklist is one with what waits in it.
type tasklist struct {
	// polls (*waiting) are in the order in which they came, but that those which are given a task go to the end.
	polls list.List
	// called is until when new polls go to matching, wanted for how many tasks they still do, of types and perhaps others.
	called time.Time
	wanted int
	types  []string
	// sent is when a poll of each worker went there last.
	sent map[string]time.Time
	// used is when a poll came last.
	used time.Time
}

type waiting struct {
	Poll
	of     Tasklist
	leaves time.Time
	// given are the tasks that it gets, bytes what they have.
	given, bytes int
	// place in Polls.byLeave, at in tasklist.polls.
	place int
	at    *list.Element
}

// Keep takes a poll that has come in, and tells whether it stays: else it goes to matching.
func (p *Polls) Keep(at Tasklist, poll Poll, now time.Time) bool {
	l := p.list(at)
	if l == nil {
		return false
	}
	l.used = now
	if known, ok := l.sent[poll.Worker]; l.goes(&poll, now) || !ok || now.Sub(known) >= KnownFor {
		l.went(poll.Worker, now)
		return false
	}
	p.add(l, &waiting{Poll: poll, of: at, leaves: now.Add(WaitMax)})
	return true
}

// Back takes a poll that was taken and given nothing. It tells whether it stays.
func (p *Polls) Back(at Tasklist, poll Poll, now time.Time) bool {
	l := p.list(at)
	if l == nil || l.goes(&poll, now) {
		return false
	}
	p.add(l, &waiting{Poll: poll, of: at, leaves: now.Add(WaitMax)})
	return true
}

// went notes that a poll of a worker goes to matching.
func (l *tasklist) went(worker string, now time.Time) {
	if _, known := l.sent[worker]; known || len(l.sent) < workersMax {
		l.sent[worker] = now
	}
}

// goes tells whether a poll goes to matching, which has called for some.
func (l *tasklist) goes(p *Poll, now time.Time) bool {
	if !now.Before(l.called) || l.wanted <= 0 {
		return false
	}
	if len(l.types) == 0 || slices.ContainsFunc(l.types, p.takes) {
		l.wanted -= p.Max
	}
	return true
}

// list finds or makes a tasklist; nil if its domain has too many.
func (p *Polls) list(at Tasklist) *tasklist {
	l := p.lists[at]
	if l == nil && p.listsOf[at.Domain] < listsMax {
		if p.lists == nil {
			p.lists, p.listsOf, p.byID = map[Tasklist]*tasklist{}, map[string]int{}, map[uint64]*waiting{}
			p.byLeave.Less = func(a, b *waiting) bool { return a.leaves.Before(b.leaves) }
			p.byLeave.Place = func(w *waiting) *int { return &w.place }
		}
		l = &tasklist{sent: map[string]time.Time{}}
		p.lists[at] = l
		p.listsOf[at.Domain]++
	}
	return l
}

func (p *Polls) add(l *tasklist, w *waiting) {
	w.at = l.polls.PushBack(w)
	p.byID[w.ID] = w
	p.byLeave.Push(w)
}

// Remove takes out a poll that has ended. One that is not here is none.
func (p *Polls) Remove(id uint64) {
	if w := p.byID[id]; w != nil {
		p.remove(w)
	}
}

func (p *Polls) remove(w *waiting) {
	p.lists[w.of].polls.Remove(w.at)
	delete(p.byID, w.ID)
	p.byLeave.Remove(w)
}

// leave takes out a poll that goes to matching.
func (p *Polls) leave(w *waiting, now time.Time) uint64 {
	p.lists[w.of].went(w.Worker, now)
	p.remove(w)
	return w.ID
}

// Heard takes in how many triggers wait at matching for a tasklist, of some types and perhaps others. It returns the polls that are to be sent there.
func (p *Polls) Heard(at Tasklist, triggers int, types []string, now time.Time) (sent []uint64) {
	l := p.lists[at]
	if l == nil && triggers > 0 {
		if l = p.list(at); l != nil {
			l.used = now
		}
	}
	if l == nil {
		return nil
	}
	l.called, l.wanted, l.types = now.Add(calledFor), triggers, types
	for w := l.first(); w != nil && l.goes(&w.Poll, now); w = l.first() {
		sent = append(sent, p.leave(w, now))
	}
	return sent
}

// Unknown takes in that the owner of some tasklists is new, and knows neither their workers nor what waits in them until it hears of them. It returns a poll of each, which
// are to be sent there, as the next one of each worker is.
func (p *Polls) Unknown(of func(Tasklist) bool, now time.Time) (sent []uint64) {
	for at, l := range p.lists {
		if !of(at) {
			continue
		}
		clear(l.sent)
		if w := l.first(); w != nil {
			sent = append(sent, p.leave(w, now))
		}
	}
	return sent
}

// first is the first poll, or nil.
func (l *tasklist) first() *waiting {
	if e := l.polls.Front(); e != nil {
		return e.Value.(*waiting)
	}
	return nil
}

// Next is when the first poll has stayed long enough; false: none is here.
func (p *Polls) Next() (at time.Time, ok bool) {
	if p.byLeave.Len() == 0 {
		return at, false
	}
	return p.byLeave.First().leaves, true
}

// Due returns the polls that have stayed long enough. It forgets tasklists that no one polls, and workers that are gone.
func (p *Polls) Due(now time.Time) (sent []uint64) {
	for p.byLeave.Len() > 0 && !now.Before(p.byLeave.First().leaves) {
		sent = append(sent, p.leave(p.byLeave.First(), now))
	}
	if !now.Before(p.forgetAt) {
		p.forgetAt = now.Add(KnownFor)
		p.forgetUnused(now)
	}
	return sent
}

func (p *Polls) forgetUnused(now time.Time) {
	for at, l := range p.lists {
		maps.DeleteFunc(l.sent, func(_ string, sent time.Time) bool { return now.Sub(sent) >= 2*KnownFor })
		if l.polls.Len() == 0 && now.Sub(l.used) >= 2*KnownFor {
			delete(p.lists, at)
			if p.listsOf[at.Domain]--; p.listsOf[at.Domain] == 0 {
				delete(p.listsOf, at.Domain)
			}
		}
	}
}

// Has tells whether polls of a tasklist are here.
func (p *Polls) Has(at Tasklist) bool {
	l := p.lists[at]
	return l != nil && l.polls.Len() > 0
}

// Deal gives each of some tasks of a tasklist to a poll, or none of them: to those that have the fewest, so that no poll takes what others wait for. The
// polls go when they are taken out.
func (p *Polls) Deal(at Tasklist, tasks []Task) (polls []uint64, ok bool) {
	l := p.lists[at]
	if l == nil {
		return nil, false
	}
	dealt := make([]*waiting, 0, len(tasks))
	for _, t := range tasks {
		w := l.assign(t)
		if w == nil {
			for i, w := range dealt {
				w.given, w.bytes = w.given-1, w.bytes-tasks[i].Bytes
			}
			return nil, false
		}
		dealt = append(dealt, w)
	}
	polls = make([]uint64, len(dealt))
	for i, w := range dealt {
		polls[i] = w.ID
	}
	return polls, true
}

// assign gives a task to the first poll that takes it and has room. The poll goes to the end.
func (l *tasklist) assign(t Task) *waiting {
	e := l.polls.Front()
	for range looksMax {
		if e == nil {
			return nil
		}
		if w := e.Value.(*waiting); w.given < w.Max && (w.given == 0 || w.bytes+t.Bytes <= w.Bytes) && w.takes(t.Type) {
			w.given, w.bytes = w.given+1, w.bytes+t.Bytes
			l.polls.MoveToBack(e)
			return w
		}
		e = e.Next()
	}
	return nil
}

// TakeOut takes out polls that were given something. A poll that is named again is not here any more.
func (p *Polls) TakeOut(polls []uint64) (taken []uint64) {
	for _, id := range polls {
		if w := p.byID[id]; w != nil {
			p.remove(w)
			taken = append(taken, id)
		}
	}
	return taken
}
