package ownership

import (
	"slices"
	"time"
)

// view is who is alive, as far as this node can tell. It is pure: times come in.
type view struct {
	self   string
	expiry time.Duration
	// seen is when each node was last heard of, this one's own clock.
	seen map[string]time.Time
	// shows is what each node announced last. This one's own is what it announces
	// now, not what came back.
	shows map[string]Announcement
	// loaded: all that was in the bucket at the beginning is known.
	loaded bool
	// echo is when this node last heard itself: until then, the view is true.
	echo time.Time
}

func newView(self string, expiry time.Duration) *view {
	return &view{self: self, expiry: expiry, seen: map[string]time.Time{}, shows: map[string]Announcement{}}
}

// announces notes what this node announces.
func (v *view) announces(a Announcement) { v.shows[v.self] = a }

// take notes what the watch told.
func (v *view) take(s signal, now time.Time) {
	switch {
	case s.loaded:
		v.loaded = true
	case s.left:
		v.left(s.node)
	default:
		v.heard(s.node, s.shows, now)
	}
}

// heard notes a heartbeat.
func (v *view) heard(node string, shows Announcement, now time.Time) {
	if node != v.self {
		v.shows[node] = shows
	} else {
		if now.Sub(v.echo) > v.expiry/2 {
			// Deaf until now: that the others were not heard says nothing about them.
			for n := range v.seen {
				v.seen[n] = now
			}
		}
		v.echo = now
	}
	v.seen[node] = now
}

// left notes that a node took its heartbeat away. This one's own may be removed
// by a namesake; it is alive all the same.
func (v *view) left(node string) {
	if node != v.self {
		delete(v.seen, node)
		delete(v.shows, node)
	}
}

// expire forgets who was not heard of for expiry, unless this node is deaf.
func (v *view) expire(now time.Time) {
	if now.Sub(v.echo) > v.expiry/2 {
		return
	}
	for n, at := range v.seen {
		if n != v.self && now.Sub(at) > v.expiry {
			v.left(n)
		}
	}
}

// candidates are the nodes alive that can read what a cluster of this version
// writes, sorted.
func (v *view) candidates(version uint32) []Candidate {
	var all []Candidate
	for _, node := range v.nodes() {
		if c, ok := candidate(node, v.shows[node], version); ok {
			all = append(all, c)
		}
	}
	return all
}

// nodes is everybody alive, sorted, this one always among them.
func (v *view) nodes() []string {
	all := make([]string, 0, len(v.seen)+1)
	for n := range v.seen {
		all = append(all, n)
	}
	if _, ok := v.seen[v.self]; !ok {
		all = append(all, v.self)
	}
	slices.Sort(all)
	return all
}
