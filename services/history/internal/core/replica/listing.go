package replica

import (
	"bytes"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Listing is the first tasks in memory of a domain that match, in some order. They are found some at a time.
type Listing struct {
	walk  dispatch.Walk
	limit int
	match func(*taskstate.Task) bool
	next  bool
	hits  []hit
}

// hit is a task that was found, at the place that it had.
type hit struct {
	Place
	e *dispatch.Entry
}

// Newest lists up to limit tasks, the newest first.
func Newest(domain string, limit int, match func(*taskstate.Task) bool) *Listing {
	return &Listing{walk: dispatch.Walk{Domain: domain}, limit: limit, match: match}
}

// NextToStart lists up to limit ready tasks, but for those that their order key holds up, in the order of their places.
func NextToStart(domain string, limit int, match func(*taskstate.Task) bool) *Listing {
	return &Listing{walk: dispatch.Walk{Domain: domain}, limit: limit, match: match, next: true}
}

// List looks at some more tasks of the domain of a listing, and tells whether those were the last ones.
func (r *Replica) List(l *Listing) (over bool) {
	return r.Lists.Walk(&l.walk, func(e *dispatch.Entry) {
		if l.picks(e) {
			l.hits = dispatch.KeepFirst(l.hits, hit{PlaceOf(e.Task), e}, l.limit+1, l.compare)
		}
	})
}

func (l *Listing) picks(e *dispatch.Entry) bool {
	return (!l.next || e.CountsAsReady() && !e.HeldUp()) && l.match(e.Task)
}

func (l *Listing) compare(a, b hit) int {
	if l.next {
		return a.Compare(b.Place)
	}
	return bytes.Compare(b.ID[:], a.ID[:])
}

// Found are the tasks that match still, once List has looked at all. More: there are more behind the last one that was found.
func (l *Listing) Found() (tasks []*taskstate.Task, last Place, more bool) {
	n := min(l.limit, len(l.hits))
	for _, h := range l.hits[:n] {
		if last = h.Place; h.e.Listed() && l.picks(h.e) && (!l.next || PlaceOf(h.e.Task) == h.Place) {
			tasks = append(tasks, h.e.Task)
		}
	}
	return tasks, last, len(l.hits) > n
}
