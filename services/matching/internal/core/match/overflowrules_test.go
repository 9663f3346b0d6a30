package match

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// overflowing is a limit whose policy may act now: two slots, both taken, and three tasks of tasklist l0 that have waited for long enough.
func overflowing(t *testing.T, key string, policy limit.OnFull) (w *world, s *Shard, l *limit.Limit) {
	t.Helper()
	w, o := begun(t, 1)
	w.ends, w.policies[key] = false, policy
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

// stopping is a shard without anything, whose only partition is fenced.
func stopping() *Shard {
	s := &Shard{cfg: Config{Partitions: 1}, fx: &Effects{}}
	s.grabs = grab.New[*list](grab.Config{Partitions: 1, InFlightMax: 1, EventsMax: 1})
	s.grabs.Begin(0, &s.fx.Effects, &s.fx.Counts.Counts)
	s.grabs.SendFences()
	s.grabs.Decide(&grab.Verdicts{Batch: 1, All: []grab.Verdict{{}}})
	return s
}

// stops are those that wait to be sent; they are sent no more.
func (s *Shard) stops() []grab.StopRequest {
	_, _, stops := s.grabs.Leave()
	return stops
}

// fill has as many stops wait to be sent, of several domains.
func (s *Shard) fill(n int) {
	var other *limit.Limit
	for i := range n {
		if i%grab.StopsOfDomainMax == 0 {
			other = &limit.Limit{Domain: &limit.Domain{}}
		}
		s.grabs.AddStop(grab.StopRequest{Limit: other, Stop: grab.Stop{Displace: true}})
	}
}

// TestASweepLooksAtFullLimits: not while nothing can be called or asked, nor more often than it should.
func TestASweepLooksAtFullLimits(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *Shard, l *limit.Limit)
		looks  int
	}{
		"full":                     {func(*Shard, *limit.Limit) {}, 1},
		"the tables are away":      {func(s *Shard, l *limit.Limit) { domainOf(s, l).state = opening }, 0},
		"a call is under way":      {func(s *Shard, l *limit.Limit) { domainOf(s, l).call = &call{} }, 1},
		"the shard is left":        {func(s *Shard, _ *limit.Limit) { s.drain.on = true }, 0},
		"it has just acted":        {func(s *Shard, l *limit.Limit) { l.Over.At = s.now.Mono + 1 }, 0},
		"it acted long ago":        {func(s *Shard, l *limit.Limit) { l.Over.At = s.now.Mono }, 1},
		"it has not been for long": {func(s *Shard, l *limit.Limit) { l.Over.FullAt = s.now.Mono }, 0},
	} {
		for _, policy := range []limit.OnFull{limit.RejectNewest, limit.CancelOldest} {
			_, s, l := overflowing(t, "d/a", policy)
			list := s.list(table.Tasklist{Domain: "d", Name: "l0"})
			rest := limit.Ahead{List: list.List, Chunk: table.Chunk{Column: table.Column{Priority: 3, Type: "a"}}}
			l.Ahead = []limit.Ahead{rest}
			asked := s.questions.Len()
			c.change(s, l)
			for range 2 {
				s.sweepOverflows(domainOf(s, l))
			}
			n := len(l.Domain.Overflows)
			if policy == limit.CancelOldest {
				n = s.questions.Len() - asked
			}
			if n != c.looks || policy == limit.RejectNewest && (len(l.Ahead) == 0) != (n == 1) {
				t.Errorf("%s, policy %d: %d looks, %d are ahead", name, policy, n, len(l.Ahead))
			}
		}
	}
}

// TestWhatACallTakesToBeRejected: what changed since the sweep counts, and a call is bounded. What it has no room for the next one takes.
func TestWhatACallTakesToBeRejected(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(s *Shard, l *limit.Limit, c *call)
		takes, left int
	}{
		"full":                       {func(*Shard, *limit.Limit, *call) {}, 1, 0},
		"the shard is left":          {func(s *Shard, _ *limit.Limit, _ *call) { s.drain.on = true }, 0, 0},
		"another policy":             {func(_ *Shard, l *limit.Limit, _ *call) { l.OnFull = limit.CancelOldest }, 0, 0},
		"full for a moment":          {func(s *Shard, l *limit.Limit, _ *call) { l.Over.FullAt = s.now.Mono }, 0, 0},
		"full no more":               {func(_ *Shard, l *limit.Limit, _ *call) { l.Blocked = 0 }, 0, 0},
		"it looks at many":           {func(_ *Shard, _ *limit.Limit, c *call) { c.candidates = callCandidatesMax }, 0, 1},
		"it takes of many":           {func(_ *Shard, _ *limit.Limit, c *call) { c.spills = make([]spill, overflowWantsMax) }, 0, 1},
		"one less":                   {func(_ *Shard, _ *limit.Limit, c *call) { c.spills = make([]spill, overflowWantsMax-1) }, 1, 0},
		"nothing has waited so long": {func(s *Shard, _ *limit.Limit, _ *call) { s.now.MS -= overflowAfter.Milliseconds() }, 0, 0},
	} {
		_, s, l := overflowing(t, "d/a", limit.RejectNewest)
		s.sweepOverflows(domainOf(s, l))
		now, out := s.now.Mono, &call{}
		c.change(s, l, out)
		before, looked := len(out.spills), out.candidates
		s.wantOverflows(domainOf(s, l), out)
		if len(out.spills)-before != c.takes || len(out.out.Wants) != c.takes || out.candidates-looked != c.takes || len(l.Domain.Overflows) != c.left || l.Over.Wanted != (c.left == 1) {
			t.Errorf("%s: takes %d with %d candidates, %d are left, wanted: %v", name, len(out.spills)-before, out.candidates, len(l.Domain.Overflows), l.Over.Wanted)
		}
		if c.takes > 0 && (l.Over.At != now+overflowEvery || out.out.Wants[0].N != overflowMax || len(out.out.Wants[0].Candidates[0].Path) > 0) {
			t.Errorf("%s: %+v, again at %v", name, out.out.Wants, l.Over.At)
		}
	}
}

// TestWhoWaitsForALimit: what waits for this one, for long enough, and for which there is a worker. What waits for another one does not.
func TestWhoWaitsForALimit(t *testing.T) {
	for name, change := range map[string]func(s *Shard, l *limit.Limit){
		"it waits":                        func(*Shard, *limit.Limit) {},
		"too young":                       func(s *Shard, _ *limit.Limit) { s.now.MS -= overflowAfter.Milliseconds() },
		"for another, which is full, too": func(s *Shard, l *limit.Limit) { l.Domain.Limits["domain"].Blocked = table.Full },
		"without a worker": func(s *Shard, _ *limit.Limit) {
			s.list(table.Tasklist{Domain: "d", Name: "l0"}).queue = pairing.Queue[*list, grab.Grant]{}
		},
	} {
		_, s, l := overflowing(t, "d/a", limit.RejectNewest)
		change(s, l)
		if n := len(s.waitingFor(l)); n != map[bool]int{true: 1}[name == "it waits"] {
			t.Errorf("%s: %d", name, n)
		}
	}
	w, o := begun(t, 1) // more tasklists than one call takes triggers of
	w.ends, w.policies["d/a"] = false, limit.CancelOldest
	w.set(o, map[string]int{"d/a": 1})
	crowd(w, overflowWantsMax+5, 1)
	o.s.now.MS += time.Hour.Milliseconds()
	testkit.Equal(t, "tasklists", len(o.s.waitingFor(o.s.domains["d"].Limits["type/a"])), overflowWantsMax)
	// A group of weight 0 has ranks behind all others, and their ages are among them.
	s, l := &Shard{now: Now{MS: 5000}}, &limit.Limit{Setting: limit.Setting{OnFullAfter: time.Second}}
	for readyAt, want := range map[int64]bool{4_000_999: true, 4_001_000: false, fairness.IdleFrom + 4_000_999: true, fairness.IdleFrom + 4_001_000: false} {
		if s.longAgo(l, readyAt) != want {
			t.Errorf("since %d: %v", readyAt, !want)
		}
	}
}

// TestWhoIsPolledFor: by polls here, also by one that stays, and perhaps by one in another partition.
func TestWhoIsPolledFor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *list)
		want   bool
	}{
		"no poll":          {func(*list) {}, false},
		"a poll":           {func(l *list) { l.queue.Add(&poll{ID: 1, Types: []string{"a"}}) }, true},
		"for another type": {func(l *list) { l.queue.Add(&poll{ID: 1, Types: []string{"b"}}) }, false},
		"one that stays":   {func(l *list) { l.queue.Add(&poll{Types: []string{"a"}}) }, true},
		"partitions":       {func(l *list) { l.spread = true }, true},
	} {
		l := &list{}
		if c.change(l); l.polledFor("a") != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

// TestWhatCameOutOfTheTablesIsLookedAtAgain: it is rejected only if the limit was full all the time until then. Else it goes back, but for what may be
// of a group that is paused, which history sends again.
func TestWhatCameOutOfTheTablesIsLookedAtAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change             func(s *Shard, l *limit.Limit, c *call, o *table.Outcome)
		stops, back, again int
	}{
		"full":                 {func(*Shard, *limit.Limit, *call, *table.Outcome) {}, 1, 0, 0},
		"freed meanwhile":      {func(_ *Shard, l *limit.Limit, _ *call, _ *table.Outcome) { l.Again = true }, 0, 1, 0},
		"full no more":         {func(_ *Shard, l *limit.Limit, _ *call, _ *table.Outcome) { l.Over.FullAt = 0 }, 0, 1, 0},
		"the shard is left":    {func(s *Shard, _ *limit.Limit, _ *call, _ *table.Outcome) { s.drain.on = true }, 0, 1, 0},
		"the tables know":      {func(_ *Shard, _ *limit.Limit, _ *call, o *table.Outcome) { o.Limits[0].Used-- }, 0, 1, 0},
		"others are not known": {func(_ *Shard, _ *limit.Limit, _ *call, o *table.Outcome) { o.Limits[0].Restoring = true }, 0, 1, 0},
		"younger": {func(s *Shard, _ *limit.Limit, _ *call, o *table.Outcome) {
			o.Taken[0].Batches[0].ReadyAt = s.now.MS * 1000
		}, 0, 1, 0},
		"a pause meanwhile": {func(_ *Shard, _ *limit.Limit, c *call, _ *table.Outcome) { c.stale = true }, 0, 0, 1},
		"and its own column": {func(_ *Shard, _ *limit.Limit, c *call, o *table.Outcome) {
			c.stale, o.Taken[0].Batches[0].Group = true, "g"
		}, 1, 0, 0},
		"not fenced yet": {func(s *Shard, _ *limit.Limit, _ *call, _ *table.Outcome) {
			s.grabs = grab.New[*list](grab.Config{Partitions: 1})
		}, 0, 1, 0},
		"no partition": {func(_ *Shard, _ *limit.Limit, _ *call, o *table.Outcome) {
			o.Taken[0].Batches[0].Triggers = ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(epochMS), 7, 1), Version: 1})
		}, 0, 0, 0},
	} {
		w, s, l := overflowing(t, "d/a", limit.RejectNewest)
		list := s.list(table.Tasklist{Domain: "d", Name: "l0"})
		out := &call{spills: []spill{{l, list}}}
		out.Stand(l)
		out.Stances = []table.Stance{{Max: 2}}
		o := &table.Outcome{Limits: []table.LimitState{{Used: 2}}, Taken: []table.Taken{{Batches: []table.Batch{{
			Column: table.Column{Priority: 3, Type: "a"}, ReadyAt: 1, Triggers: ids.AppendTrigger(nil, ids.Trigger{ID: w.sorted()[4].id, Version: 1}),
		}}}}}
		c.change(s, l, out, o)
		asks := s.questions.Len()
		s.spilled(out, 0, o)
		if stops, back, again := len(s.stops()), len(s.arrivals), s.questions.Len()-asks; stops != c.stops || back != c.back || again != c.again {
			t.Errorf("%s: %d are to be rejected, %d go back, %d questions", name, stops, back, again)
		}
		if malformed := s.fx.Counts.Malformed; malformed != map[bool]int64{true: 1}[name == "no partition"] {
			t.Errorf("%s: %d are malformed", name, malformed)
		}
	}
}

// TestWhatIsRejectedMayGoBack: each trigger by itself, as many as may be on their way to a partition. A column of which nothing is left waits no more.
func TestWhatIsRejectedMayGoBack(t *testing.T) {
	w, s, l := overflowing(t, "d/a*", limit.RejectNewest)
	var packed []byte
	for _, one := range w.sorted()[2:5] {
		packed = ids.AppendTrigger(packed, ids.Trigger{ID: one.id, Version: 1})
	}
	s.fill(grab.StopsMax - 2)
	left := s.reject(l, table.Chunk{Triggers: packed})
	stops := s.stops()
	if !slices.Equal(left, packed[2*ids.TriggerBytes:]) || len(stops) != grab.StopsMax {
		t.Fatalf("%d bytes are left", len(left))
	}
	for i, st := range stops[grab.StopsMax-2:] {
		if at := i * ids.TriggerBytes; !slices.Equal(st.Back.Triggers, packed[at:at+ids.TriggerBytes]) || st.ReadyBy != s.readyBy(l) || st.Stop.Limit != l.Ref || st.Domain != "d" {
			t.Errorf("number %d: %+v", i, st)
		}
	}
	list, other := s.listOf(l.Parked[0].List), &limit.List{}
	at := l.Parked[0].At
	for _, empty := range []bool{false, true} {
		l.Parked = []limit.Parked{{List: list.List, At: at}, {List: list.List}, {List: other, At: at}}
		out := &call{spills: []spill{{l, list}}, Call: limit.Call{Limits: []*limit.Limit{nil}}}
		out.Stand(l)
		out.Stances = make([]table.Stance, len(out.Limits))
		s.spilled(out, 0, &table.Outcome{Limits: make([]table.LimitState, len(out.Limits)), Taken: []table.Taken{{Heads: []table.Head{{Column: at, Empty: empty}}}}})
		testkit.Equal(t, fmt.Sprintf("empty %v: columns wait", empty), len(l.Parked), map[bool]int{false: 3, true: 2}[empty])
	}
}

// TestWhatBecomesOfAStop: by what history has decided, which counts once.
func TestWhatBecomesOfAStop(t *testing.T) {
	own := table.Column{Priority: 3, Type: "a", Group: "g"}
	shared := table.Column{Priority: 3, Type: "a"}
	for name, c := range map[string]struct {
		st                    grab.StopRequest
		refused               fault.Code
		rejected, displaced   int64
		back, again           int
		patience, rest, until time.Duration
	}{
		"rejected":              {st: grab.StopRequest{Back: table.Chunk{Column: shared}}, rejected: 1},
		"displaced":             {st: grab.StopRequest{Stop: grab.Stop{Displace: true}}, displaced: 1},
		"has begun":             {st: grab.StopRequest{Back: table.Chunk{Column: shared}}, refused: fault.Stale},
		"is over":               {st: grab.StopRequest{Back: table.Chunk{Column: shared}}, refused: fault.NotFound},
		"too young":             {st: grab.StopRequest{Back: table.Chunk{Column: shared}}, refused: fault.FailedPrecondition, back: 1, until: overflowEvery},
		"too young, by a lot":   {st: grab.StopRequest{Back: table.Chunk{Column: shared}}, refused: fault.FailedPrecondition, back: 1, patience: time.Minute, until: time.Minute},
		"not decided":           {st: grab.StopRequest{Back: table.Chunk{Column: shared}}, refused: fault.Unavailable, back: 1},
		"of a paused group":     {st: grab.StopRequest{Back: table.Chunk{Column: shared}, Stale: true}, refused: fault.Unavailable, again: 1},
		"of another":            {st: grab.StopRequest{Back: table.Chunk{Column: own}, Stale: true}, refused: fault.Unavailable, back: 1},
		"an attempt, too young": {st: grab.StopRequest{Stop: grab.Stop{Displace: true}}, refused: fault.FailedPrecondition},
	} {
		for _, perGroup := range []bool{false, true} {
			_, o := begun(t, 1)
			s := o.s
			of := &limit.Limit{Setting: limit.Setting{OnFullAfter: c.patience}, Domain: s.domains["d"].Domain}
			c.st.Limit = of
			if perGroup {
				c.st.Limit = &limit.Limit{Of: of, Domain: of.Domain}
			}
			c.st.Back.Tasklist = table.Tasklist{Domain: "d", Name: "l0"}
			asks := s.questions.Len()
			s.stopped(&grab.Stopped{StopRequest: c.st, Refused: c.refused})
			u := &of.Usage
			if u.Rejected.Sum(0) != c.rejected || u.Displaced.Sum(0) != c.displaced || s.fx.Counts.Rejected != c.rejected || s.fx.Counts.Displaced != c.displaced {
				t.Errorf("%s: %d rejected, %d displaced", name, u.Rejected.Sum(0), u.Displaced.Sum(0))
			}
			if back, again := len(s.arrivals), s.questions.Len()-asks; back != c.back || again != c.again {
				t.Errorf("%s: %d go back, %d questions", name, back, again)
			}
			if at := c.st.Limit.Over.At; c.until > 0 && at != s.now.Mono+c.until || c.until == 0 && at != 0 {
				t.Errorf("%s: it acts again at %v", name, at)
			}
		}
	}
}

// TestAShardThatIsLeftStopsNobody: what was to be rejected goes back to the tables.
func TestAShardThatIsLeftStopsNobody(t *testing.T) {
	_, s, l := overflowing(t, "d/a", limit.RejectNewest)
	back := table.Chunk{Tasklist: table.Tasklist{Domain: "d", Name: "l0"}}
	for _, st := range []grab.StopRequest{{Back: back}, {Stop: grab.Stop{Displace: true}}, {Back: back}} {
		st.Limit = l
		s.grabs.AddStop(st)
	}
	s.leave()
	if n := len(s.stops()); n > 0 || len(s.arrivals) != 2 {
		t.Errorf("%d are to be sent, %d go back", n, len(s.arrivals))
	}
}

// TestWhoIsAskedForHolders: of limits for which something waits, one question to each partition at a time, with the types that wait.
func TestWhoIsAskedForHolders(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *Shard, l *limit.Limit)
		asked  int
	}{
		"full":                {func(*Shard, *limit.Limit) {}, 1},
		"it is being asked":   {func(s *Shard, l *limit.Limit) { domainOf(s, l).round = &round{} }, 0},
		"nothing waits there": {func(s *Shard, _ *limit.Limit) { s.now.MS -= overflowAfter.Milliseconds() }, 0},
	} {
		for _, key := range []string{"d/a", "d/a*"} {
			_, s, l := overflowing(t, key, limit.CancelOldest)
			c.change(s, l)
			now := s.now.Mono
			s.askHolders(domainOf(s, l), []*limit.Limit{l})
			s.askHolders(domainOf(s, l), nil)
			s.fx.Asks = nil
			s.ask()
			asked := slices.DeleteFunc(s.fx.Asks, func(a Ask) bool { return a.Kind != AskHolders })
			if len(asked) != c.asked || (l.Over.At == now+overflowEvery) != (c.asked > 0) {
				t.Fatalf("%s, %s: %d are asked", key, name, len(asked))
			}
			if c.asked == 0 {
				continue
			}
			q, r := asked[0].Holders[0], domainOf(s, l).round
			if q.Ref != l.Ref || q.Most != 2 || fmt.Sprint(q.Types) != "[a]" || q.Group != l.Group || q.ReadyBy != s.readyBy(l) || r.left != 1 || len(r.found) != 1 {
				t.Errorf("%s: %+v, %+v", key, q, r)
			}
		}
	}
	_, s, l := overflowing(t, "d/a", limit.CancelOldest)
	s.askHolders(domainOf(s, l), nil)
	if domainOf(s, l).round != nil {
		t.Error("a question about nothing")
	}
	// Types of one limit, in tasklists where they wait by priority.
	w, o := begun(t, 1)
	w.ends, w.policies["d:a,b"], w.shared = false, limit.CancelOldest, []string{"d:a,b"}
	w.set(o, map[string]int{"d:a,b": 1})
	w.pollAll(20)
	w.ready("d", "l0", "a", 3, 1)
	w.run(overflowAfter / 4)
	for i := range 3 { // of l0 it is b, then a; of l1 it is a
		w.ready("d", fmt.Sprint("l", i%2), "a", 3, 2)
		w.ready("d", "l0", "b", 1, 1)
	}
	w.run(overflowAfter / 2)
	o.s.now.MS += time.Second.Milliseconds()
	if n, types := o.s.waitHere(o.s.domains["d"].Limits["shared/x"]); n != 9 || fmt.Sprint(types) != "[a b]" {
		t.Errorf("%d of %v wait", n, types)
	}
}

// TestWhatHoldersAnswer: nothing is done before all partitions have answered, nor if the limit is another one by then.
func TestWhatHoldersAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *Shard, l *limit.Limit)
		stops  int
		over   bool // the round is over
	}{
		"full":                  {func(*Shard, *limit.Limit) {}, 2, true},
		"one has yet to answer": {func(s *Shard, l *limit.Limit) { domainOf(s, l).round.left++ }, 0, false},
		"it is no more":         {func(_ *Shard, l *limit.Limit) { delete(l.Domain.Limits, l.Ref) }, 0, true},
		"another policy":        {func(_ *Shard, l *limit.Limit) { l.OnFull = limit.RejectNewest }, 0, true},
		"full no more":          {func(_ *Shard, l *limit.Limit) { l.Over.FullAt = 0 }, 0, true},
		"it is being counted":   {func(_ *Shard, l *limit.Limit) { l.Unknown = 1 }, 0, true},
		"the shard is left":     {func(s *Shard, _ *limit.Limit) { s.drain.on = true }, 0, true},
		"the domain is no more": {func(s *Shard, l *limit.Limit) { delete(s.domains, "d") }, 0, false},
		"the domain is new":     {func(s *Shard, l *limit.Limit) { s.domains["d"] = &domain{Domain: &limit.Domain{Name: "d"}} }, 0, false},
		"less answers than asked": {func(s *Shard, l *limit.Limit) {
			domainOf(s, l).round.limits, domainOf(s, l).round.found = append(domainOf(s, l).round.limits, l), append(domainOf(s, l).round.found, Holders{})
		}, 2, true},
	} {
		w, s, l := overflowing(t, "d/a", limit.CancelOldest)
		s.askHolders(domainOf(s, l), []*limit.Limit{l})
		d := domainOf(s, l)
		r := d.round
		c.change(s, l)
		found := Holders{Waiting: 2}
		for _, one := range w.sorted()[:3] {
			found.Oldest = append(found.Oldest, OldHolder{Trigger: ids.Trigger{ID: one.id, Version: 1}})
		}
		s.heldBy(&asked{Domain: "d", About: subject{round: r}}, []Holders{found})
		if n := len(s.stops()); n != c.stops || (d.round == nil) != c.over {
			t.Errorf("%s: %d are asked to stop", name, n)
		}
	}
	s := stopping()
	odd := OldHolder{Trigger: ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(epochMS), 7, 1)}}
	s.displace(&limit.Limit{Domain: &limit.Domain{}}, &Holders{Waiting: 2, Oldest: []OldHolder{odd, {}}}, 2)
	if n := len(s.stops()); n != 1 || s.fx.Counts.Malformed != 1 {
		t.Errorf("of no partition: %d are asked to stop, %d malformed", n, s.fx.Counts.Malformed)
	}
	s.fill(grab.StopsMax)
	s.displace(&limit.Limit{Domain: &limit.Domain{}}, &Holders{Waiting: 1, Oldest: make([]OldHolder, 1)}, 1)
	testkit.Equal(t, "are to be sent", len(s.stops()), grab.StopsMax)
}
