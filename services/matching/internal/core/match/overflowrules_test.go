package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
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

// TestWhatCameOutOfTheTablesToBeRejected: what may be of a group that is paused history sends again, and what is not rejected goes back.
func TestWhatCameOutOfTheTablesToBeRejected(t *testing.T) {
	for name, c := range map[string]struct {
		change             func(s *Shard, c *call, b *table.Batch)
		stops, back, again int
	}{
		"full":               {func(*Shard, *call, *table.Batch) {}, 1, 0, 0},
		"the shard is left":  {func(s *Shard, _ *call, _ *table.Batch) { s.drain.on = true }, 0, 1, 0},
		"a pause meanwhile":  {func(_ *Shard, c *call, _ *table.Batch) { c.Stale = true }, 0, 0, 1},
		"and its own column": {func(_ *Shard, c *call, b *table.Batch) { c.Stale, b.Group = true, "g" }, 1, 0, 0},
		"not fenced yet":     {func(s *Shard, _ *call, _ *table.Batch) { s.grabs = grab.New[*list](grab.Config{Partitions: 1}) }, 0, 1, 0},
		"no partition": {func(_ *Shard, _ *call, b *table.Batch) {
			b.Triggers = ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(epochMS), 7, 1), Version: 1})
		}, 0, 0, 0},
	} {
		w, s, l := overflowing(t, "d/a")
		out := &call{}
		out.Stand(l)
		out.Stances = []table.Stance{{Max: 2}}
		b := table.Batch{
			Column: table.Column{Priority: 3, Type: "a"}, ReadyAt: 1, Triggers: ids.AppendTrigger(nil, ids.Trigger{ID: w.sorted()[4].id, Version: 1}),
		}
		c.change(s, out, &b)
		asks := s.questions.Len()
		want := &overflow.Want{Limit: l, List: s.list(table.Tasklist{Domain: "d", Name: "l0"}).List}
		s.spilled(out, want, &table.Taken{Batches: []table.Batch{b}}, []table.LimitState{{Used: 2}})
		if stops, back, again := len(s.stops()), len(s.arrivals.All), s.questions.Len()-asks; stops != c.stops || back != c.back || again != c.again {
			t.Errorf("%s: %d are to be rejected, %d go back, %d questions", name, stops, back, again)
		}
		if malformed := s.fx.Counts.Malformed; malformed != map[bool]int64{true: 1}[name == "no partition"] {
			t.Errorf("%s: %d are malformed", name, malformed)
		}
	}
}

// TestWhatBecomesOfAStop: by what history has decided.
func TestWhatBecomesOfAStop(t *testing.T) {
	own := table.Column{Priority: 3, Type: "a", Group: "g"}
	shared := table.Column{Priority: 3, Type: "a"}
	for name, c := range map[string]struct {
		st                  grab.StopRequest
		refused             fault.Code
		rejected, displaced int64
		back, again         int
	}{
		"rejected":          {st: grab.StopRequest{Back: table.Chunk{Column: shared}}, rejected: 1},
		"displaced":         {st: grab.StopRequest{Stop: grab.Stop{Displace: true}}, displaced: 1},
		"has begun":         {st: grab.StopRequest{Back: table.Chunk{Column: shared}}, refused: fault.Stale},
		"not decided":       {st: grab.StopRequest{Back: table.Chunk{Column: shared}}, refused: fault.Unavailable, back: 1},
		"of a paused group": {st: grab.StopRequest{Back: table.Chunk{Column: shared}, Stale: true}, refused: fault.Unavailable, again: 1},
		"of another":        {st: grab.StopRequest{Back: table.Chunk{Column: own}, Stale: true}, refused: fault.Unavailable, back: 1},
		"an attempt":        {st: grab.StopRequest{Stop: grab.Stop{Displace: true}}, refused: fault.FailedPrecondition},
	} {
		_, o := begun(t, 1)
		s := o.s
		c.st.Limit = &limit.Limit{Domain: s.domains["d"].Domain}
		c.st.Back.Tasklist = table.Tasklist{Domain: "d", Name: "l0"}
		asks := s.questions.Len()
		s.stopped(&grab.Stopped{StopRequest: c.st, Refused: c.refused})
		testkit.Equal(t, name+": rejected", s.fx.Counts.Rejected, c.rejected)
		testkit.Equal(t, name+": displaced", s.fx.Counts.Displaced, c.displaced)
		if back, again := len(s.arrivals.All), s.questions.Len()-asks; back != c.back || again != c.again {
			t.Errorf("%s: %d go back, %d questions", name, back, again)
		}
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
