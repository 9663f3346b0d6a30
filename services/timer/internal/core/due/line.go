package due

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/shared/iwrr"
)

// turnTasks is how many tasks of a line are taken before it is another one's turn.
const turnTasks = 256

// lineState belongs to a line of the cursor.
type lineState struct {
	// domain is the one that is apart; nil = the line is that of all others.
	domain *domain
	// late are the tasks that are due by the instant of the round under way, and came after it began.
	late []handle
}

// lines has the tasks that wait, by the lines of the cursor.
type lines struct {
	entries *slab
	groups  *groups
	domains domains
	// cursor covers what was fired; it may be ahead of the stored one by the
	// end of a round, which says the same, and by domains that are set apart or join again.
	cursor Cursor
	// of are the lines of the cursor, by number.
	of    [1 + ApartMost]lineState
	turns turns
	// weightOf is Config.Weight.
	weightOf func(domain string) int
	// nearMS: all tasks that are due by then are here. No line goes further.
	nearMS int64
	// noRound: a task of a bucket that is being loaded fires early, and no round begins before it is near.
	noRound bool
}

// turns says which line is next. It only decides between tasks that are due, so it is not stored.
type turns struct {
	// shared: the last turn was that of the line that most domains share.
	shared bool
	apart  iwrr.Turn
}

// next is the line whose turn it is, of those that are ready: by turns the line that most domains share and one that is apart, and those by the weights of
// their domains.
func (s *turns) next(lines int, ready func(line int) bool, weight func(line int) int) (line int, ok bool) {
	if s.shared = !s.shared && ready(0); s.shared {
		return 0, true
	}
	weights := make([]int, lines-1)
	for i := range weights {
		weights[i] = weight(1 + i)
	}
	if i, after, ok := s.apart.Next(iwrr.Of(weights...), func(i int) bool { return ready(1 + i) }); ok {
		s.apart = after
		return 1 + i, true
	}
	return 0, ready(0)
}

// queue puts a live entry where it waits: the heap or, where it came too late
// for the round that would fire it, the list for after the round.
func (s *lines) queue(h handle) {
	e := s.entries.at(h)
	if s.isLate(e) {
		e.place = placeLate
		late := &s.of[s.domainOf(e).line].late
		*late = append(*late, h)
		return
	}
	s.domains.push(s.domainOf(e), h)
}

func (s *lines) domainOf(e *entry) *domain { return s.groups.at(e.group).queue.domain }

// lineOf is the line of an entry in the cursor.
func (s *lines) lineOf(e *entry) *Line { return s.cursor.line(s.domainOf(e).line) }

// isLate tells that e is due by the instant of the round under way, and came after it began.
func (s *lines) isLate(e *entry) bool {
	l := s.lineOf(e)
	return l.inRound() && e.dueMS <= l.Round.DueMS && e.seq > l.Round.Seq
}

// weight is how many turns a line that is apart has for each one of others.
func (s *lines) weight(line int) int {
	if s.weightOf == nil {
		return 1
	}
	return max(1, s.weightOf(s.of[line].domain.name))
}

// first is the domain of a line with the task that fires next; nil = none waits.
func (s *lines) first(line int) *domain {
	switch d := s.of[line].domain; {
	case d != nil && d.heap.len() > 0:
		return d
	case d == nil && s.domains.fronts.Len() > 0:
		return s.domains.fronts.First()
	}
	return nil
}

// mayFire reports whether a line goes on, or may begin a round.
func (s *lines) mayFire(l *Line) bool { return l.inRound() || !s.noRound }

// waits reports whether a task of a line is due by an instant.
func (s *lines) waits(line int, dueMS int64) bool {
	d := s.first(line)
	return d != nil && d.heap.head().dueMS <= dueMS
}

// endRounds ends the rounds of which nothing is left, and brings together again what need not be apart.
func (s *lines) endRounds() {
	for n := range s.cursor.lines() {
		if l := s.cursor.line(n); l.inRound() && l.Round.DueMS <= s.nearMS && !s.waits(n, l.Round.DueMS) {
			*l = l.roundEnded()
			s.queueLate(n)
		}
	}
	for n := s.cursor.lines() - 1; n > 0; n-- {
		if s.sameAsShared(n) {
			s.join(n)
		}
	}
}

// queueLate queues again what came too late for the round of a line, which was changed.
func (s *lines) queueLate(line int) {
	late := s.of[line].late
	s.of[line].late = nil
	for _, h := range late {
		// A slot may have been freed, and even used again, since it came here.
		if s.entries.at(h).place == placeLate {
			s.queue(h)
		}
	}
}

// split has a domain that fills chunks fire apart if another one of its line has to wait for it.
func (s *lines) split(taken map[*domain]int, chunk int, nowMS int64) {
	lines := s.cursor.lines()
	if lines > ApartMost {
		return
	}
	var most *domain
	for d, n := range taken {
		if d.line == 0 && (most == nil || n > taken[most] || n == taken[most] && d.name < most.name) {
			most = d
		}
	}
	if taken[most]*ApartMost < chunk || most.heap.len() == 0 { // or most is nil, of which none is taken
		return
	}
	s.domains.fronts.Remove(most)
	ofOthers := func(h handle) bool { return s.domainOf(s.entries.at(h)) != most }
	if !s.waits(0, nowMS) && !slices.ContainsFunc(s.of[0].late, ofOthers) {
		s.domains.place(most)
		return
	}
	s.cursor.Apart[lines-1] = Apart{Domain: most.name, Line: s.cursor.Line}
	s.apart(lines)
	s.queueLate(0)
}

// apart takes up what the cursor says of a domain that is apart, and is not in front.
func (s *lines) apart(line int) {
	d := s.domains.take(s.cursor.Apart[line-1].Domain)
	d.line = line
	s.of[line] = lineState{domain: d}
}

// sameAsShared reports whether the shared line says the same of the tasks of a domain that is apart: both cover all that was fired, and nothing that waits. If
// no one else has anything due, the shared line first takes over how far the domain has come.
func (s *lines) sameAsShared(line int) bool {
	l, shared := s.cursor.line(line), &s.cursor.Line
	own := *l
	own.forgetWithin(shared.Base.part()) // the domain may fire nothing any more, and then its line would keep them
	if l.inRound() || own.Ahead != shared.Ahead || max(l.instant(), shared.instant()) > s.nearMS {
		return false
	}
	if !shared.inRound() && shared.Base.within(l.Base) && !s.waits(0, l.Base.DueMS) {
		shared.Base = l.Base
	}
	return l.Base.within(shared.Base) && !s.waits(line, shared.instant())
}

// join ends a line that is apart. The last one has its number from here on.
func (s *lines) join(line int) {
	d, last := s.of[line].domain, s.cursor.lines()-1
	s.cursor.Apart[line-1], s.of[line] = s.cursor.Apart[last-1], s.of[last]
	s.of[line].domain.line = line
	s.cursor.Apart[last-1], s.of[last] = Apart{}, lineState{}
	d.line = 0
	s.domains.place(d)
	s.domains.drop(d)
}
