package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// token is so many starts that the tables gave at once, and what one attempt of them costs.
type token struct {
	at      time.Duration
	n, cost int
}

// beyond is by how much the last of them costs more than the burst.
func (t token) beyond(rate table.Rate) int { return max(0, t.cost-rate.Burst) }

// tokensOf notes what a call was granted of rates, and what it gave back.
func (w *world) tokensOf(c *table.Call, out *table.Outcome) {
	for _, s := range c.Stances {
		if s.Unused > 0 && !s.Shadow {
			w.tokens[s.Ref] = append(w.tokens[s.Ref], token{at: w.now, n: -s.Unused})
		}
	}
	for i, taken := range out.Taken {
		for _, b := range taken.Batches {
			for _, at := range c.Wants[i].Candidates {
				if at.Column != b.Column {
					continue
				}
				for _, s := range at.Path {
					if ref := c.Stances[s].Ref; c.Stances[s].Rate.EveryUS > 0 {
						w.tokens[ref] = append(w.tokens[ref], token{w.now, len(b.Triggers) / 28 * max(b.Cost, 1), max(b.Cost, 1)})
					}
				}
			}
		}
	}
}

// checkRates holds that in no time more was let start than a burst and what the rate gives in that time, but for a burst more each
// time that the tables lost their memory, and but for what the last one costs beyond a burst, before such a loss, too: it is paid off
// afterwards. And that nothing started without.
func (w *world) checkRates() {
	w.t.Helper()
	for key, rate := range w.rates {
		if w.changed["rate "+key] {
			continue
		}
		l, _ := limitOf(key, key[:1])
		all, sum := w.tokens[table.RateRef(l.Ref)], 0
		for i := range all {
			n := 0
			for j, later := range all[i:] {
				n += later.n
				lost, beyond := 0, later.beyond(rate)
				for _, at := range w.forgotten {
					if at >= all[i].at && at <= later.at {
						lost++
						for k := i + j; k >= i; k-- {
							if all[k].at <= at {
								beyond += all[k].beyond(rate)
								break
							}
						}
					}
				}
				most := float64(beyond+rate.Burst*(1+lost)) + float64((later.at-all[i].at).Microseconds())/rate.EveryUS
				rounded := float64(j+1) * 0.25 / rate.EveryUS // an instant of today in µs is kept to a quarter of one, at each call
				if later.n > 0 && float64(n) > most+rounded {
					w.t.Fatalf("%s: %d starts from %v to %v, %.3f may be", key, n, all[i].at, later.at, most)
				}
			}
			sum += all[i].n
		}
		if w.starts[key] > sum {
			w.t.Fatalf("%s: %d starts were used, the tables gave %d", key, w.starts[key], sum)
		}
	}
}

// rated is a world whose only shard knows some rates of domain d, by name.
func rated(t *testing.T, rates map[string]table.Rate) (*world, *owner) {
	w, o := begun(t, 2)
	w.rates = rates
	w.limitsChanged()
	w.run(10 * ms)
	return w, o
}

// A burst starts at once, the others as the rate says, without anything else that happens; what it does not cover does not wait.
func TestARateIsKept(t *testing.T) {
	w, _ := rated(t, map[string]table.Rate{"d/a": {EveryUS: 10_000, Burst: 5}})
	w.ready("d", "l0", "a", 1, 40)
	w.ready("d", "l0", "b", 3, 40)
	w.wait("p", 100)
	w.run(30 * ms)
	if a, b := w.starts["d/a"], w.starts["d/b"]; a < 5 || a > 8 || b != 40 {
		t.Fatalf("%d of the rate and %d others have started", a, b)
	}
	began, before := w.now, w.starts["d/a"]
	w.keepPolling(200*ms, "l0")
	if n := w.starts["d/a"] - before; n < 17 || n > 25 {
		t.Fatalf("%d have started in %v", n, w.now-began)
	}
	w.keepPolling(400*ms, "l0")
	testkit.MustEqual(t, "have started at last", w.starts["d/a"], 40)
	w.checkRates()
}

// SEEDS T11: the only thing that wakes a poll is the time, be it an hour.
func TestARateWakesByItself(t *testing.T) {
	w, o := rated(t, map[string]table.Rate{"d/a": {EveryUS: 30e6, Burst: 1}})
	w.ready("d", "l0", "a", 1, 3)
	for i := range 3 {
		w.poll("p"+string(rune('0'+i)), waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: 2 * time.Minute})
	}
	steps := 0
	for _, want := range []int{1, 2, 3} {
		calls := len(w.calls)
		w.run(29 * time.Second)
		if w.starts["d/a"] != want {
			t.Fatalf("after %v %d have started, want %d", w.now, w.starts["d/a"], want)
		}
		w.run(time.Second)
		if n := len(w.calls) - calls; n > 20 {
			t.Fatalf("%d calls while nothing can start", n)
		}
		steps++
	}
	w.run(time.Minute)
	if len(o.s.limits.Timed) != 0 || steps != 3 {
		t.Fatal("something waits still")
	}
	w.checkRates()
}

// A rate and a limit with slots hold together, all or none: what has no slot uses up no start.
func TestARateBesideALimit(t *testing.T) {
	w, _ := rated(t, map[string]table.Rate{"d": {EveryUS: 1000, Burst: 10}})
	w.ends = false
	w.limit("d/a", 3)
	w.run(100 * ms)
	w.ready("d", "l0", "a", 1, 30)
	w.keepPolling(300*ms, "l0")
	if w.starts["d/a"] != 3 || w.peak["d/a"] != 3 {
		t.Fatalf("%d have started, %d at once", w.starts["d/a"], w.peak["d/a"])
	}
	if sum := w.tokens[table.RateRef(table.DomainRef)]; len(sum) > 3 {
		t.Fatalf("%d times starts were used up for 3 attempts: %v", len(sum), sum)
	}
	paths := 0
	for _, b := range w.batches {
		for _, g := range b.Grabs {
			testkit.Equal(t, "an attempt booked", g.Path, []table.Ref{"type/a"})
			paths++
		}
	}
	if paths < 3 {
		t.Errorf("%d grabs", paths)
	}
	for range 40 {
		w.finishAll()
		w.keepPolling(20*ms, "l0")
	}
	if w.starts["d/a"] != 30 || w.peak["d/a"] != 3 {
		t.Fatalf("%d have started, %d at once", w.starts["d/a"], w.peak["d/a"])
	}
	w.checkRates()
}

// What does not start uses up nothing of a rate: cancelled tasks, however many they are, and triggers that came twice, also of costly ones.
func TestWhatDoesNotStartUsesUpNoRate(t *testing.T) {
	for name, cost := range map[string]int{"cheap": 0, "costly": 3} {
		t.Run(name, func(t *testing.T) {
			w, _ := rated(t, map[string]table.Rate{"d/a": {EveryUS: 200_000, Burst: 5}})
			w.cost = func() int { return cost }
			for _, task := range w.ready("d", "l0", "a", 1, 100) {
				task.state = "done"
			}
			w.run(10 * ms)
			w.ready("d", "l0", "a", 1, 1)
			w.keepPolling(500*ms, "l0")
			if w.starts["d/a"] != max(cost, 1) {
				t.Fatalf("%d have started after %v", w.starts["d/a"], w.now)
			}
			w.keepPolling(4*time.Second, "l0")
			w.rates["d/a"] = table.Rate{EveryUS: 10_000, Burst: 5}
			w.limitsChanged()
			tasks, started := w.ready("d", "l0", "a", 1, 300), w.starts["d/a"]
			w.run(10 * ms)
			w.trigger(tasks...) // another owner of history sends all that it has
			w.keepPolling(time.Second, "l0")
			if n := w.starts["d/a"] - started; n < 95 {
				t.Fatalf("%d have started in a second", n)
			}
			w.checkRates()
		})
	}
}

// A grant whose verdict is lost has started: the copy that comes after its end is refused, which gives no start back. Nor does a grant that is handed back.
func TestAGrantUsesItsStart(t *testing.T) {
	for name, fails := range map[string]func(*world){
		"its verdict is lost": func(w *world) {
			lost := false
			w.lease, w.late = 100*ms, func() time.Duration {
				if lost || w.grantedN == 0 {
					return 0
				}
				lost = true
				return time.Hour
			}
		},
		"its worker has left": func(w *world) { w.deaf = func(inbox string) bool { return inbox == "p0" } },
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := rated(t, map[string]table.Rate{"d/a": {EveryUS: 3600e6, Burst: 1}})
			fails(w)
			w.poll("p0", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: time.Minute})
			w.ready("d", "l0", "a", 1, 1)
			w.run(50 * ms)
			w.poll("p1", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: time.Minute})
			w.run(10 * time.Second)
			if w.starts["d/a"] != 1 {
				t.Errorf("%d have started", w.starts["d/a"])
			}
			w.checkRates()
		})
	}
}

// A rate that is changed, or goes, counts at once; pollers do not complain while it holds up what there is.
func TestARateIsChanged(t *testing.T) {
	w, o := rated(t, map[string]table.Rate{"d/a": {EveryUS: 3600e6, Burst: 1}})
	w.ready("d", "l0", "a", 1, 30)
	w.wait("p", 1)
	w.run(20 * ms)
	w.poll("q", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 5, For: time.Minute})
	w.run(10 * time.Second)
	if w.starts["d/a"] != 1 || len(w.hungry) != 0 {
		t.Fatalf("%d have started, %d complaints", w.starts["d/a"], len(w.hungry))
	}
	used, _ := o.s.LimitsInUse("d", 3, Now{Mono: w.now})
	if len(used) != 1 || used[0].Ref != "rate/type/a" || used[0].Max != 0 || used[0].FullFor < 9*time.Second || used[0].Lists != 1 || used[0].Tasks != 29 {
		t.Fatalf("limits.top says %+v", used)
	}
	w.rates["d/a"] = table.Rate{EveryUS: 1000, Burst: 3}
	w.limitsChanged()
	w.run(100 * ms)
	if p := w.polls["q"]; p.answered != 1 || p.tasks < 3 {
		t.Fatalf("faster: %+v", p)
	}
	delete(w.rates, "d/a")
	w.limitsChanged()
	w.wait("r", 100)
	w.run(50 * ms)
	testkit.MustEqual(t, "without have started", w.starts["d/a"], 30)
}
