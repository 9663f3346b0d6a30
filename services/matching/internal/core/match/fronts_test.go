package match

import (
	"slices"
	"time"
)

// front is a frontend with polls of several tasklists. What it decides is simple: it visits one tasklist after the other, in their order, and
// all of them each second.
type front struct {
	w    *world
	name string
	// all are its polls, the oldest first.
	all []*several
	// wants are what tasklists want that no poll rested for.
	wants []*frontWant
	// notified counts what it was notified. deaf: it does not hear.
	notified int
	deaf     bool
}

type frontWant struct {
	domain, list string
	Wanted
	until time.Duration
}

// news has frontends and parents of partitions hear what an owner says.
func (w *world) news(fx *Effects) {
	for _, c := range fx.PollsWanted {
		w.after(w.delay(), func() { w.front(c.Frontend).hear(c) })
	}
	for _, b := range fx.Branches {
		w.after(w.delay(), func() { w.branch(b) })
	}
}

// several is one of its polls.
type several struct {
	inbox string
	p     Poll
	lists []string
	todo  []string
	until time.Duration
	// rests: no one has it. over: it was answered here.
	rests, over bool
	visits      int
}

// front finds or makes a frontend.
func (w *world) front(name string) *front {
	f := w.fronts[name]
	if f == nil {
		f = &front{w: w, name: name}
		w.fronts[name] = f
	}
	return f
}

// pollSeveral has a worker poll several tasklists through a frontend.
func (w *world) pollSeveral(inbox, frontend string, p Poll, lists ...string) *several {
	f := w.front(frontend)
	s := &several{inbox: inbox, p: p, lists: lists, todo: slices.Clone(lists), until: w.now + p.For}
	s.p.Visit = frontend
	f.all = append(f.all, s)
	f.step(s)
	return s
}

// of is the poll of an inbox, or nil.
func (w *world) several(inbox string) (*front, *several) {
	for _, f := range w.fronts {
		for _, s := range f.all {
			if s.inbox == inbox {
				return f, s
			}
		}
	}
	return nil, nil
}

// step sends a poll that no one has on, or has it rest.
func (f *front) step(s *several) {
	w := f.w
	for len(s.todo) == 0 {
		list, found := f.wanted(s)
		if !found {
			break
		}
		s.todo = []string{list}
	}
	if len(s.todo) > 0 {
		list := s.todo[0]
		s.todo = s.todo[1:]
		part := 0
		if s.visits == 0 {
			part = w.turn[list] % w.partsOf(list)
		}
		f.visit(s, list, part)
		return
	}
	if w.now >= s.until {
		f.end(s)
		return
	}
	s.rests = true
	visits := s.visits
	w.after(min(time.Second, s.until-w.now), func() {
		if s.rests && s.visits == visits {
			s.rests = false
			if w.now < s.until {
				s.todo = slices.Clone(s.lists)
			}
			f.step(s)
		}
	})
}

func (f *front) visit(s *several, list string, partition int) {
	w := f.w
	s.visits++
	s.p.Tasklist, s.p.Partition, s.p.For, s.p.Moved = list, partition, max(0, s.until-w.now), s.visits > 1
	w.sendAgain(s.inbox, s.p)
}

// awayFor is how long a frontend leaves a tasklist alone that no one serves.
const awayFor = 100 * ms

// sendAgain sends a poll that was sent before. A visit that no one serves goes on elsewhere.
func (w *world) sendAgain(inbox string, p Poll) {
	before := w.polls[inbox]
	if f, s := w.several(inbox); !w.poll(inbox, p) && s != nil {
		if before == nil {
			w.polls[inbox] = &pollSeen{poll: p, until: s.until}
		}
		w.after(awayFor, func() { f.nothing(s) })
		return
	}
	if now := w.polls[inbox]; before != nil && now != before {
		now.answered, now.again = before.answered, before.again
	}
}

// wanted is a tasklist that wants a poll.
func (f *front) wanted(s *several) (string, bool) {
	for _, want := range f.wants {
		if want.Triggers > 0 && f.w.now < want.until && want.takes(s) {
			want.Triggers -= s.p.Max
			return want.list, true
		}
	}
	return "", false
}

func (want *frontWant) takes(s *several) bool {
	return want.domain == s.p.Domain && slices.Contains(s.lists, want.list) && (len(s.p.Types) == 0 || slices.Contains(s.p.Types, want.Type))
}

// end answers a poll without work.
func (f *front) end(s *several) {
	if seen := f.w.polls[s.inbox]; seen.answered > 0 && !seen.again {
		f.w.t.Fatalf("poll %q was answered, and ends at its frontend", s.inbox)
	} else {
		seen.answered++
	}
	s.over = true
}

// nothing has a visit given up.
func (f *front) nothing(s *several) {
	if f.w.polls[s.inbox].answered > 0 { // by an owner that was overtaken
		s.over = true
		return
	}
	if s.p.Partition != 0 && s.visits == 1 {
		f.visit(s, s.p.Tasklist, 0)
		return
	}
	f.step(s)
}

// hear has polls that rest go where they are wanted.
func (f *front) hear(c PollsWanted) {
	if f.notified++; f.deaf {
		return
	}
	f.wants = slices.DeleteFunc(f.wants, func(want *frontWant) bool {
		return want.until <= f.w.now || want.domain == c.Domain && want.list == c.Tasklist
	})
	for _, one := range c.Wanted {
		f.wants = append(f.wants, &frontWant{domain: c.Domain, list: c.Tasklist, Wanted: one, until: f.w.now + time.Second})
	}
	for _, s := range f.all {
		if list, found := "", false; s.rests {
			if list, found = f.wanted(s); found {
				s.rests, s.todo = false, []string{list}
				f.step(s)
			}
		}
	}
}

// checkSeveral: each poll was answered, by an owner or its frontend, but those that an owner had that is no more.
func (w *world) checkSeveral() {
	n := 0
	for _, f := range w.fronts {
		for _, s := range f.all {
			lost := slices.ContainsFunc(w.owners, func(o *owner) bool {
				_, has := o.live[s.inbox]
				return has && (o.dead || o.overtaken)
			})
			if s.rests || w.polls[s.inbox].answered == 0 && !lost {
				w.t.Errorf("poll %q of %v was not answered: %+v", s.inbox, s.lists, s)
			}
			if w.polls[s.inbox].tasks > 0 {
				n++
			}
		}
	}
	if n == 0 {
		w.t.Error("no poll of several tasklists got anything")
	}
}
