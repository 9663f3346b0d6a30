package replica

import (
	"fmt"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// shelve appends a page, if there is room for it in the story's log.
func (l *life) shelve(all []Proposal) {
	m := &message{shelf: true, lane: ids.Lanes, carried: make(map[int]carriedRecord)}
	for i, p := range all {
		m.carried[i] = carriedRecord{cloneTask(p.Carried), p.AsOf, nil}
		m.list = append(m.list, taskstate.Event{Kind: p.Kind, ID: p.ID, Fence: p.Fence, Domain: p.Domain})
		m.want = append(m.want, new(want))
	}
	switch l.rng.IntN(6) {
	case 0: // its owner dies before the event is stored, or that comes late
		if l.insert(m) {
			l.unsaid = append(l.unsaid, m)
		}
	default: // one message for both
		m.events, m.says = true, m
		if l.insert(m) && l.rng.IntN(3) == 0 {
			l.unsaid = append(l.unsaid, m)
		}
	}
}

// insert appends what an owner writes, if there is room for it in the story's log.
func (l *life) insert(m *message) bool {
	m.seq, m.at = l.end()+1, l.log[l.visible-1].at
	if l.visible < len(l.log) && l.log[l.visible].seq == m.seq {
		return false
	}
	l.log = slices.Insert(l.log, l.visible, m)
	l.visible++
	return true
}

// sayLate appends an event that says of a page that it is written, which was said before, or was under way since.
func (l *life) sayLate() {
	if len(l.unsaid) == 0 || l.visible == 0 {
		return
	}
	i := l.rng.IntN(len(l.unsaid))
	page := l.unsaid[i]
	if l.rng.IntN(2) == 0 {
		l.unsaid = slices.Delete(l.unsaid, i, i+1)
	}
	l.insert(&message{events: true, says: page})
}

// onPage is a fresh copy of what a page has.
func (m *message) onPage() (all []*Carried) {
	for i := range m.list {
		c := m.carried[i]
		task := cloneTask(&c.task)
		task.Before = 0
		all = append(all, &Carried{Entry: &Entry{Task: task}, AsOf: c.asOf, Granted: c.granted})
	}
	return all
}

// pageAt is a page in the log.
func (l *life) pageAt(seq uint64) *message {
	for _, m := range l.log[:l.visible] {
		if m.seq == seq && m.shelf {
			if m.deleted {
				panic(fmt.Sprintf("page %d is needed, and deleted", seq))
			}
			return m
		}
	}
	panic(fmt.Sprintf("there is no page %d", seq))
}

// givePage reads a page for the replica.
func (l *life) givePage(seq uint64) {
	m := l.pageAt(seq)
	l.note("page %s", m)
	l.step(&Page{Seq: seq, Tasks: m.onPage()})
}

// readPage reads one that was asked for.
func (l *life) readPage() bool {
	if len(l.pages) == 0 {
		return false
	}
	i := l.rng.IntN(len(l.pages))
	seq := l.pages[i]
	l.pages = slices.Delete(l.pages, i, i+1)
	l.givePage(seq)
	return true
}

// readBase reads the pages that the checkpoint names, the newest first.
func (l *life) readBase() {
	for _, p := range slices.Backward(l.saved.Pages) {
		l.note("of the checkpoint, %+v", p)
		l.givePage(p.Seq)
	}
}

// deletePages deletes what a takeover from the saved checkpoint does not need.
func (l *life) deletePages() {
	for _, m := range l.log[:l.visible] {
		if m.shelf && (m.seq <= l.saved.shelf || slices.Contains(l.saved.dead, m.seq)) {
			m.deleted = true
		}
	}
}

// away is a task on a page that is away; nil = it is on none.
func (l *life) away(id ids.TaskID) (found *taskstate.Task) {
	for _, p := range l.r.pages {
		if !p.away {
			continue
		}
		for _, c := range l.pageAt(p.seq).carried {
			if c.task.ID != id {
				continue
			}
			if found != nil {
				panic(fmt.Sprintf("%s is on two pages", id))
			}
			found = &c.task
		}
	}
	return found
}
