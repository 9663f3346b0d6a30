package table

import (
	"bytes"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// model is the rules in their dumbest form: one flat list of chunks, one trigger at a
// time, and lines that are lists.
type model struct {
	chunks map[int][]Chunk // by shard
	limits map[Ref]*modelLimit
}

type modelLimit struct {
	held  map[int]int
	until map[int]int64
	seq   map[int]Seq
	// queue are the shards that wait, who waits longest first, of all priorities.
	queue []modelWaiter
}

type modelWaiter struct {
	shard, wait, short int
	seen               int64
}

func newModel() *model { return &model{chunks: map[int][]Chunk{}, limits: map[Ref]*modelLimit{}} }

func (m *model) limit(ref Ref) *modelLimit {
	if m.limits[ref] == nil {
		m.limits[ref] = &modelLimit{held: map[int]int{}, until: map[int]int64{}, seq: map[int]Seq{}}
	}
	return m.limits[ref]
}

func (l *modelLimit) used() int {
	n := 0
	for _, held := range l.held {
		n += held
	}
	return n
}

func (l *modelLimit) find(shard int) int {
	return slices.IndexFunc(l.queue, func(w modelWaiter) bool { return w.shard == shard })
}

// free is what a shard may take of a limit, and why it may not.
func (l *modelLimit) free(c *Call, s Stance) (int, BlockedWhy) {
	if len(l.held) < c.Shards {
		return 0, Restoring
	}
	n := s.Max - l.used()
	if n <= 0 {
		return 0, Full
	}
	for _, w := range l.queue {
		if w.shard == c.Shard {
			continue
		}
		i, j := l.find(c.Shard), l.find(w.shard)
		if i < 0 || w.wait < s.Wait || w.wait == s.Wait && j < i {
			n -= w.short
		}
	}
	return n, InLine
}

// state is how a call begins with a limit.
func (l *modelLimit) state(c *Call, s Stance, now int64) {
	for shard, until := range l.until {
		if until <= now {
			l.held[shard] = 0
		}
	}
	l.held[c.Shard], l.seq[c.Shard] = s.Held, c.Seq
	l.until[c.Shard] = max(l.until[c.Shard], now+s.TTL.Milliseconds()+300_000)
	l.queue = slices.DeleteFunc(l.queue, func(w modelWaiter) bool {
		return w.seen+3000 <= now || w.shard == c.Shard && s.Wait == 0
	})
	if s.Wait == 0 {
		return
	}
	if i := l.find(c.Shard); i >= 0 {
		l.queue[i].wait, l.queue[i].seen = s.Wait, now
	} else {
		l.queue = append(l.queue, modelWaiter{shard: c.Shard, wait: s.Wait, short: 1, seen: now})
	}
}

// end gives the shard its place after a call.
func (l *modelLimit) end(shard int, met bool, granted, short int) {
	i := l.find(shard)
	if i < 0 || !met {
		return
	}
	w := l.queue[i]
	w.short = short
	switch {
	case short == 0:
		l.queue = slices.Delete(l.queue, i, i+1)
	case granted > 0:
		l.queue = append(slices.Delete(l.queue, i, i+1), w)
	default:
		l.queue[i] = w
	}
}

func (m *model) oldest(shard int, list Tasklist, at Column) int {
	best := -1
	for i, c := range m.chunks[shard] {
		if c.Tasklist == list && c.Column == at && (best < 0 || before(c, m.chunks[shard][best])) {
			best = i
		}
	}
	return best
}

// modelWant is what became of a want: its triggers, those that come ahead, and the limits met.
type modelWant struct {
	triggers [][]byte
	ahead    []byte
	blocked  []Blocked
}

// do carries out a call; seen tells how many candidates of each want count as looked at.
func (m *model) do(c Call, now int64, seen []int) ([]modelWant, []LimitState, bool) {
	for _, s := range c.Stances {
		if l := m.limits[s.Ref]; l != nil {
			if q, ok := l.seq[c.Shard]; ok && (q.Epoch > c.Seq.Epoch || q.Epoch == c.Seq.Epoch && q.Call >= c.Seq.Call) {
				return nil, nil, false
			}
		}
	}
	for _, s := range c.Stances {
		m.limit(s.Ref).state(&c, s, now)
	}
	for _, chunk := range c.Put {
		chunk.Triggers = bytes.Clone(chunk.Triggers)
		m.chunks[c.Shard] = append(m.chunks[c.Shard], chunk)
	}
	met, granted, short := make([]bool, len(c.Stances)), make([]int, len(c.Stances)), make([]int, len(c.Stances))
	wants := make([]modelWant, len(c.Wants))
	for i, w := range c.Wants {
		wants[i] = m.want(&c, w, seen[i], met, granted, short)
	}
	states := make([]LimitState, len(c.Stances))
	for i, s := range c.Stances {
		l := m.limits[s.Ref]
		l.end(c.Shard, met[i], granted[i], short[i])
		states[i] = LimitState{Used: l.used(), Restoring: len(l.held) < c.Shards}
		others := slices.ContainsFunc(l.queue, func(w modelWaiter) bool { return w.shard != c.Shard })
		states[i].Others = others && !states[i].Restoring
		for !others && !states[i].Restoring && states[i].Leased < s.Ask && (states[i].Leased+1)*c.Shards <= s.Max-states[i].Used {
			states[i].Leased++
		}
		l.held[c.Shard] += states[i].Leased
		states[i].Used += states[i].Leased
	}
	return wants, states, true
}

func (m *model) want(c *Call, w Want, seen int, met []bool, granted, short []int) modelWant {
	var got modelWant
	ahead := w.Ahead
	blocks := func(at Candidate) (int, BlockedWhy) {
		for _, s := range at.Path {
			if n, why := m.limits[c.Stances[s].Ref].free(c, c.Stances[s]); n <= 0 {
				return s, why
			}
		}
		return -1, 0
	}
	for len(got.triggers) < w.N {
		best := -1
		var which Candidate
		for _, at := range w.Candidates {
			if by, _ := blocks(at); by >= 0 {
				continue
			}
			i := m.oldest(c.Shard, w.Tasklist, at.Column)
			if i >= 0 && (best < 0 || at.Priority < which.Priority ||
				at.Priority == which.Priority && m.chunks[c.Shard][i].ReadyAt < m.chunks[c.Shard][best].ReadyAt) {
				best, which = i, at
			}
		}
		if best < 0 {
			break
		}
		for _, s := range which.Path {
			met[s] = true
			granted[s]++
			m.limits[c.Stances[s].Ref].held[c.Shard]++
		}
		head := &m.chunks[c.Shard][best]
		got.triggers = append(got.triggers, bytes.Clone(head.Triggers[:ids.TriggerBytes]))
		head.Triggers = head.Triggers[ids.TriggerBytes:]
		by, _ := blocks(which)
		if rest := head.Len(); by >= 0 && rest <= ahead {
			ahead -= rest
			got.ahead = append(got.ahead, head.Triggers...)
			head.Triggers = nil
		}
		if head.Len() == 0 {
			m.chunks[c.Shard] = slices.Delete(m.chunks[c.Shard], best, best+1)
		}
	}
	for _, at := range w.Candidates[:seen] {
		if m.oldest(c.Shard, w.Tasklist, at.Column) < 0 {
			continue
		}
		for _, s := range at.Path {
			met[s] = true
		}
		by, why := blocks(at)
		if by < 0 || slices.ContainsFunc(got.blocked, func(b Blocked) bool { return b.By == c.Stances[by].Ref }) {
			continue
		}
		got.blocked = append(got.blocked, Blocked{At: by, By: c.Stances[by].Ref, Why: why})
		short[by] += max(1, w.N-len(got.triggers))
	}
	return got
}

const modelShards = 3

var (
	modelTypes = []string{"a", "b", "c"}
	modelRefs  = []Ref{"type/b", "type/c", "all"}
	modelPaths = map[string][]int{"b": {0}, "c": {1, 2}}
)

// pair is the table and the model, driven with the same random calls.
type pair struct {
	*rapid.T
	table *Table
	model *model
	index [modelShards]Index
	// stored is what the index of each shard should count.
	stored [modelShards]int
	epoch  [modelShards]uint64
	now    int64
	calls  uint64
	next   uint64
}

// TestI8_TableFollowsTheRules drives the table and the model with the same calls of
// several shards and owners, some of them late, and passing time. What is granted never
// lifts the sum of what is held above the limit (I8, R70).
func TestI8_TableFollowsTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pair{T: t, table: New(), model: newModel(), now: 1_000_000}
		for shard := range modelShards {
			p.table.Open("d", shard, "e")
			p.epoch[shard] = 1
		}
		var late []Call
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch c := p.call(); rapid.IntRange(0, 15).Draw(t, "when") {
			case 0:
				late = append(late, c)
			case 1:
				p.epoch[c.Shard]++
			case 2:
				p.now += rapid.SampledFrom([]int64{1, 1000, 3000, 300_000}).Draw(t, "ms")
			case 3:
				if len(late) > 0 {
					p.do(late[0])
					late = late[1:]
				}
			default:
				p.do(c)
			}
		}
	})
}

func (p *pair) call() Call {
	shard := rapid.IntRange(0, modelShards-1).Draw(p.T, "shard")
	p.calls++
	c := Call{Domain: "d", Shard: shard, Shards: modelShards, Epoch: "e", Seq: Seq{p.epoch[shard], p.calls}}
	if rapid.IntRange(0, 9).Draw(p.T, "old owner") == 0 {
		c.Seq.Epoch--
	}
	for range rapid.IntRange(0, 2).Draw(p.T, "chunks") {
		chunk := Chunk{Tasklist: list, Column: Column{
			Priority: rapid.IntRange(1, 3).Draw(p.T, "priority"), Type: rapid.SampledFrom(modelTypes).Draw(p.T, "type"),
		}, ReadyAt: int64(rapid.IntRange(1, 20).Draw(p.T, "ready"))}
		for range rapid.IntRange(1, 6).Draw(p.T, "triggers") {
			p.next++
			chunk.Triggers = ids.AppendTrigger(chunk.Triggers, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, p.next)})
		}
		c.Put = append(c.Put, chunk)
	}
	for _, ref := range modelRefs {
		c.Stances = append(c.Stances, Stance{
			Ref: ref, Max: rapid.IntRange(1, 8).Draw(p.T, "max"), Held: rapid.IntRange(0, 3).Draw(p.T, "held"),
			Ask: rapid.IntRange(0, 6).Draw(p.T, "ask"), Wait: rapid.IntRange(0, 2).Draw(p.T, "wait"), TTL: time.Duration(rapid.IntRange(0, 2).Draw(p.T, "ttl")) * time.Second,
		})
	}
	for range rapid.IntRange(0, 2).Draw(p.T, "wants") {
		c.Wants = append(c.Wants, Want{
			Tasklist: list, N: rapid.IntRange(1, 12).Draw(p.T, "n"), Ahead: rapid.IntRange(0, 6).Draw(p.T, "ahead"),
		})
	}
	return c
}

// clone is an index that changes alone.
func (x *Index) clone() Index {
	c := Index{heads: maps.Clone(x.heads), triggers: x.triggers}
	for _, block := range x.blocks {
		c.blocks = append(c.blocks, slices.Clone(block))
	}
	return c
}

// do completes a call by what the index knows, makes it, and compares.
func (p *pair) do(c Call) {
	index := &p.index[c.Shard]
	known := index.clone()
	for _, chunk := range c.Put {
		known.Put(chunk.Column, chunk.ReadyAt, chunk.Len())
	}
	for i := range c.Wants {
		c.Wants[i].Candidates = known.Candidates(nil, 0, 100, func(Column) bool { return false })
		for k := range c.Wants[i].Candidates {
			c.Wants[i].Candidates[k].Path = modelPaths[c.Wants[i].Candidates[k].Type]
		}
	}
	got := p.table.Do(c, p.now*1000)
	seen := make([]int, len(c.Wants))
	for i, taken := range got.Taken {
		seen[i] = len(taken.Heads)
	}
	wants, states, ok := p.model.do(c, p.now, seen)
	if got.Lost || got.Overtaken == ok {
		p.Fatalf("refused %+v, by the rules: %v", got, !ok)
	}
	if !ok {
		return
	}
	*index = known
	for _, chunk := range c.Put {
		p.stored[c.Shard] += chunk.Len()
	}
	if !slices.Equal(got.Limits, states) {
		p.Fatalf("limits %+v, want %+v", got.Limits, states)
	}
	granted := make([]int, len(c.Stances))
	for i, taken := range got.Taken {
		p.compare(c.Shard, taken, wants[i])
		for _, b := range taken.Batches {
			for _, s := range modelPaths[b.Type] {
				granted[s] += len(b.Triggers) / ids.TriggerBytes
			}
		}
	}
	for i, s := range c.Stances {
		granted[i] += states[i].Leased
		if granted[i] > 0 && (states[i].Used > s.Max || states[i].Restoring) {
			p.Fatalf("%d granted of %s, at most %d: %+v", granted[i], s.Ref, s.Max, states[i])
		}
	}
	if index.Triggers() != p.stored[c.Shard] {
		p.Fatalf("the index counts %d triggers, the table holds %d", index.Triggers(), p.stored[c.Shard])
	}
}

func (p *pair) compare(shard int, taken Taken, want modelWant) {
	var flat [][]byte
	var ahead []byte
	for _, b := range taken.Batches {
		ahead = append(ahead, b.Ahead...)
		for tr := range slices.Chunk(b.Triggers, ids.TriggerBytes) {
			flat = append(flat, tr)
		}
		if b.Booked != (modelPaths[b.Type] != nil) {
			p.Fatalf("booked: %+v", b)
		}
	}
	if !slices.EqualFunc(flat, want.triggers, bytes.Equal) {
		p.Fatalf("took\n%x, want\n%x", flat, want.triggers)
	}
	if !bytes.Equal(ahead, want.ahead) {
		p.Fatalf("ahead\n%x, want\n%x", ahead, want.ahead)
	}
	if !slices.Equal(taken.Blocked, want.blocked) {
		p.Fatalf("blocked %+v, want %+v", taken.Blocked, want.blocked)
	}
	for _, h := range taken.Heads {
		p.index[shard].Seen(h)
		p.stored[shard] -= h.Gone
	}
}

// R34: two shards share one slot. However they take turns at calling, each that wants it
// gets it before the other gets it twice more.
func TestR34_NoShardStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := New()
		held := [2]int{}
		waits := [2]int{} // how often the other was granted while this one waited
		waiting := [2]bool{}
		for shard := range 2 {
			table.Open("d", shard, "e")
		}
		var calls uint64
		for range 200 {
			calls++
			shard := rapid.IntRange(0, 1).Draw(t, "shard")
			held[shard] = 0 // what it had is over
			c := Call{
				Domain: "d", Shard: shard, Shards: 2, Epoch: "e", Seq: Seq{1, calls},
				Stances: []Stance{{Ref: "type/a", Max: 1, Wait: 3}}, Put: []Chunk{chunk("a", int64(calls), int(calls), int(calls)+1)},
				Wants: []Want{{Tasklist: list, N: 1, Candidates: []Candidate{{Column: Column{3, "a", ""}, Path: []int{0}}}}},
			}
			out := table.Do(c, 5000)
			waiting[shard] = true
			if len(out.Taken[0].Batches) > 0 {
				held[shard], waits[shard] = 1, 0
				if waiting[1-shard] {
					waits[1-shard]++
				}
			}
			if held[0]+held[1] > 1 || waits[0] > 1 || waits[1] > 1 {
				t.Fatalf("held %v, passed over %v times", held, waits)
			}
		}
	})
}
