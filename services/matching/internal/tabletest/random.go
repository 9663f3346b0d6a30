package tabletest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tables"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// use counts slots in use, now and ever at once.
type use struct{ held, most, taken atomic.Int64 }

func (u *use) take(n int64) {
	u.taken.Add(n)
	in := u.held.Add(n)
	for old := u.most.Load(); in > old && !u.most.CompareAndSwap(old, in); old = u.most.Load() {
	}
}

const overbookLimit = 7

// neverOverbook has two shards take, hold and give back slots of one limit at the same
// time, and counts those in use.
func neverOverbook(r *rig) {
	r.everywhere(pay)
	var in use
	var workers sync.WaitGroup
	for shard, tables := range r.shards {
		epoch := r.epochs[shard]
		workers.Go(func() {
			w := worker{tables: tables, in: &in, call: table.Call{
				Domain: domain, Shard: shard, Shards: len(r.shards), Epoch: epoch, Seq: table.Seq{Epoch: 2},
			}}
			for i := range 300 {
				if err := w.round(i); err != nil {
					r.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	if in.most.Load() > overbookLimit || in.taken.Load() == 0 {
		r.Fatalf("%d slots in use at once, limit %d; %d taken in all", in.most.Load(), overbookLimit, in.taken.Load())
	}
	r.equal("slots left", r.slots(pay), int(in.held.Load()))
}

// worker is one shard of neverOverbook.
type worker struct {
	tables tables.Tables
	in     *use
	call   table.Call
	held   int
}

// round gives back some slots and takes others in one call.
func (w *worker) round(i int) error {
	c := w.call
	w.call.Seq.Call++
	put := chunk(3, "pay", int64(i), c.Shard*30_000+i*10, 10)
	put.Name = fmt.Sprint("list", c.Shard)
	back := i % (w.held + 1)
	w.in.held.Add(int64(-back)) // before the call, so that the count is never too high
	w.held -= back
	c.Seq = w.call.Seq
	c.Stances, c.Put = []table.Stance{stance(overbookLimit, w.held, 3)}, []table.Chunk{put}
	c.Wants = []table.Want{{Tasklist: put.Tasklist, N: 1 + i%5, Candidates: []table.Candidate{candidate(3, "pay", 0, 0)}}}
	outcomes, errs := w.tables.Do(context.Background(), []table.Call{c})
	if errs[0] != nil {
		return errs[0]
	}
	if outcomes[0].Lost || outcomes[0].Overtaken {
		return fmt.Errorf("refused: %+v", outcomes[0])
	}
	n := count(outcomes[0].Taken[0])
	w.held += n
	w.in.take(int64(n))
	return nil
}

// twins are the pure core and the tables under test, given the same random calls of
// several shards. Some calls come late: what they set is void by then, or was never known.
type twins struct {
	*rig
	random *rand.Rand
	core   *table.Table
	index  []table.Index
	next   int
	passed time.Duration
	// owner is the epoch of each shard's owner; an old one goes on for a while.
	owner []uint64
	late  []table.Call
	// granted says whether anything was ever granted, held back or refused; deep, granted with the longest path; rated, held
	// back by a rate.
	granted, blocked, refused, deep, rated int
	// dear counts those granted that use several starts of a rate, lined how often a shard stood in the line of a rate.
	dear, lined int
	// beyond counts those that one in shadow would have held back.
	beyond int
	// groups counts those granted in the limit of a group, and blocked by it.
	groups, full int
	// counts are by shard how often its owner has counted.
	counts []uint64
}

// The limits of likeTheCore: type a has none, d two, and e as many as there may be: of its type, its tasklist, its domain and
// eight that types share.
var (
	twinTypes  = []string{"a", "b", "c", "d", "e"}
	twinLimits = []table.Ref{
		"type/b", "type/c", "type/d", "domain", "type/e", "tasklist/list0",
		"shared/0", "shared/1", "shared/2", "shared/3", "shared/4", "shared/5", "shared/6", "shared/7",
	}
	// twinShared is the priority of columns that groups share, though not all of their chunks.
	twinShared = 2
	// twinRates are the rates of types b and e, so slow that an instant more or less makes no difference.
	twinRates = []table.Ref{"rate/type/b", "rate/domain"}
	// twinCosts are how many starts the triggers of a chunk use: some more than the burst.
	twinCosts = []int{0, 0, 0, 2, 5, 7, 30}
	// twinTight is how many of them, the first ones, are short most of the time.
	twinTight = 4
	// twinGroups are the groups of type f, which is counted per group, and in the domain's limit.
	twinGroups   = []string{"g0", "g1", "g2", "g3", table.NoGroup}
	twinPerGroup = table.PerGroupRef("type/f")
	twinPaths    = map[string][]int{"f": {3}, "b": {0, 14}, "c": {1}, "d": {2, 3}, "e": {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15}}
)

// likeTheCore compares random calls with the pure core. I8: what is granted never lifts
// the sum of what the shards hold above the limit.
func likeTheCore(r *rig) {
	w := &twins{rig: r, random: testkit.Seed(r.T), core: table.New(), index: make([]table.Index, len(r.shards)), owner: make([]uint64, len(r.shards)), counts: make([]uint64, len(r.shards))}
	for i := range r.shards {
		w.core.Open(domain, i, r.epochs[i])
		w.owner[i], w.counts[i] = 1, 1
	}
	for step := range 900 {
		w.step(step)
	}
	if w.granted == 0 || w.blocked == 0 || w.refused == 0 || w.deep == 0 || w.rated == 0 || w.groups == 0 || w.full == 0 || w.beyond == 0 || w.dear == 0 || w.lined == 0 {
		r.Fatalf("the run shows little: granted %d, blocked %d, refused %d, of all limits %d, too early %d, of groups %d, of full ones %d, in shadow %d, of several starts %d, in line for them %d",
			w.granted, w.blocked, w.refused, w.deep, w.rated, w.groups, w.full, w.beyond, w.dear, w.lined)
	}
}

func (w *twins) step(step int) {
	switch n := w.random.IntN(40); {
	case n == 0: // a new owner
		w.owner[w.random.IntN(len(w.owner))]++
	case n == 1:
		w.pass([]time.Duration{2 * time.Second, 2 * time.Second, 127 * time.Second, time.Hour}[w.random.IntN(4)])
	case n == 2:
		w.forget()
	case n == 3:
		w.drop(append(twinLimits, twinPerGroup)[w.random.IntN(len(twinLimits)+1)])
	case n == 39:
		w.counts[w.random.IntN(len(w.counts))]++
	case n < 7 && len(w.late) > 0:
		w.send(step, w.late[0])
		w.late = w.late[1:]
	default:
		c := w.randomCall()
		if w.random.IntN(12) == 0 && len(c.Stances) > 0 {
			w.late = append(w.late, c)
			return
		}
		w.send(step, c)
	}
}

// randomCall is a call as a shard might make it, or its owner before.
func (w *twins) randomCall() table.Call {
	shard := w.random.IntN(len(w.shards))
	c := w.call(shard, table.Call{})
	c.Seq.Epoch = w.owner[shard]
	if c.Seq.Epoch > 1 && w.random.IntN(20) == 0 {
		c.Seq.Epoch--
	}
	for range w.random.IntN(3) {
		w.next += 9
		put := chunk(1+w.random.IntN(3), twinTypes[w.random.IntN(len(twinTypes))], int64(w.random.IntN(50)), w.next, 1+w.random.IntN(9))
		if put.Priority == twinShared && w.random.IntN(8) > 0 {
			put.Rank, put.Step = 1+int64(w.random.IntN(50)), int64(w.random.IntN(4))
		}
		put.Cost = twinCosts[w.random.IntN(len(twinCosts))]
		c.Put = append(c.Put, put)
	}
	if w.random.IntN(2) == 0 {
		c.Put = append(c.Put, w.groupChunk())
	}
	index := &w.index[shard]
	for i, p := range c.Put {
		c.Put[i].Name = fmt.Sprint("list", shard)
		if p.Group != "" {
			index.PutGroup(p.Column, p.ReadyAt, p.Rank, p.Step, p.Len())
			continue
		}
		index.Put(p.Column, p.ReadyAt, p.Len())
	}
	if known := index.Candidates(nil, 0, 9, func(table.Column) bool { return false }); w.random.IntN(40) == 0 && len(known) > 0 {
		at := known[w.random.IntN(len(known))].Column
		c.Clear = append(c.Clear, table.Place{Tasklist: table.Tasklist{Domain: domain, Name: fmt.Sprint("list", shard)}, Column: at})
		index.Seen(table.Head{Column: at, Empty: true})
		c.Put = nil
	}
	if w.random.IntN(4) > 0 {
		for i, ref := range twinLimits {
			s := table.Stance{
				Ref: ref, Max: 1 + w.random.IntN(12), Held: w.random.IntN(3), Wait: w.random.IntN(4), Ask: max(0, w.random.IntN(12)-6),
				TTL: time.Duration(w.random.IntN(3)) * time.Minute,
			}
			if i >= twinTight && w.random.IntN(8) > 0 { // or one of so many would always have no slot
				s.Max, s.Wait, s.Ask = s.Max+40, 0, 0
			}
			s.Shadow = w.random.IntN(8) == 0
			c.Stances = append(c.Stances, s)
		}
		for i, ref := range twinRates {
			c.Stances = append(c.Stances, table.Stance{Ref: ref, Rate: table.Rate{EveryUS: 1e11 / 3, Burst: 8 * (1 + 9*i + w.random.IntN(3))}, Unused: max(0, w.random.IntN(12)-8), Shadow: w.random.IntN(8) == 0})
		}
	}
	w.perGroup(&c)
	for range w.random.IntN(3) {
		want := table.Want{Tasklist: table.Tasklist{Domain: domain, Name: fmt.Sprint("list", shard)}, N: 1 + w.random.IntN(25), Ahead: max(0, w.random.IntN(16)-6)}
		limited := func(at table.Column) bool { return len(c.Stances) == 0 && twinPaths[at.Type] != nil }
		want.Candidates = index.Candidates(nil, w.random.IntN(table.PriorityIdle+1), 3+w.random.IntN(10), limited)
		for i := range want.Candidates {
			want.Candidates[i].Path = twinPath(&c, want.Candidates[i].Column)
		}
		index.Share(&want)
		c.Wants = append(c.Wants, want)
	}
	return c
}

// groupChunk is some triggers of one group.
func (w *twins) groupChunk() table.Chunk {
	w.next += 9
	put := chunk(1+w.random.IntN(2), "f", int64(w.random.IntN(50)), w.next, 1+w.random.IntN(5))
	put.Group, put.Rank, put.Step = twinGroups[w.random.IntN(len(twinGroups))], 1+int64(w.random.IntN(500)), int64(1+w.random.IntN(40))
	return put
}

// perGroup adds what the shard says about the limit per group and those of its groups.
func (w *twins) perGroup(c *table.Call) {
	if len(c.Stances) == 0 {
		return
	}
	c.Stances = append(c.Stances, table.Stance{
		Ref: twinPerGroup, PerGroup: table.PerGroup{Count: w.counts[c.Shard], Complete: w.random.IntN(4) > 0},
	})
	of := len(c.Stances)
	for _, group := range twinGroups[:len(twinGroups)-1] {
		c.Stances = append(c.Stances, table.Stance{
			Ref: twinPerGroup.Of(group), Of: of, Max: 1 + w.random.IntN(5), Held: max(0, w.random.IntN(5)-2), Wait: w.random.IntN(4),
			TTL: time.Duration(w.random.IntN(3)) * time.Minute,
		})
	}
}

// twinPath are the stances of what a column needs slots of.
func twinPath(c *table.Call, at table.Column) []int {
	path := slices.Clone(twinPaths[at.Type])
	if i := slices.Index(twinGroups[:len(twinGroups)-1], at.Group); i >= 0 {
		of := slices.IndexFunc(c.Stances, func(s table.Stance) bool { return s.PerGroup.Count > 0 })
		path = append(path, of, of+1+i)
	}
	return path
}

// send makes a call on both and compares.
func (w *twins) send(step int, c table.Call) {
	core := w.core.Do(c, w.nowUS())
	got := w.rig.send(c)
	for i := range min(len(core.Limits), len(got.Limits)) { // not of one instant
		if off := core.Limits[i].After - got.Limits[i].After; off.Abs() < time.Minute {
			got.Limits[i].After = core.Limits[i].After
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(core) {
		w.Fatalf("step %d: call %+v\ngot  %+v\ncore %+v", step, c, got, core)
	}
	if core.Lost || core.Overtaken {
		w.refused++
		return
	}
	granted := make([]int, len(c.Stances))
	for _, taken := range core.Taken {
		w.blocked += len(taken.Blocked)
		for _, b := range taken.Blocked {
			if b.Why == table.Rated {
				w.rated++
			}
			if _, _, ok := b.By.Group(); ok {
				w.full++
			}
		}
		for _, h := range taken.Heads {
			w.index[c.Shard].Seen(h)
		}
		for _, b := range taken.Batches {
			if b.Type == "e" {
				w.deep++
			}
			if b.Type == "b" && b.Cost > 1 {
				w.dear++
			}
			if b.Type == "f" {
				w.groups++
			}
			for _, s := range twinPath(&c, b.Column) {
				granted[s] += count(table.Taken{Batches: []table.Batch{b}})
			}
		}
	}
	for i, s := range c.Stances {
		granted[i] += core.Limits[i].Leased
		w.beyond += core.Limits[i].Beyond
		if core.Limits[i].Waits {
			w.lined++
		}
		w.granted += granted[i]
		if state := core.Limits[i]; s.Rate.EveryUS == 0 && s.PerGroup.Count == 0 && !s.Shadow && granted[i] > 0 && (state.Used > s.Max || state.Restoring) {
			w.Fatalf("step %d: %d granted of %s, at most %d: %+v", step, granted[i], s.Ref, s.Max, state)
		}
	}
}

func (w *twins) nowUS() int64 { return time.Now().Add(w.passed).UnixMicro() }

func (w *twins) pass(d time.Duration) {
	w.passed += d
	w.store.Pass(d)
}

// forget loses everything, after which each shard opens its tables.
func (w *twins) forget() {
	w.core.Forget()
	w.rig.forget()
	for i := range w.shards {
		w.core.Open(domain, i, w.epochs[i])
		w.index[i] = table.Index{}
	}
}

func (w *twins) drop(ref table.Ref) {
	w.core.Drop(domain, ref)
	w.rig.drop(ref)
}
