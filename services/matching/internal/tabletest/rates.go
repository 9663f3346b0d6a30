package tabletest

import (
	"fmt"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// hours is a rate of so many tasks in so many hours: no real time that passes meanwhile makes room.
func hours(tasks, per float64, burst int) table.Stance {
	return table.Stance{Ref: table.RateRef(pay), Rate: table.Rate{EveryUS: per * 3600e6 / tasks, Burst: burst}}
}

// starts has a shard start up to n of type pay, of which it has more, under some limits. It returns how many, and how these stand.
func (r *rig) starts(shard, n int, stances ...table.Stance) (int, table.Outcome) {
	r.Helper()
	r.calls++
	l := table.Tasklist{Domain: domain, Name: fmt.Sprint("list", r.calls)}
	c := chunk(3, "pay", int64(r.calls), int(r.calls)*1000, n+1)
	c.Tasklist = l
	at := candidate(3, "pay", 0)
	for i := range stances {
		at.Path = append(at.Path, i)
	}
	out := r.do(shard, table.Call{Stances: stances, Put: []table.Chunk{c}, Wants: []table.Want{{Tasklist: l, N: n, Candidates: []table.Candidate{at}}}})
	return count(out.Taken[0]), out
}

// start checks what starts gives: how many, and in about how many hours the next may.
func (r *rig) start(shard int, s table.Stance, n int, after float64) {
	r.Helper()
	got, out := r.starts(shard, 100, s)
	r.equal("started", got, n)
	r.equal("blocked", fmt.Sprint(out.Taken[0].Blocked), fmt.Sprint([]table.Blocked{{By: s.Ref, Why: table.Rated}}))
	state := out.Limits[0]
	if h := state.After.Hours(); h <= after-0.25 || h > after {
		r.Fatalf("the next in %v hours, want %v", h, after)
	}
	state.After = 0
	r.equal("limit", state, table.LimitState{})
}

// rates: a burst, then one each interval, whichever shard asks; what rests is a burst again, and no more.
func rates(r *rig) {
	three := hours(3, 1000, 5) // an interval is 333 hours and 20 minutes
	r.start(0, three, 5, 333.34)
	r.start(1, three, 0, 333.34)
	r.store.Pass(333 * time.Hour)
	r.start(1, three, 0, 0.34)
	r.store.Pass(time.Hour)
	r.start(1, three, 1, 332.67)
	r.store.Pass(700 * time.Hour)
	r.start(0, three, 2, 299.34)
	r.store.Pass(5000 * time.Hour)
	r.start(0, three, 5, 333.34)
	// 300 intervals one after the other are what they are in sum: nothing is lost to rounding.
	got := 0
	for range 300 {
		r.store.Pass(334 * time.Hour)
		n, _ := r.starts(0, 100, three)
		got += n
	}
	r.equal("started", got, 300) // and 200 hours over
	r.store.Pass(134 * time.Hour)
	r.start(0, three, 1, 332.67)
}

// unusedStarts: what a shard gives back may start at once, on any shard; it is never more than a burst.
func unusedStarts(r *rig) {
	slow := hours(1, 1000, 5)
	r.start(0, slow, 5, 1000)
	back := slow
	back.Unused = 3
	r.start(0, back, 3, 1000)
	r.equal("given back", r.state(1, back), table.LimitState{})
	r.start(0, slow, 3, 1000)
	back.Unused = 20
	r.start(1, back, 5, 1000)
	back.Shadow = true
	r.equal("in shadow", r.state(1, back), table.LimitState{})
	r.start(0, slow, 0, 1000)
}

// ratesAndSlots: who lacks the one takes nothing of the other.
func ratesAndSlots(r *rig) {
	slow := hours(1, 1000, 4)
	n, out := r.starts(0, 100, stance(3, 0, 0), slow)
	r.equal("started", n, 3)
	r.equal("next", out.Limits[1].After, time.Duration(0))
	r.equal("blocked", out.Taken[0].Blocked, []table.Blocked{{By: pay, Why: table.Full}})
	n, out = r.starts(0, 100, stance(9, 3, 0), slow)
	r.equal("started", n, 1)
	r.equal("slots", out.Limits[0].Used, 4)
	r.equal("blocked", out.Taken[0].Blocked, []table.Blocked{{At: 1, By: slow.Ref, Why: table.Rated}})
	n, out = r.starts(0, 100, stance(9, 4, 0), slow)
	r.equal("started", n, 0)
	r.equal("slots", out.Limits[0].Used, 4)
}

// changedRates: what is used up stays so for as long as it would have, but not for longer than a burst of the new rate takes.
func changedRates(r *rig) {
	r.start(0, hours(1, 1000, 2), 2, 1000)
	r.start(0, hours(1, 1000, 5), 3, 1000) // a larger burst
	r.start(0, hours(1, 1000, 1), 0, 1000) // a smaller one
	r.start(0, hours(1, 10, 1), 0, 10)     // a faster rate: it does not wait for the slow one
	r.store.Pass(10 * time.Hour)
	r.start(0, hours(1, 10, 1), 1, 10)
	r.store.Pass(10 * time.Hour)
	r.start(0, hours(7, 7000, 1), 1, 1000) // a slower one
	r.drop(pay)                            // the slots of the limit, not its rate
	r.start(0, hours(7, 7000, 1), 0, 1000)
	r.store.Forget()
	r.open(0)
	r.start(0, hours(7, 7000, 1), 1, 1000) // a memory that is lost costs a burst
}

// shadow: what one in shadow has no slot or start for is taken and counted, and uses up nothing of a rate. It neither waits nor lets others
// wait, also while it lacks entries.
func shadow(r *rig) {
	dark := stance(4, 0, 0)
	dark.Shadow = true
	n, out := r.starts(0, 100, dark)
	r.equal("started", n, 100)
	r.equal("limit", out.Limits[0], table.LimitState{Used: 100, Beyond: 96})
	dark.Held = 3
	r.equal("one that takes nothing", r.state(0, dark), table.LimitState{Used: 3})
	_, out = r.starts(1, 100, dark)
	r.equal("of another shard", out.Limits[0], table.LimitState{Used: 106, Beyond: 100})
	r.equal("no more in shadow", r.state(1, stance(4, 0, 0)), table.LimitState{Used: 3})

	rate := hours(1, 1000, 30)
	rate.Shadow = true
	for _, left := range []int{30, 0} {
		n, out = r.starts(0, 100, rate)
		r.equal("started", n, 100)
		r.equal("rate", out.Limits[0], table.LimitState{Beyond: 100 - left})
	}
	r.start(0, hours(1, 1000, 30), 0, 1000)
}

// costs: what needs several starts waits for them in its turn, and shards stand in line for them; what costs more than the burst starts when
// that is whole, and is paid off afterwards, by a rate that has been changed, too.
func costs(r *rig) {
	put := func(typ string, readyAt, cost, n int) table.Chunk {
		c := chunk(3, typ, int64(readyAt), readyAt*1000, n)
		c.Cost = table.Cost(cost)
		return c
	}
	ask := func(shard int, rate table.Stance, want string, after float64, waits bool, puts ...table.Chunk) {
		r.Helper()
		l := table.Tasklist{Domain: domain, Name: fmt.Sprint("costly", shard)}
		for i := range puts {
			puts[i].Tasklist = l
		}
		w := table.Want{Tasklist: l, N: 20, Candidates: []table.Candidate{candidate(3, "a", 0, 0), candidate(3, "b", 0, 0)}}
		out := r.do(shard, table.Call{Stances: []table.Stance{rate}, Put: puts, Wants: []table.Want{w}})
		got := ""
		for _, b := range out.Taken[0].Batches {
			got += strings.Repeat(b.Type, b.Len())
		}
		r.equal("started", got, want)
		if h := out.Limits[0].After.Hours(); h < after-0.25 || h > after {
			r.Fatalf("the next in %v hours, want %v", h, after)
		}
		r.equal("in line", out.Limits[0].Waits, waits)
	}
	ten := hours(1, 100, 10) // an interval is 100 hours
	ask(0, ten, "aaaaaaaa", 300, true, put("a", 1, 1, 8), put("b", 2, 5, 2), put("a", 3, 1, 3))
	r.store.Pass(200 * time.Hour)
	ask(0, ten, "", 100, true)
	ask(1, ten, "", 200, true, put("a", 4, 1, 9)) // five are kept for the other
	r.store.Pass(100 * time.Hour)                 // and no one has come for long
	ask(0, ten, "b", 100, false)
	ask(1, ten, "", 100, false)
	r.store.Pass(1500 * time.Hour)
	ask(0, ten, "baaa", 0, false)
	ask(0, ten, "", 800, true, put("b", 5, 25, 1))
	r.store.Pass(800 * time.Hour)
	ask(0, ten, "b", 1600, false)
	ask(0, hours(1, 10, 10), "", 160, false) // of as many starts
	r.store.Pass(100 * time.Hour)
	ask(0, ten, "", 600, false)
	ask(0, hours(1, 100, 5), "", 1100, false)
	r.store.Pass(1100 * time.Hour)
	ask(1, hours(1, 100, 5), "a", 100, false)
}
