package match

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// stops are those that wait to be sent; they are sent no more.
func (s *Shard) stops() []grab.StopRequest {
	_, _, stops := s.grabs.Leave()
	return stops
}

// overflowing is a limit whose policy may act now: two slots, both taken, and three tasks of tasklist l0 that have waited for long enough.
func overflowing(t *testing.T, key string) (w *world, s *Shard, l *limit.Limit) {
	t.Helper()
	w, o := begun(t, 1)
	w.ends, w.policies[key] = false, limit.RejectNewest
	w.group = func() string { return "g" }
	w.set(o, map[string]int{key: 2, "d": 10})
	w.pollAll(20)
	w.ready("d", "l0", "a", 3, 2)
	w.run(overflowAfter / 4)
	w.ready("d", "l0", "a", 3, 3)
	w.run(overflowAfter / 4)
	s = o.s
	l = s.domains["d"].Limit(map[string]table.Ref{"d/a": "type/a", "d/a*": table.PerGroupRef("type/a").Of("g")}[key])
	if w.wantEnded(0, 0); l == nil || l.Blocked != table.Full || l.Over.FullAt == 0 {
		t.Fatalf("%s is not full: %+v", key, l)
	}
	s.now = Now{Mono: w.now + overflowAfter, MS: epochMS + (w.now + overflowAfter).Milliseconds()}
	s.limits.Begin(s.now.Mono, s.now.MS)
	return w, s, l
}

// TestWhoIsPolledFor: by polls here, also by one that stays, and perhaps by one in another partition.
func TestWhoIsPolledFor(t *testing.T) {
	for name, c := range map[string]struct {
		poll       *poll
		partitions int
		want       bool
	}{
		"no poll":          {nil, 1, false},
		"a poll":           {&poll{ID: 1, Types: []string{"a"}}, 1, true},
		"for another type": {&poll{ID: 1, Types: []string{"b"}}, 1, false},
		"one that stays":   {&poll{Types: []string{"a"}}, 1, true},
		"partitions":       {nil, 2, true},
	} {
		w, o := begun(t, 1)
		w.spread["l7"] = c.partitions
		l := o.s.list(table.Tasklist{Domain: "d", Name: "l7"})
		if c.poll != nil {
			l.queue.Add(c.poll)
		}
		testkit.Equal(t, name, l.polledFor("a"), c.want)
	}
}

// TestAShardThatIsLeftStopsNobody: what was to be rejected goes back to the tables.
func TestAShardThatIsLeftStopsNobody(t *testing.T) {
	_, s, l := overflowing(t, "d/a")
	back := table.Chunk{Tasklist: table.Tasklist{Domain: "d", Name: "l0"}}
	for _, st := range []grab.StopRequest{{Back: back}, {Stop: grab.Stop{Displace: true}}, {Back: back}} {
		st.Limit = l
		s.grabs.AddStop(st)
	}
	s.leave()
	if n := len(s.stops()); n > 0 || len(s.arrivals.All) != 2 {
		t.Errorf("%d are to be sent, %d go back", n, len(s.arrivals.All))
	}
}
