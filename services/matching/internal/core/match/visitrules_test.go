package match

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// TestWhichFrontendIsCalled: one that takes the type and was not notified of late; first one that is notified just now, then one that was not since it
// sent a poll, and of these the one that was there last.
func TestWhichFrontendIsCalled(t *testing.T) {
	const now = calledAgain / 2 * 3
	a, b := []string{"a"}, []string{"b"}
	for name, c := range map[string]struct {
		now  time.Duration
		all  []*interest
		want string
	}{
		"none":                  {now, nil, ""},
		"another type":          {now, []*interest{{frontend: "x", types: b}}, ""},
		"any type":              {now, []*interest{{frontend: "x", types: b}, {frontend: "y"}}, "y"},
		"just begun":            {1, []*interest{{frontend: "x", types: a}}, "x"},
		"notified of late":      {now, []*interest{{frontend: "x", types: a, calledAt: now - calledAgain + 1}}, ""},
		"notified long ago":     {now, []*interest{{frontend: "x", types: a, calledAt: now - calledAgain}}, "x"},
		"not, or long ago":      {now, []*interest{{frontend: "x", calledAt: 1}, {frontend: "y"}}, "y"},
		"both long ago":         {now, []*interest{{frontend: "x", calledAt: 2}, {frontend: "y", calledAt: 1}}, "y"},
		"just now, or not":      {now, []*interest{{frontend: "x"}, {frontend: "y", calledAt: now}, {frontend: "z"}}, "y"},
		"who was there last":    {now, []*interest{{frontend: "x", until: 1}, {frontend: "y", until: 3}, {frontend: "z", until: 2}}, "y"},
		"just now, other types": {now, []*interest{{frontend: "x", types: a}, {frontend: "y", types: b, calledAt: now}}, "x"},
	} {
		got := ""
		if one := (&list{interests: c.all}).called("a", c.now); one != nil {
			got = one.frontend
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	l := &list{interests: []*interest{{frontend: "x", calledAt: 5}, {frontend: "y", calledAt: 5}}, callAt: 9}
	if l.visited("x"); l.interests[0].calledAt != 0 || l.interests[1].calledAt != 5 || l.callAt != 0 {
		t.Errorf("after a visit: %+v %+v, %v", l.interests[0], l.interests[1], l.callAt)
	}
}

// TestWhoIsRememberedLongest: who was there last, for each set of types; of domains that remember as many, the one whose oldest is the oldest forgets.
func TestWhoIsRememberedLongest(t *testing.T) {
	_, o := begun(t, 1)
	s, l := o.s, o.s.list(table.Tasklist{Domain: "d", Name: "l0"})
	for i, p := range []*poll{{visit: "x"}, {visit: "x", types: []string{"a"}, key: "a"}, {visit: "y"}, {visit: "x"}} {
		p.list = l
		s.now.Mono += time.Second
		l.news = false
		s.remember(p)
		if !l.news {
			t.Errorf("number %d: what waits is not looked at", i)
		}
	}
	mine := s.interests.byDomain["d"]
	if len(l.interests) != 3 || mine.Len() != 3 || mine.Back().Value.(*interest).key != "a" || s.interests.all.Back().Value.(*interest).key != "a" ||
		mine.Front().Value.(*interest).until != s.now.Mono+interestFor {
		t.Errorf("%d are remembered", mine.Len())
	}
	for range 8 {
		var r interests
		for d, until := range []time.Duration{10, 5, 7, 6} {
			l := &list{Tasklist: table.Tasklist{Domain: fmt.Sprint("d", d)}}
			for range interestsMax / 4 {
				l.interests = append(l.interests, r.add(&interest{list: l, until: until}))
			}
		}
		if r.makeRoom("new"); r.byDomain["d1"].Len() != interestsMax/4-1 || r.all.Len() != interestsMax-1 {
			t.Fatalf("%d are left, %d where the oldest was", r.all.Len(), r.byDomain["d1"].Len())
		}
		if r.makeRoom("d2"); r.byDomain["d2"].Len() != interestsMax/4-1 {
			t.Fatalf("a domain with its part remembers %d", r.byDomain["d2"].Len())
		}
		if r.makeRoom("new"); r.all.Len() != interestsMax-2 {
			t.Fatal("one is forgotten though there is room")
		}
	}
}

// TestWhenAVisitIsAPoll: it is not given up where it is to be answered, the shard is left, or its time is long over.
func TestWhenAVisitIsAPoll(t *testing.T) {
	for name, change := range map[string]func(s *Shard, p *poll){
		"no visit":          func(_ *Shard, p *poll) { p.visit = "" },
		"it got something":  func(_ *Shard, p *poll) { p.granted = slices.Grow(p.granted, 1)[:1] },
		"the shard is left": func(s *Shard, _ *poll) { s.drain.on = true },
		"its time is over":  func(s *Shard, p *poll) { p.until = s.now.Mono - pollGrace },
	} {
		w, o := begun(t, 1)
		w.partitions[0].silent = true
		w.ready("d", "l0", "a", 3, 1)
		w.pollSeveral("p", "f", Poll{Domain: "d", Max: 2, For: time.Minute}, "l0", "l1")
		for len(o.s.lanes[0].flight) == 0 {
			w.run(ms)
		}
		p := o.s.polls.due[0] // its grab is under way
		if change(o.s, p); p.pending != 1 || o.s.leaves(p) {
			t.Errorf("%s: it is given up; %d are under way", name, p.pending)
		}
	}
}

// TestWhoStandsInForFrontends: a tasklist that a frontend was interested in, for what it lacks, if its groups are known.
func TestWhoStandsInForFrontends(t *testing.T) {
	one := table.Column{Priority: 3, Type: "a", Group: "g"}
	for name, c := range map[string]struct {
		at     table.Column
		change func(d *domain, l *list)
		waits  table.Ref
	}{
		"a group that is counted": {one, func(d *domain, _ *list) { d.limits["type/a/group"].unknown = 1 }, "type/a/group"},
		"the domain is full":      {one, func(d *domain, _ *list) { d.limits["domain"].blocked = table.Full }, "domain"},
		"nothing is lacking":      {one, func(*domain, *list) {}, ""},
		"no frontend": {one, func(d *domain, l *list) {
			d.limits["domain"].blocked, l.interests = table.Full, nil
		}, ""},
		"groups that are not known": {table.Column{Priority: 3, Type: "a"}, func(d *domain, _ *list) { d.limits["domain"].blocked = table.Full }, ""},
	} {
		w, o := begun(t, 1)
		w.set(o, map[string]int{"d/a*": 2, "d": 3})
		l := o.s.list(table.Tasklist{Domain: "d", Name: "l0"})
		l.interests = []*interest{{list: l, frontend: "f"}}
		c.change(l.domain, l)
		o.s.standIn(l, c.at)
		got := table.Ref("")
		for ref, lim := range l.domain.limits {
			if lim.waiters.any() {
				got = ref
			}
		}
		if got != c.waits {
			t.Errorf("%s: it waits for %q", name, got)
		}
	}
}

// TestNobodyIsCalledInVain: not who was there long ago, nor by a shard that is left.
func TestNobodyIsCalledInVain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *Shard, l *list)
		calls  int
	}{
		"one":               {func(*Shard, *list) {}, 1},
		"long ago":          {func(s *Shard, l *list) { l.interests[0].until = s.now.Mono }, 0},
		"nobody":            {func(s *Shard, l *list) { s.interests.forget(l.interests[0]) }, 0},
		"the shard is left": {func(s *Shard, _ *list) { s.drain.on = true }, 0},
	} {
		w, o := begun(t, 1)
		w.ready("d", "l0", "a", 3, 2)
		w.run(100 * ms)
		s, l := o.s, o.s.list(table.Tasklist{Domain: "d", Name: "l0"})
		l.interests = []*interest{s.interests.add(&interest{list: l, frontend: "f", until: w.now + time.Second})}
		s.now.Mono, s.fx.PollsWanted = w.now, nil
		c.change(s, l)
		if more := s.callPolls(l); more != (c.calls > 0) || len(s.fx.PollsWanted) != c.calls {
			t.Errorf("%s: %d calls, more: %v", name, len(s.fx.PollsWanted), more)
		}
	}
}
