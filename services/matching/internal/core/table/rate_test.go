package table

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// SEEDS 0.2, 15: whatever the rate, a burst may start after a rest, be it one, and in no time more than a burst and what the
// rate gives; who comes again after the wait that it was given, gets one. What costs several starts counts as so many, but for what the last one costs
// beyond a burst, which is paid off after it; and none overtakes another.
func TestARateIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 600 {
		rate := Rate{EveryUS: 1 + r.ExpFloat64()*10_000, Burst: 1 + r.IntN(20)}
		cost := func() int { return 0 }
		if i%2 == 1 {
			cost = func() int { return Cost([]int{1, 1, 2, 5, 1 + r.IntN(30)}[r.IntN(5)]) }
		}
		isExact(t, r, rate, cost)
	}
}

// exactStarts are so many that started together, at a cost each.
type exactStarts struct {
	at      int64
	n, cost int
}

func isExact(t *testing.T, r *rand.Rand, rate Rate, cost func() int) {
	table, now := New(), int64(1_790_000_000_000_000)+r.Int64N(1e12)
	table.Open("d", 0, "life")
	var all []exactStarts
	wait, next, oldest := time.Duration(0), int64(0), int64(0)
	for call := range 200 {
		if call%3 == 0 {
			now += wait.Microseconds()
		} else {
			now += r.Int64N(int64(3*rate.EveryUS) + 1)
		}
		want := 1 + r.IntN(30)
		var puts []Chunk
		for n := want; n > 0; {
			some, price := n, cost()
			if price > 0 {
				some = 1 + r.IntN(n)
			}
			n -= some
			next++
			puts = append(puts, Chunk{
				Tasklist: Tasklist{"d", "l", 0}, Column: Column{1, "a", ""}, ReadyAt: next, Cost: price, Triggers: make([]byte, 28*some),
			})
		}
		out := table.Do(Call{
			Domain: "d", Shards: 1, Epoch: "life", Seq: Seq{1, uint64(call + 1)}, Put: puts,
			Stances: []Stance{{Ref: "rate/type/a", Rate: rate}},
			Wants:   []Want{{Tasklist: puts[0].Tasklist, N: want, Candidates: []Candidate{{Column: puts[0].Column, Path: []int{0}}}}},
		}, now)
		n := 0
		for _, b := range out.Taken[0].Batches {
			if b.ReadyAt < oldest {
				t.Fatalf("%+v: one starts that is older than another that has started", rate)
			}
			oldest = b.ReadyAt
			n += len(b.Triggers) / 28
			all = append(all, exactStarts{now, len(b.Triggers) / 28, max(b.Cost, 1)})
			keepsTo(t, rate, all)
		}
		switch {
		case call == 0 && n == 0 || call == 0 && puts[0].Cost == 0 && n < min(puts[0].Len(), rate.Burst):
			t.Fatalf("%+v: %d of %d start after a rest", rate, n, want)
		case call%3 == 0 && n == 0 && wait > time.Microsecond:
			t.Fatalf("%+v: none starts after the wait of %v that was asked for", rate, wait)
		case n < want && len(out.Taken[0].Blocked) != 1:
			t.Fatalf("%+v: %d of %d start, and nothing is in the way: %+v", rate, n, want, out)
		}
		wait = out.Limits[0].After
	}
}

// keepsTo holds that in no time that ends with the last start there were more than the rate allows.
func keepsTo(t *testing.T, rate Rate, all []exactStarts) {
	t.Helper()
	last, sum := all[len(all)-1], 0
	for i := len(all) - 1; i >= 0; i-- {
		sum += all[i].n * all[i].cost
		most := float64(rate.Burst+max(0, last.cost-rate.Burst)) + float64(last.at-all[i].at)/rate.EveryUS
		rounded := 0.125 * float64(len(all)) / rate.EveryUS // Unix µs are to a quarter of one
		if float64(sum) > most+rounded {
			t.Fatalf("%+v: %d starts in %d µs, %.2f may be", rate, sum, last.at-all[i].at, most)
		}
	}
}

// A rate that is changed forgets what was used up beyond it, and a clock that is put back stops none for long.
func TestARateThatChanges(t *testing.T) {
	table, now, calls := New(), int64(1_790_000_000_000_000), uint64(0)
	table.Open("d", 0, "life")
	take := func(rate Rate, want int) int {
		calls++
		put := Chunk{Tasklist: Tasklist{"d", "l", 0}, Column: Column{1, "a", ""}, ReadyAt: int64(calls), Triggers: make([]byte, 28*want)}
		out := table.Do(Call{
			Domain: "d", Shards: 1, Epoch: "life", Seq: Seq{1, calls}, Put: []Chunk{put},
			Stances: []Stance{{Ref: "rate/type/a", Rate: rate}},
			Wants:   []Want{{Tasklist: put.Tasklist, N: want, Candidates: []Candidate{{Column: put.Column, Path: []int{0}}}}},
		}, now)
		n := 0
		for _, b := range out.Taken[0].Batches {
			n += len(b.Triggers) / 28
		}
		return n
	}
	slow, fast := Rate{EveryUS: 3600e6, Burst: 1}, Rate{EveryUS: 1000, Burst: 3}
	testkit.MustEqual(t, "got", take(slow, 5), 1)
	testkit.MustEqual(t, "start at once with another rate", take(fast, 5), 0)
	now += 2000
	testkit.MustEqual(t, "start 2 ms later", take(fast, 5), 2)
	now -= 3600e6
	take(fast, 5)
	now += 3000
	testkit.MustEqual(t, "start after the clock was put back", take(fast, 5), 3)
}

// costs is a table of one rate that shards ask at given times, in µs since the first.
type costs struct {
	*testing.T
	table *Table
	rate  Rate
	calls uint64
	now   int64
}

func newCosts(t *testing.T, rate Rate) *costs {
	c := &costs{T: t, table: New(), rate: rate, now: 1_790_000_000_000_000}
	for shard := range 3 {
		c.table.Open("d", shard, "life")
	}
	return c
}

// costly are n triggers of a type at a cost.
func costly(typ string, readyAt int64, cost, n int) Chunk {
	return Chunk{Tasklist: Tasklist{"d", "l", 0}, Column: Column{1, typ, ""}, ReadyAt: readyAt, Cost: Cost(cost), Triggers: make([]byte, 28*n)}
}

// ask has a shard take one after another of up to n, in the order of its columns; what it gets is the type of each.
func (c *costs) ask(shard, n int, types string, puts ...Chunk) (string, LimitState) {
	c.calls++
	w := Want{Tasklist: Tasklist{"d", "l", 0}, N: n}
	for i := range types {
		w.Candidates = append(w.Candidates, Candidate{Column: Column{1, types[i : i+1], ""}, Path: []int{0}})
	}
	out := c.table.Do(Call{
		Domain: "d", Shard: shard, Shards: 3, Epoch: "life", Seq: Seq{1, c.calls}, Put: puts,
		Stances: []Stance{{Ref: "rate/domain", Rate: c.rate}}, Wants: []Want{w},
	}, c.now)
	got := ""
	for _, b := range out.Taken[0].Batches {
		got += strings.Repeat(b.Type, len(b.Triggers)/28)
	}
	return got, out.Limits[0]
}

func (c *costs) expect(what, got, want string) {
	c.Helper()
	if got != want {
		c.Fatalf("%s: %q, want %q", what, got, want)
	}
}

// One that costs more than the burst starts when that is whole, and nothing else before the rest is paid off.
func TestMoreThanABurstIsPaidOff(t *testing.T) {
	c := newCosts(t, Rate{EveryUS: 1000, Burst: 10})
	got, state := c.ask(0, 20, "ab", costly("a", 1, 25, 2), costly("b", 2, 1, 30))
	c.expect("first", got, "a")
	if state.After != 25*time.Millisecond {
		t.Fatalf("a whole burst is there after 25 ms: %+v", state)
	}
	c.now += 24_999
	got, _ = c.ask(0, 20, "ab")
	c.expect("too early", got, "")
	c.now++
	got, _ = c.ask(0, 20, "ab")
	c.expect("in time", got, "a")
	c.now += 15_999
	got, state = c.ask(0, 20, "b")
	c.expect("15 are not paid off", got, "")
	if state.After != time.Microsecond {
		t.Fatalf("%+v", state)
	}
	c.now++
	got, _ = c.ask(0, 20, "b")
	c.expect("paid off", got, "b")
	// Another rate: a debt is of so many starts, be they slower or faster now.
	c.now += 20_000
	got, _ = c.ask(0, 1, "a", costly("a", 3, 30, 1))
	c.expect("again", got, "a") // 20 beyond the burst
	c.rate.EveryUS = 100
	got, state = c.ask(0, 1, "b")
	c.expect("faster", got, "")
	if state.After != 2100*time.Microsecond {
		t.Fatalf("21 intervals of the new rate: %+v", state)
	}
	c.now += 1000
	c.rate.EveryUS = 5000
	if got, state = c.ask(0, 1, "b"); got != "" || state.After != 55*time.Millisecond {
		t.Fatalf("11 intervals of the slower one: %q, %+v", got, state)
	}
	c.now += 55_000
	got, _ = c.ask(0, 2, "b")
	c.expect("paid off", got, "b")
}

// Shards stand in line for a rate while one of them needs several starts at once: however many cheap ones others have, it gets them; and
// who was served goes behind.
func TestShardsTakeTurnsForSeveralStarts(t *testing.T) {
	c := newCosts(t, Rate{EveryUS: 1000, Burst: 10})
	c.ask(0, 10, "a", costly("a", 1, 1, 10)) // the burst
	got, state := c.ask(1, 9, "b", costly("b", 1, 5, 900))
	if got != "" || !state.Waits {
		t.Fatalf("%q, %+v", got, state)
	}
	got, state = c.ask(0, 9, "a", costly("a", 2, 1, 1000))
	if got != "" || !state.Waits || state.After != 6*time.Millisecond {
		t.Fatalf("5 are for the other: %q, %+v", got, state)
	}
	turns := ""
	for i := range 240 {
		c.now += 500
		got, _ = c.ask(i%2, 9, "ab"[i%2:i%2+1])
		turns += got
	}
	if cheap, dear := strings.Count(turns, "a"), strings.Count(turns, "b"); cheap < 15 || cheap > 25 || cheap+5*dear < 110 || cheap+5*dear > 121 {
		t.Fatalf("in 120 intervals %s", turns)
	}
	// Who waits for nothing leaves the line, and who does not come any more.
	c.ask(0, 9, "")
	for got = "b"; got != ""; c.now += 1000 {
		got, _ = c.ask(1, 9, "b")
	}
	got, _ = c.ask(0, 9, "a")
	c.expect("5 are for the other", got, "")
	c.ask(1, 9, "")
	got, _ = c.ask(0, 1, "a")
	c.expect("it has left", got, "a")
	c.now += 4000
	c.ask(1, 9, "b")
	got, _ = c.ask(0, 9, "a")
	c.expect("it is back", got, "")
	c.now += LineStale.Microseconds()
	got, _ = c.ask(0, 20, "a")
	c.expect("it has not come for long", got, "aaaaaaaaaa")
}

// A rate in shadow lets all through, and counts what it would have held up: that uses up nothing.
func TestARateInShadowCountsCosts(t *testing.T) {
	table := New()
	table.Open("d", 0, "life")
	out := table.Do(Call{
		Domain: "d", Shards: 1, Epoch: "life", Seq: Seq{1, 1}, Put: []Chunk{costly("a", 1, 4, 3), costly("a", 2, 1, 5)},
		Stances: []Stance{{Ref: "rate/domain", Rate: Rate{EveryUS: 1e9, Burst: 10}, Shadow: true}},
		Wants:   []Want{{Tasklist: Tasklist{"d", "l", 0}, N: 99, Candidates: []Candidate{{Column: Column{1, "a", ""}, Path: []int{0}}}}},
	}, 1_790_000_000_000_000)
	n := 0
	for _, b := range out.Taken[0].Batches {
		n += len(b.Triggers) / 28
	}
	if n != 8 || out.Limits[0] != (LimitState{Beyond: 4}) { // two at 4 and two at 1 fit
		t.Fatalf("%d are taken: %+v", n, out.Limits[0])
	}
}

// A chunk is stored with its cost if that is not 1, beside its rank or without, and is byte for byte as before without.
func TestAChunkKeepsItsCost(t *testing.T) {
	for _, c := range []Chunk{{ReadyAt: 7}, {ReadyAt: 7, Cost: 5}, {ReadyAt: 7, Rank: 9, Step: 3}, {ReadyAt: 7, Rank: 9, Step: 3, Cost: 1000}} {
		for n := range 5 {
			c.Triggers = bytes.Repeat([]byte{1}, 28*n)
			packed := c.Packed()
			if c.Rank == 0 && c.Cost == 0 && len(packed) != 28*n {
				t.Errorf("%d triggers take %d bytes", n, len(packed))
			}
			if got := Unpack(c.Place(), packed); !reflect.DeepEqual(got, c) && !(n == 0 && len(got.Triggers) == 0) {
				t.Errorf("%+v comes back as %+v", c, got)
			}
		}
	}
	for n, want := range map[int]int{-1: 0, 0: 0, 1: 0, 2: 2, 1000: 1000, 1001: 1000} {
		if Cost(n) != want {
			t.Errorf("%d is kept as %d", n, Cost(n))
		}
	}
}
