package match

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var (
	seedFlag  = flag.Uint64("match.seed", 0, "the only seed of TestRandom")
	seedsFlag = flag.Uint64("match.seeds", 1, "how many seeds TestRandom tries")
)

// TestRandom runs two shards on random inputs, tables that fail, partitions that fall silent, owners
// that are killed or overtaken and workers that leave. After each step the counts are checked;
// at the end every task is done, no limit was ever exceeded, and nothing is left in memory.
func TestRandom(t *testing.T) {
	first, n := uint64(1), *seedsFlag
	if *seedFlag > 0 {
		first, n = *seedFlag, 1
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { randomRun(t, seed) })
	}
}

// storm is a world in which everything fails now and then.
type storm struct {
	*world
	r      *rand.Rand
	wild   bool
	epochs []uint64
	polled int
	faults faults
}

func newStorm(t *testing.T, seed uint64) *storm {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &storm{world: newWorld(t, 2, 1+r.IntN(4)), r: r, wild: true, epochs: []uint64{0, 0}, faults: faults{}}
	w.limits["d/a"] = 1 + r.IntN(4)
	w.limits["e/pay"] = 1 + r.IntN(8)
	w.shared = []string{"d:a,b", "d:b,pay", "e:a,pay"}
	if r.IntN(3) > 0 { // several levels
		w.limits["d"], w.limits["e#l1"], w.limits[w.shared[r.IntN(3)]] = 2+r.IntN(6), 1+r.IntN(4), 1+r.IntN(5)
	}
	if r.IntN(2) == 0 { // of groups
		w.limits["d/a*"], w.limits["e*"] = 1+r.IntN(3), 2+r.IntN(4)
		w.groupLimits = map[string]int{"g0": 1 + r.IntN(6), "g3": 1}
		if r.IntN(2) == 0 {
			w.limits["d#l1*"], w.limits[w.shared[r.IntN(3)]+"*"] = 1+r.IntN(3), 1+r.IntN(3)
		}
	}
	w.delay = func() time.Duration { return time.Duration(r.IntN(4000)) * time.Microsecond }
	if groups := r.IntN(4); groups > 0 || w.groupLimits != nil {
		groups = max(groups, 1)
		w.weights = map[string]float64{"g1": 0.01, "g2": 100, "g3": 0}
		w.group = func() string {
			return []string{"", "g0", "g1", "g2", "g3", fmt.Sprint("g", 4+r.IntN(1000))}[r.IntN(2*groups)]
		}
	}
	w.work = func() time.Duration { return time.Duration(r.IntN(60)) * time.Millisecond }
	if r.IntN(2) == 0 {
		w.rates["d/b"] = table.Rate{EveryUS: 1e6 / float64(20+r.IntN(300)), Burst: 1 + r.IntN(20)}
		w.rates["e"] = table.Rate{EveryUS: 1e6 / float64(50+r.IntN(500)), Burst: 1 + r.IntN(60)}
	}
	if r.IntN(2) == 0 {
		w.cost = func() int { return []int{0, 0, 0, 2, 5, 40}[r.IntN(6)] }
	}
	if r.IntN(2) == 0 {
		w.inShadow([]string{"d/a", "e/pay", "d", "rate d/b", "rate e"}[r.IntN(5)])
	}
	for range r.IntN(4) {
		w.policies[[]string{"d/a", "e/pay", "d/b*", "d*", "d", w.shared[0]}[r.IntN(6)]] = []limit.OnFull{limit.RejectNewest, limit.CancelOldest}[r.IntN(2)]
	}
	w.lease = 5 * time.Second
	w.fails()
	w.next(0)
	w.next(1)
	return w
}

// next is a new owner of a shard. Those before learn of it after a while, if nothing tells them before.
func (w *storm) next(shard int) {
	w.epochs[shard]++
	for _, old := range w.owners {
		if old.shard == shard && !old.dead {
			w.after(time.Duration(w.r.IntN(3000))*time.Millisecond, func() { old.dead = true })
		}
	}
	w.own(shard, w.epochs[shard], func(c *Config) {
		c.GrabEventsMax, c.PopMax, c.AnswerBytesMax = 1+w.r.IntN(20), 1+w.r.IntN(40), 100+w.r.IntN(2000)
	})
}

func (w *storm) domain() string { return []string{"d", "e"}[w.r.IntN(2)] }
func (w *storm) list() string   { return fmt.Sprint("l", w.r.IntN(4)) }
func (w *storm) typ() string    { return []string{"a", "b", "pay"}[w.r.IntN(3)] }

func (w *storm) pollOnce() {
	w.polled++
	list := w.list()
	p := waiting.Poll{
		Domain: w.domain(), Tasklist: list, Partition: w.r.IntN(w.partsOf(list)), Max: 1 + w.r.IntN(20), JSON: w.r.IntN(4) == 0,
		For: time.Duration(w.r.IntN(3000)) * time.Millisecond,
	}
	if w.wild && w.r.IntN(3) == 0 {
		p.Types = []string{w.typ()}
	}
	w.poll(fmt.Sprint("inbox", w.polled), p)
}

// blow is one thing that happens.
func (w *storm) blow() {
	switch n := w.r.IntN(100); {
	case n < 30:
		w.ready(w.domain(), w.list(), w.typ(), 1+w.r.IntN(3), 1+w.r.IntN(20))
	case n < 75:
		w.pollOnce()
	case n < 78:
		p := w.r.IntN(len(w.partitions))
		w.partitions[p].silent = true
		w.faults["a partition is silent"]++
		w.after(time.Duration(w.r.IntN(1500))*time.Millisecond, func() { w.speak(p) })
	case n < 80:
		name := w.domain()
		w.down[name] = true
		w.faults["a domain's tables are away"]++
		w.after(time.Duration(w.r.IntN(800))*time.Millisecond, func() { w.down[name] = false })
	case n < 81:
		w.tables.Forget()
		w.faults["the tables lose their memory"]++
		w.forgotten = append(w.forgotten, w.now)
	case n < 82: // a new owner; the one before is killed, or does not know yet
		shard := w.r.IntN(2)
		if w.r.IntN(2) == 0 {
			w.kill(shard)
			w.faults["an owner is killed"]++
		} else {
			w.faults["an owner is overtaken"]++
		}
		if w.r.IntN(20) == 0 { // none for long: what it holds of limits expires
			w.kill(shard)
			w.faults["entries expire"]++
			w.run(time.Minute + table.ExpiryAfter + time.Second)
		}
		w.next(shard)
	case n < 83:
		w.faults["a stream of hints is lost"]++
		w.newest(w.r.IntN(2)).give(func(in *Inputs) { in.HintsLost = true })
	case n == 84:
		w.change()
	case n == 85:
		name := w.list()
		w.spread[name] = 1 + w.r.IntN(5)
		w.scales[name] = w.spread[name]%2 == 0
	case n < 84:
		shard := w.r.IntN(2)
		w.newest(shard).give(func(in *Inputs) { in.Drain = true })
		w.run(2500 * time.Millisecond)
		if o := w.newest(shard); !o.drained && !o.overtaken {
			w.t.Fatal("it does not end")
		}
		w.next(shard)
	}
}

// change has a limit come or go, or cover other types. No more may run than it says for a while after.
func (w *storm) change() {
	if w.r.IntN(3) == 0 {
		w.pauseOrResume()
		return
	}
	if key := []string{"d#l1", "d/b", "e#l2", "e/pay"}[w.r.IntN(4)]; w.r.IntN(3) == 0 {
		if w.pauses[key] = !w.pauses[key]; !w.pauses[key] {
			delete(w.pauses, key)
		}
		for _, o := range w.owners {
			o.give(func(in *Inputs) { in.Limits = append(in.Limits, key[:1]) })
		}
		return
	}
	if w.r.IntN(3) == 0 {
		key := []string{"d/a", "e/pay", "d", "e", "e#l1", "rate d/b", "rate e"}[w.r.IntN(7)]
		w.inShadow(key)
		for _, o := range w.owners {
			o.give(func(in *Inputs) { in.Limits = append(in.Limits, key[max(0, strings.IndexByte(key, ' ')+1):][:1]) })
		}
		return
	}
	key := []string{"d", "e", "d/b", "e#l2", "d/b*", "d*", "e#l2*", "d/a*"}[w.r.IntN(8)]
	if w.r.IntN(3) == 0 {
		key = w.shared[w.r.IntN(3)]
		for _, other := range w.shared { // of a domain one is there at a time: they have one reference
			if other != key && other[0] == key[0] && w.limits[other] > 0 {
				delete(w.limits, other)
				w.changes(other)
			}
		}
	}
	w.changes(key)
	if w.limits[key] == 0 {
		w.limits[key] = 1 + w.r.IntN(6)
	} else {
		delete(w.limits, key)
	}
	for _, o := range w.owners {
		o.give(func(in *Inputs) { in.Limits = append(in.Limits, key[:1], w.domain()) })
	}
}

// pauseOrResume has a group be paused, or go on; now and then one owner hears of it late.
func (w *storm) pauseOrResume() {
	key := w.domain() + "=" + fmt.Sprint("g", w.r.IntN(5))
	if w.pausedGroups[key] = !w.pausedGroups[key]; !w.pausedGroups[key] {
		delete(w.pausedGroups, key)
	}
	for _, o := range w.owners {
		o.give(func(in *Inputs) { in.Limits = append(in.Limits, key[:1]) })
	}
}

// inShadow has a limit or a rate be in shadow, or no more.
func (w *storm) inShadow(key string) {
	w.changes(key)
	w.shadow[key] = !w.shadow[key]
}

// calm ends all failures, and has all tasks done.
func (w *storm) calm() {
	w.wild = false
	clear(w.pauses)
	clear(w.scales)
	clear(w.pausedGroups)
	for _, o := range w.owners {
		o.give(func(in *Inputs) { in.Limits = append(in.Limits, "d", "e") })
	}
	for p := range w.partitions {
		w.speak(p)
	}
	clear(w.down)
	for i := 0; w.done() < len(w.tasks) || w.stored(); i++ {
		if i > 20_000 {
			w.t.Fatalf("%d of %d tasks are done: %s", w.done(), len(w.tasks), w.undone())
		}
		w.pollOnce()
		w.run(20 * time.Millisecond)
	}
}

func randomRun(t *testing.T, seed uint64) *storm {
	w := newStorm(t, seed)
	for range 400 {
		w.blow()
		w.run(time.Duration(w.r.IntN(40)) * time.Millisecond)
	}
	w.calm()
	for key := range w.limits {
		for name, n := range w.peaks(key) {
			if most := w.most(key, name); n > most && !w.changed[key] {
				t.Errorf("%d attempts of %s ran at once, %d may", n, name, most)
			}
		}
	}
	w.run(5 * time.Minute)
	w.checkRates()
	for shard := range w.shards {
		o := w.newest(shard) // those before may not know yet
		if len(o.live) > 0 || len(o.deliveries) > 0 {
			t.Errorf("%d polls were never answered, %d messages never acknowledged", len(o.live), len(o.deliveries))
		}
		checkEmpty(t, o.s)
	}
	w.checkFree()
	if w.counts.Matches == 0 {
		t.Errorf("nothing was matched: %+v", w.counts)
	}
	return w
}

// Equal inputs have equal effects: a seed that fails can be run again.
func TestEqualInputsHaveEqualEffects(t *testing.T) {
	run := func() string {
		w := newStorm(t, 7)
		for range 200 {
			w.blow()
			w.run(time.Duration(w.r.IntN(40)) * time.Millisecond)
		}
		return fmt.Sprint(w.batches, w.calls, w.answers, w.asked, w.hungry)
	}
	testkit.MustEqual(t, "two runs of one seed differ", run(), run())
}

// newest is the present owner of a shard.
func (w *world) newest(shard int) *owner {
	for i := len(w.owners) - 1; ; i-- {
		if w.owners[i].shard == shard {
			return w.owners[i]
		}
	}
}

// kill ends the owners of a shard without a word.
func (w *world) kill(shard int) {
	for _, o := range w.owners {
		if o.shard == shard {
			o.dead = true
		}
	}
}

// undone is what became of the tasks that are not done.
func (w *world) undone() string {
	text, n := "", 0
	for _, t := range w.sorted() {
		if t.state != "done" && n < 5 {
			n++
			text += fmt.Sprintf("%s/%s/%s %s shard %d partition %d version %d; ", t.domain, t.list, t.typ, t.state, t.shard, t.id.Partition(), t.version)
		}
	}
	return text
}

// stored tells whether a table holds triggers, or is about to, be they of no use any more.
func (w *world) stored() bool {
	for shard := range w.shards {
		for _, l := range w.newest(shard).s.lists {
			if !l.index.Empty() || l.source.Putting() || l.WaitsForSlot() {
				return true
			}
		}
	}
	return false
}
