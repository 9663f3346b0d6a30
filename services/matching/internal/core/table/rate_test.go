package table

import (
	"math/rand/v2"
	"testing"
	"time"
)

// SEEDS 0.2, 15: whatever the rate, a burst may start after a rest, be it one, and in no time more than a burst and what the
// rate gives; who comes again after the wait that it was given, gets one.
func TestARateIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		rate := Rate{EveryUS: 1 + r.ExpFloat64()*10_000, Burst: 1 + r.IntN(20)}
		table, now := New(), int64(1_790_000_000_000_000)+r.Int64N(1e12)
		table.Open("d", 0, "life")
		type start struct {
			at int64
			n  int
		}
		var all []start
		wait := time.Duration(0)
		for call := range 200 {
			if call%3 == 0 {
				now += wait.Microseconds()
			} else {
				now += r.Int64N(int64(3*rate.EveryUS) + 1)
			}
			want := 1 + r.IntN(30)
			var put Chunk
			for range want {
				put.Triggers = append(put.Triggers, make([]byte, 28)...)
			}
			put.Tasklist, put.Column, put.ReadyAt = Tasklist{"d", "l", 0}, Column{1, "a", ""}, int64(call)
			out := table.Do(Call{
				Domain: "d", Shards: 1, Epoch: "life", Seq: Seq{1, uint64(call + 1)}, Put: []Chunk{put},
				Stances: []Stance{{Ref: "rate/type/a", Rate: rate}},
				Wants:   []Want{{Tasklist: put.Tasklist, N: want, Candidates: []Candidate{{Column: put.Column, Path: []int{0}}}}},
			}, now)
			n := 0
			for _, b := range out.Taken[0].Batches {
				n += len(b.Triggers) / 28
			}
			switch {
			case call == 0 && n != min(want, rate.Burst):
				t.Fatalf("%+v: %d of %d start after a rest", rate, n, want)
			case call%3 == 0 && n == 0 && wait > time.Microsecond:
				t.Fatalf("%+v: none starts after the wait of %v that was asked for", rate, wait)
			case n < want && len(out.Taken[0].Blocked) != 1:
				t.Fatalf("%+v: %d of %d start, and nothing is in the way: %+v", rate, n, want, out)
			}
			wait = out.Limits[0].After
			all = append(all, start{now, n})
			sum := 0
			for i := len(all) - 1; i >= 0; i-- {
				sum += all[i].n
				most := float64(rate.Burst) + float64(now-all[i].at)/rate.EveryUS
				rounded := 0.125 * float64(len(all)) / rate.EveryUS // Unix µs are to a quarter of one
				if float64(sum) > most+rounded {
					t.Fatalf("%+v: %d start in %d µs, %.2f may", rate, sum, now-all[i].at, most)
				}
			}
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
	if n := take(slow, 5); n != 1 {
		t.Fatalf("%d", n)
	}
	if n := take(fast, 5); n != 0 {
		t.Fatalf("%d start at once with another rate", n)
	}
	now += 2000
	if n := take(fast, 5); n != 2 {
		t.Fatalf("%d start 2 ms later", n)
	}
	now -= 3600e6
	take(fast, 5)
	now += 3000
	if n := take(fast, 5); n != 3 {
		t.Fatalf("%d start after the clock was put back", n)
	}
}
