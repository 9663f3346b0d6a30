package balance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var (
	start = time.Unix(1_700_000_000, 0)
	mail  = Tasklist{"shop", "mail"}
)

func balancer(s Strategy) *Balancer { return New(s, rand.New(rand.NewPCG(1, 2))) }

// picks counts who gets how many of so many polls.
func picks(b *Balancer, of Tasklist, n, polls int, now time.Time) []int {
	got := make([]int, n)
	for range polls {
		got[b.Pick(of, n, now)]++
	}
	return got
}

// report has all partitions of a tasklist report their triggers.
func report(b *Balancer, of Tasklist, now time.Time, triggers ...int64) {
	for i, t := range triggers {
		b.Report(of, len(triggers), i, Load{Triggers: t}, now)
	}
}

func TestPartitionsTakeTurns(t *testing.T) {
	b := balancer(RoundRobin)
	report(b, mail, start, 1000, 0, 0) // is of no interest
	var got []int
	for range 7 {
		got = append(got, b.Pick(mail, 3, start))
		b.Pick(Tasklist{"shop", "other"}, 2, start) // has turns of its own
	}
	testkit.Equal(t, "result", got, []int{0, 1, 2, 0, 1, 2, 0})
}

func TestOnePartitionCostsNothing(t *testing.T) {
	for _, s := range []Strategy{Weighted, RoundRobin, Random} {
		b := balancer(s)
		for _, n := range []int{-1, 0, 1} {
			b.Report(mail, n, 0, Load{Triggers: 1}, start)
			if p := b.Pick(mail, n, start); p != 0 || len(b.lists) != 0 {
				t.Errorf("%s: partition %d of %d, %d are remembered", s, p, n, len(b.lists))
			}
		}
	}
}

func TestRandomTakesAny(t *testing.T) {
	b := balancer(Random)
	report(b, mail, start, 1000, 0, 0)
	for p, n := range picks(b, mail, 3, 3000, start) {
		if n < 900 || n > 1100 {
			t.Errorf("partition %d got %d of 3000", p, n)
		}
	}
	testkit.Equal(t, "a random choice remembers", len(b.lists), 0)
}

// Polls go where the triggers are, in proportion, and spread over time.
func TestWeightsAreBacklogs(t *testing.T) {
	b := balancer(Weighted)
	report(b, mail, start, 300, 100, 0, 0)
	var got []int
	for range 8 {
		got = append(got, b.Pick(mail, 4, start))
	}
	testkit.Equal(t, "result", got, []int{0, 0, 1, 0, 0, 0, 1, 0})
	if got, want := picks(b, mail, 4, 4000, start), []int{3000, 1000, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A partition where much comes and nothing waits needs polls, too.
func TestWeightsCountWhatComes(t *testing.T) {
	b := balancer(Weighted)
	b.Report(mail, 3, 0, Load{Triggers: 101, PerSecond: 9_900}, start) // 200
	b.Report(mail, 3, 1, Load{PerSecond: 9_901}, start)                // 100
	b.Report(mail, 3, 2, Load{PerSecond: 0.1}, start)                  // 1, and so the least, 301/12
	if got, want := picks(b, mail, 3, 325, start), []int{200, 100, 25}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What is rare gets a poll in five rounds, however much waits in other partitions; where nothing waits none goes.
func TestWhatIsRareHasItsTurn(t *testing.T) {
	for _, n := range []int{2, 4, 64} {
		b := balancer(Weighted)
		waits := make([]int64, n)
		for p := range waits {
			waits[p] = 1_000_000
		}
		waits[n-1] = 1
		if n > 2 {
			waits[1] = 0
		}
		report(b, mail, start, waits...)
		since := 0
		for range 100 * n {
			since++
			switch p := b.Pick(mail, n, start); {
			case p == n-1:
				since = 0
			case waits[p] == 0:
				t.Fatalf("%d partitions: a poll goes where nothing waits", n)
			case since > 5*n+1:
				t.Fatalf("%d partitions: %d polls went elsewhere", n, since)
			}
		}
	}
}

// Weights count only where all partitions have reported recently, and one has many triggers.
func TestElsePartitionsTakeTurns(t *testing.T) {
	even, uneven := []int{20, 20}, []int{40, 0}
	for name, c := range map[string]struct {
		set  func(b *Balancer)
		want []int
	}{
		"few":             {func(b *Balancer) { report(b, mail, start, BacklogMin, 0) }, even},
		"many":            {func(b *Balancer) { report(b, mail, start, BacklogMin+1, 0) }, uneven},
		"one is missing":  {func(b *Balancer) { b.Report(mail, 2, 0, Load{Triggers: 1000}, start) }, even},
		"others reported": {func(b *Balancer) { report(b, Tasklist{"other", "mail"}, start, 1000, 0) }, even},
		"one is old": {func(b *Balancer) {
			report(b, mail, start, 1000, 0)
			b.Report(mail, 2, 0, Load{Triggers: 1000}, start.Add(time.Millisecond))
			b.Report(mail, 2, 1, Load{}, start.Add(-ReportedFor-1))
		}, even},
		"as old as may be": {func(b *Balancer) { report(b, mail, start.Add(-ReportedFor), 1000, 0) }, uneven},
		"out of range": {func(b *Balancer) {
			b.Report(mail, 2, 0, Load{Triggers: 1000}, start)
			b.Report(mail, 2, -1, Load{}, start)
			b.Report(mail, 2, 2, Load{}, start)
		}, even},
		"shrunk": {func(b *Balancer) { report(b, mail, start, 1000, 0, 1000) }, uneven},
	} {
		b := balancer(Weighted)
		c.set(b)
		testkit.Equal(t, name, picks(b, mail, 2, 40, start), c.want)
	}
}

// Where partitions are added all begin again: what was reported before says nothing about them.
func TestGrowingBeginsAnew(t *testing.T) {
	b := balancer(Weighted)
	report(b, mail, start, 1000, 0)
	picks(b, mail, 2, 3, start)
	testkit.Equal(t, "result", picks(b, mail, 3, 30, start), []int{10, 10, 10})
	b.Report(mail, 3, 2, Load{}, start)
	testkit.Equal(t, "one of three reported: got", picks(b, mail, 3, 30, start), []int{10, 10, 10})
	report(b, mail, start, 0, 0, 1000)
	testkit.Equal(t, "all reported: got", picks(b, mail, 3, 30, start), []int{0, 0, 30})
}

// A partition that had a large backlog, or none, has the share of the present one at once.
func TestBacklogsOfBeforeAreForgotten(t *testing.T) {
	for polls := range 20 {
		b := balancer(Weighted)
		report(b, mail, start, 1_000_000, 1_000_001, 1)
		picks(b, mail, 3, polls, start)
		report(b, mail, start, 200, 200, 100)
		got := picks(b, mail, 3, 1000, start)
		for p, want := range []int{400, 400, 200} {
			if math.Abs(float64(got[p]-want)) > 4 {
				t.Errorf("after %d polls: got %v", polls, got)
			}
		}
	}
}

// What no owner can mean does no harm.
func TestOddReportsAreBounded(t *testing.T) {
	for _, l := range []Load{
		{Triggers: -1000, PerSecond: -1}, {PerSecond: math.NaN()}, {Triggers: math.MinInt64, PerSecond: math.Inf(-1)},
	} {
		if w := l.weight(); w != 0 {
			t.Errorf("%+v weighs %d", l, w)
		}
	}
	for _, l := range []Load{{Triggers: math.MaxInt64}, {PerSecond: math.Inf(1)}, {Triggers: math.MaxInt64, PerSecond: math.MaxFloat64}} {
		if w := l.weight(); w < weightMax/100 || w > 2*weightMax {
			t.Errorf("%+v weighs %d", l, w)
		}
	}
	b := balancer(Weighted)
	const n = 64
	for p := range n {
		b.Report(mail, n, p, Load{Triggers: math.MaxInt64, PerSecond: math.Inf(1)}, start)
	}
	for p, got := range picks(b, mail, n, 10*n, start) {
		testkit.Equal(t, fmt.Sprintf("partition %d got", p), got, 10)
	}
}

// A tasklist is remembered as long as it is polled or reported, and no longer.
func TestUnusedTasklistsAreForgotten(t *testing.T) {
	b := balancer(Weighted)
	for i := range 100 {
		b.Pick(Tasklist{"shop", fmt.Sprint(i)}, 2, start)
	}
	for at := start; at.Sub(start) < KeptFor; at = at.Add(ReportedFor) {
		b.Forget(at)
		b.Pick(Tasklist{"shop", "7"}, 2, at)
		b.Report(Tasklist{"shop", "8"}, 2, 1, Load{}, at)
	}
	b.Forget(start.Add(KeptFor + ReportedFor))
	b.Forget(start.Add(KeptFor + KeptFor/4 + ReportedFor))
	if len(b.lists) != 2 || b.lists[Tasklist{"shop", "7"}] == nil || b.lists[Tasklist{"shop", "8"}] == nil {
		t.Errorf("%d are remembered", len(b.lists))
	}
	last := b.lists[Tasklist{"shop", "7"}].used.Add(KeptFor)
	for _, c := range []struct {
		after time.Duration
		kept  int
	}{{0, 2}, {KeptFor/4 - 1, 2}, {KeptFor / 4, 0}} { // it looks now and then only
		if b.Forget(last.Add(c.after)); len(b.lists) != c.kept {
			t.Errorf("%v later %d are remembered", c.after, len(b.lists))
		}
	}
	b.Forget(start.Add(3 * KeptFor))
	testkit.Equal(t, "are remembered", len(b.lists), 0)
}

func TestStrategiesAreNamed(t *testing.T) {
	for s, want := range map[Strategy]bool{"weighted": true, "round_robin": true, "random": true, "": false, "Weighted": false} {
		if s.Known() != want {
			t.Errorf("%q: %v", s, s.Known())
		}
	}
}
