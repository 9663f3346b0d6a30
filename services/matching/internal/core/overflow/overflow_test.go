package overflow

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
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const patience = time.Second

// shard is a limit of two attempts of type a, full for long enough, and three tasks that wait for it, ready since the instant 0.
type shard struct {
	Policies
	t      Turn
	limits limit.Limits
	d      *limit.Domain
	l      *limit.Limit
	list   *limit.List
	index  table.Index
	worked int
	polled bool
	// stops are those that were added; at most so many are taken.
	stops []grab.StopRequest
	most  int
}

// Catalog, and Tasks of the tasklist.
func (*shard) GroupLimits(string) map[string]int                      { return nil }
func (*shard) Strict(string, string) bool                             { return false }
func (*shard) Look()                                                  {}
func (*shard) Polled() bool                                           { return true }
func (*shard) Pair(c table.Chunk, _ *limit.Path) (left []byte, n int) { return c.Triggers, 0 }
func (*shard) PutBack(table.Chunk)                                    {}
func (s *shard) Back(at table.Column)                                 { s.index.Back(at, 0) }

func (s *shard) add(st grab.StopRequest) bool {
	if len(s.stops) >= s.most {
		return false
	}
	s.stops = append(s.stops, st)
	return true
}

// full returns the shard. If perGroup is set the limit is that of the group g.
func full(t *testing.T, policy limit.OnFull, perGroup bool) *shard {
	t.Helper()
	s := &shard{polled: true, most: Max}
	s.limits = limit.New(s, 1)
	s.limits.Begin(time.Minute, 60_000)
	s.d = limit.NewDomain(&s.limits, "d", func() { s.worked++ })
	set := limit.Setting{Ref: "type/a", Max: 2, OnFull: policy, OnFullAfter: patience, Types: []string{"a"}, PerGroup: perGroup}
	at := table.Column{Priority: 3, Type: "a"}
	if perGroup {
		set.Ref, at.Group = table.PerGroupRef("type/a"), "g"
	}
	counted, _ := s.d.Meet([]limit.Setting{{Ref: "domain", Max: 10, Wide: true}, set})
	count, _, _ := s.limits.BeginCount(counted, true)
	count.Learn(0, 0, nil)
	s.d.Open = true
	s.list = limit.NewList(table.Tasklist{Domain: "d", Name: "l"}, s.d, &s.index, s)
	if perGroup {
		s.index.PutGroup(at, 1, 1, 1, 3)
	} else {
		s.index.Put(at, 1, 3)
	}
	c := &limit.Call{}
	s.d.Call = c
	c.Ask(s.list, s.list.PathOf(at), &table.Candidate{Column: at}, 3)
	c.Stances = s.limits.Stances(c)
	c.End()
	states := make([]table.LimitState, len(c.Limits))
	for i, l := range c.Limits {
		if l.Max == 2 && !l.PerGroup {
			s.l, states[i].Used = l, 2
			c.Block(i, table.Full)
		}
	}
	s.limits.Learn(c, states)
	s.d.Call = nil
	s.list.Pass(at, &limit.Call{}) // it waits
	s.t = Turn{Now: time.Minute + patience, MS: 61_000, Polled: func(*limit.List, string) bool { return s.polled }, Add: s.add}
	testkit.MustEqual(t, "overflows", s.l.Overflows(s.t.Now), true)
	return s
}

// both are a limit, and the limit of a group.
var both = []bool{false, true}

// TestASweepLooksAtFullLimits: not more often than it should, and once until it has acted.
func TestASweepLooksAtFullLimits(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *shard)
		looks  int
	}{
		"full":                     {func(*shard) {}, 1},
		"it has just acted":        {func(s *shard) { s.l.Over.At = s.t.Now + 1 }, 0},
		"it acted long ago":        {func(s *shard) { s.l.Over.At = s.t.Now }, 1},
		"it has not been for long": {func(s *shard) { s.l.Over.FullAt = s.t.Now }, 0},
		"full no more":             {func(s *shard) { s.l.Blocked = 0 }, 0},
		"it is no more":            {func(s *shard) { s.d.Change(nil) }, 0},
	} {
		for _, perGroup := range both {
			s := full(t, limit.RejectNewest, perGroup)
			c.change(s)
			first, again := s.Sweep(s.t, s.d, 1), s.Sweep(s.t, s.d, 1)
			testkit.Equal(t, name+": a question", first != nil || again != nil, false)
			testkit.Equal(t, name+": wants", len(s.Wants(s.t, &limit.Call{}, 100)), c.looks)
			s = full(t, limit.CancelOldest, perGroup)
			c.change(s)
			testkit.Equal(t, name+": is asked", s.Sweep(s.t, s.d, 1) != nil, c.looks == 1)
			testkit.Equal(t, name+": is asked twice", s.Sweep(s.t, s.d, 1) != nil, false)
		}
	}
}

// TestWhatACallTakesToBeRejected: what changed since the sweep counts, and a call is bounded. What it has no room for the next one takes.
func TestWhatACallTakesToBeRejected(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(s *shard)
		most        int
		leave       bool
		takes, left int
	}{
		"full":                       {change: func(*shard) {}, most: 1, takes: 1},
		"the shard is left":          {change: func(*shard) {}, most: 1, leave: true},
		"another policy":             {change: func(s *shard) { s.d.Met[1].OnFull = limit.CancelOldest }, most: 1},
		"full for a moment":          {change: func(s *shard) { s.l.Over.FullAt = s.t.Now }, most: 1},
		"full no more":               {change: func(s *shard) { s.l.Blocked = 0 }, most: 1},
		"it looks at many":           {change: func(*shard) {}, left: 1},
		"nothing has waited so long": {change: func(s *shard) { s.t.MS = 500 }, most: 1},
		"no worker polls":            {change: func(s *shard) { s.polled = false }, most: 1},
		"another limit is full, too": {change: func(s *shard) { s.d.Met[0].Blocked = table.Full }, most: 1},
	} {
		s := full(t, limit.RejectNewest, false)
		s.Sweep(s.t, s.d, 1)
		c.change(s)
		call := &limit.Call{}
		s.t.Leaving = c.leave
		got := s.Wants(s.t, call, c.most)
		s.t.Leaving = false
		testkit.Equal(t, name+": takes", len(got), c.takes)
		testkit.Equal(t, name+": are named", len(call.Limits), c.takes)
		if c.takes > 0 && (s.l.Over.At != s.t.Now+Every || got[0].N != Max || len(got[0].Candidates[0].Path) > 0 || got[0].Limit != s.l || got[0].List != s.list) {
			t.Errorf("%s: %+v, again at %v", name, got, s.l.Over.At)
		}
		testkit.Equal(t, name+": are left", len(s.Wants(s.t, call, 1)), c.left)
	}
}

// TestOneTurnWaitsLongEnough: a group of weight 0 has ranks behind all others, and their ages are among them.
func TestOneTurnWaitsLongEnough(t *testing.T) {
	l := &limit.Limit{Setting: limit.Setting{OnFullAfter: patience}}
	for readyAt, want := range map[int64]bool{4_000_999: true, 4_001_000: false, fairness.IdleFrom + 4_000_999: true, fairness.IdleFrom + 4_001_000: false} {
		testkit.Equal(t, fmt.Sprint(readyAt), Turn{MS: 5000}.longAgo(l, readyAt), want)
	}
}

// triggers are some tasks of the first partition.
func triggers(n int) (packed []byte) {
	for i := range n {
		packed = ids.AppendTrigger(packed, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, uint64(i)), Version: 1})
	}
	return packed
}

// TestWhatCameOutOfTheTablesIsLookedAtAgain: it is rejected only if the limit was full all the time until then. Else it goes back, as do those
// for which there is no room.
func TestWhatCameOutOfTheTablesIsLookedAtAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(s *shard, st *table.LimitState, c *table.Chunk)
		stops, back int
	}{
		"full":                 {func(*shard, *table.LimitState, *table.Chunk) {}, 3, 0},
		"freed meanwhile":      {func(s *shard, _ *table.LimitState, _ *table.Chunk) { s.l.Again = true }, 0, 3},
		"full no more":         {func(s *shard, _ *table.LimitState, _ *table.Chunk) { s.l.Over.FullAt = 0 }, 0, 3},
		"the tables know":      {func(_ *shard, st *table.LimitState, _ *table.Chunk) { st.Used-- }, 0, 3},
		"others are not known": {func(_ *shard, st *table.LimitState, _ *table.Chunk) { st.Restoring = true }, 0, 3},
		"younger":              {func(s *shard, _ *table.LimitState, c *table.Chunk) { c.ReadyAt = s.t.MS * 1000 }, 0, 3},
		"no room":              {func(s *shard, _ *table.LimitState, _ *table.Chunk) { s.most = 2 }, 2, 1},
	} {
		s := full(t, limit.RejectNewest, false)
		call := &limit.Call{}
		call.Stand(s.l)
		call.Stances = []table.Stance{{Max: 2}}
		state, chunk := table.LimitState{Used: 2}, table.Chunk{ReadyAt: 1, Triggers: triggers(3)}
		c.change(s, &state, &chunk)
		back := s.Reject(s.t, s.l, call, []table.LimitState{state}, []table.Chunk{chunk})
		n := 0
		for _, b := range back {
			n += b.Len()
		}
		if len(s.stops) != c.stops || n != c.back {
			t.Errorf("%s: %d are to be rejected, %d go back", name, len(s.stops), n)
		}
		for i, st := range s.stops {
			if !slices.Equal(st.Back.Triggers, chunk.Triggers[i*ids.TriggerBytes:(i+1)*ids.TriggerBytes]) || st.Displace || st.ReadyBy != 60_000 || st.Stop.Limit != s.l.Ref || st.Domain != "d" {
				t.Errorf("number %d: %+v", i, st)
			}
		}
	}
}

// TestAFloodIsRejectedAsItComes: if a call took as many as it may, the next one follows.
func TestAFloodIsRejectedAsItComes(t *testing.T) {
	for n, follows := range map[int]int{Max - 1: 0, Max: 1} {
		s := full(t, limit.RejectNewest, false)
		call := &limit.Call{}
		call.Stand(s.l)
		call.Stances = []table.Stance{{Max: 2}}
		s.Reject(s.t, s.l, call, []table.LimitState{{Used: 2}}, []table.Chunk{{ReadyAt: 1, Triggers: triggers(n)}})
		testkit.Equal(t, fmt.Sprint(n, " are rejected, and then wants"), len(s.Wants(s.t, call, 1)), follows)
	}
}

// TestWhatIsAsked: how many may make room at most, and what waits.
func TestWhatIsAsked(t *testing.T) {
	for _, perGroup := range both {
		s := full(t, limit.CancelOldest, perGroup)
		r := s.Sweep(s.t, s.d, 1)
		if q := r.Queries[0]; q.Ref != s.l.Ref || q.Most != 2 || fmt.Sprint(q.Types) != "[a]" || q.Group != s.l.Group || q.ReadyBy != 60_000 || s.l.Over.At != s.t.Now+Every {
			t.Errorf("%+v", q)
		}
		s = full(t, limit.CancelOldest, perGroup)
		s.polled = false
		testkit.Equal(t, "a question about what no worker polls for", s.Sweep(s.t, s.d, 1) != nil, false)
	}
}

// TestWhatHoldersAnswer: nothing is done before all partitions have answered, nor if the limit is another one by then.
func TestWhatHoldersAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(s *shard)
		partitions int
		leave      bool
		stops      int
	}{
		"full":                  {change: func(*shard) {}, stops: 2},
		"one has yet to answer": {change: func(*shard) {}, partitions: 1},
		"it is no more":         {change: func(s *shard) { s.d.Change(nil) }},
		"another policy":        {change: func(s *shard) { s.l.OnFull = limit.RejectNewest }},
		"full no more":          {change: func(s *shard) { s.l.Over.FullAt = 0 }},
		"it is being counted":   {change: func(s *shard) { s.l.Unknown = 1 }},
		"the shard is left":     {change: func(*shard) {}, leave: true},
		"it took long":          {change: func(s *shard) { s.t.Now += roundFor + 1 }},
		"the domain is new":     {change: func(s *shard) { s.Policies = Policies{} }},
	} {
		s := full(t, limit.CancelOldest, false)
		r := s.Sweep(s.t, s.d, 1+c.partitions)
		c.change(s)
		found := Holders{Waiting: 2, Oldest: make([]OldHolder, 3)}
		s.t.Leaving, s.most = c.leave, Max
		s.Hear(s.t, r, []Holders{found})
		testkit.Equal(t, name, len(s.stops), c.stops)
	}
}

// TestNoMoreMakeRoomThanWait: neither more than wait at this shard, nor more than wait for long enough, less those on their way out. The oldest do.
func TestNoMoreMakeRoomThanWait(t *testing.T) {
	for _, c := range []struct{ waiting, here, leaving, want int }{{3, 1, 0, 1}, {1, 3, 0, 1}, {3, 3, 2, 1}, {2, 2, 2, 0}, {1, 2, 2, 0}, {0, 2, 0, 0}} {
		found := &Holders{Waiting: c.waiting, Leaving: c.leaving}
		for n := range 4 {
			found.Oldest = append(found.Oldest, OldHolder{StartedAtMS: int64(4 - n), Trigger: ids.Trigger{Version: uint32(4 - n)}})
		}
		got := displace(&limit.Limit{Domain: &limit.Domain{}}, found, c.here)
		testkit.Equal(t, fmt.Sprintf("%+v: are asked to stop", c), len(got), c.want)
		for i, st := range got {
			testkit.Equal(t, "started", st.Trigger.Version, uint32(i+1))
		}
	}
}

// TestWhatBecomesOfAStop: by what history has decided. A task that was too young is tried again later.
func TestWhatBecomesOfAStop(t *testing.T) {
	for name, c := range map[string]struct {
		displace            bool
		refused             fault.Code
		patience, until     time.Duration
		rejected, displaced int64
	}{
		"rejected":              {rejected: 1},
		"displaced":             {displace: true, displaced: 1},
		"has begun":             {refused: fault.Stale},
		"is over":               {refused: fault.NotFound},
		"too young":             {refused: fault.FailedPrecondition, until: Every},
		"too young, by a lot":   {refused: fault.FailedPrecondition, patience: time.Minute, until: time.Minute},
		"not decided":           {refused: fault.Unavailable},
		"an attempt, too young": {displace: true, refused: fault.FailedPrecondition},
	} {
		for _, perGroup := range both {
			of := &limit.Limit{Setting: limit.Setting{OnFullAfter: c.patience}}
			l := of
			if perGroup {
				l = &limit.Limit{Of: of}
			}
			Stopped(&grab.Stopped{StopRequest: grab.StopRequest{Stop: grab.Stop{Displace: c.displace}, Limit: l}, Refused: c.refused}, 0)
			if u := &of.Usage; u.Rejected.Sum(0) != c.rejected || u.Displaced.Sum(0) != c.displaced || l.Over.At != c.until {
				t.Errorf("%s: %d rejected, %d displaced, it acts again at %v", name, u.Rejected.Sum(0), u.Displaced.Sum(0), l.Over.At)
			}
		}
	}
}
