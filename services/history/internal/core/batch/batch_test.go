package batch

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// TestEndsOfARedrivenTask: only the last counts, in whatever order they come.
func TestEndsOfARedrivenTask(t *testing.T) {
	stay := func(state taskstate.State, redriven uint32) *taskstate.Task {
		task := &taskstate.Task{State: state}
		if redriven > 0 {
			task.Extra = &taskstate.Extra{Redriven: &taskstate.Redriven{Count: redriven}}
		}
		return task
	}
	all := []*taskstate.Task{stay(taskstate.Dead, 0), stay(taskstate.Dead, 1), stay(taskstate.Completed, 2), stay(taskstate.Lapsed, 0), stay(taskstate.Cancelled, 0)}
	for range 50 {
		var e Ends
		most := int64(0)
		rand.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		for _, task := range all {
			e.Add(task)
			if e.Total() < most {
				t.Fatalf("%+v are fewer than %d", e, most)
			}
			most = e.Total()
		}
		if want := (Ends{Completed: 1, Cancelled: 1, Expired: 1}); e != want {
			t.Fatalf("got %+v, want %+v", e, want)
		}
	}
}

func TestConclude(t *testing.T) {
	for _, c := range []struct {
		f    Found
		want int
	}{
		{Found{Home: Home{ExpiresAt: 10}}, Wait},
		{Found{Home: Home{ExpiresAt: 5}}, Expire},
		{Found{Home: Home{ExpiresAt: 10, Closed: true}}, Complete},
		{Found{Home: Home{ExpiresAt: 10, Closed: true}, Tasks: 2, Ends: Ends{Dead: 1}}, Wait},
		{Found{Home: Home{ExpiresAt: 5, Closed: true}, Tasks: 2, Ends: Ends{Dead: 1, Completed: 1}}, Complete},
		{Found{Home: Home{ExpiresAt: 5, Closed: true}, Tasks: 2, Ends: Ends{Dead: 1}}, Expire},
		{Found{Home: Home{ExpiresAt: 5, Closed: true, Over: true}}, Wait},
	} {
		if got := c.f.Conclude(5); got != c.want {
			t.Errorf("%+v: %d", c.f, got)
		}
	}
}

// TestBatchesAreLookedAt when they are closed, when something is said to have changed, but not all the time, and after a while anyway; open ones when they
// expire.
func TestBatchesAreLookedAt(t *testing.T) {
	k := NewKeeper()
	a, b := Name{Domain: "shop", ID: "a"}, Name{Domain: "shop", ID: "b"}
	take := func(now int64, want ...Name) {
		t.Helper()
		got := k.Take(now, 10)
		if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Fatalf("at %d: %v, want %v", now, got, want)
		}
	}
	k.Seen(Home{Name: a, ExpiresAt: 1_000_000})
	k.Seen(Home{Name: b, ExpiresAt: 400})
	k.Hint(a, 1)
	take(1)
	k.Seen(Home{Name: a, ExpiresAt: 1_000_000, Closed: true})
	take(2, a)
	k.Hint(a, 3)
	take(4) // a look is under way
	k.Looked(a, 10)
	take(10)
	take(10+HintEveryMS, a)
	k.Looked(a, 200)
	k.Hint(a, 200)
	take(200)
	take(200+HintEveryMS, a)
	k.Looked(a, 300)
	take(399)
	take(400, b)
	k.Looked(b, 401) // it was not stored
	take(300+LookEveryMS, a)
	take(401+LookEveryMS, b)
	k.Looked(a, 6000)
	k.Looked(b, 6000)
	k.Seen(Home{Name: a, Over: true})
	k.Seen(Home{Name: b, Over: true})
	take(1_000_000)
	if k.Knows(a) || k.Knows(b) {
		t.Error("they are over")
	}
}

// TestManyBatchesOfADomainAreLookedAtLessOften, and those of other domains as often as before.
func TestManyBatchesOfADomainAreLookedAtLessOften(t *testing.T) {
	const many, hour = 1000, 3_600_000
	k := NewKeeper()
	for i := range many {
		k.Seen(Home{Name: Name{Domain: "shop", ID: fmt.Sprint(i)}, ExpiresAt: 2 * hour, Closed: true})
	}
	other := Name{Domain: "bank", ID: "a"}
	k.Seen(Home{Name: other, ExpiresAt: 2 * hour, Closed: true})
	looks := map[string]int{}
	for now := int64(0); now < hour; now += 1000 {
		for _, n := range k.Take(now, 2*many) {
			looks[n.Domain]++
			k.Looked(n, now)
		}
	}
	if perSecond := float64(looks["shop"]) * 1000 / hour; perSecond > 1.05*1000/LookPerBatchMS || looks["shop"] < 10*many {
		t.Errorf("%.1f looks/s at %d batches", perSecond, many)
	}
	if looks["bank"] < hour/LookEveryMS-1 {
		t.Errorf("%d looks at the batch of another domain", looks["bank"])
	}
	k.Seen(Home{Name: other, Over: true})
	if len(k.of) != 1 {
		t.Errorf("domains that have batches: %v", k.of)
	}
}
