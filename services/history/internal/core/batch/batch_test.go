package batch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
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

// TestMembersOfOldBatchesAreNotKept, however many there are: their batches are over. Ends of a batch that is forgotten are not counted.
func TestMembersOfOldBatchesAreNotKept(t *testing.T) {
	c := make(Counts)
	member := func(id string, made int64, parkings uint32) *taskstate.Task {
		return &taskstate.Task{Domain: "shop", Parkings: parkings, Extra: &taskstate.Extra{Batch: &taskstate.Batch{ID: id, Made: made}}}
	}
	for _, task := range []*taskstate.Task{member("b", 9, 0), member("a", 7, 0), member("a", 7, 0), member("a", 7, 1), member("old", 6, 0), {Domain: "shop"}} {
		c.Admit(task)
	}
	ended := member("a", 7, 0)
	ended.State = taskstate.Cancelled
	for _, task := range []*taskstate.Task{ended, {Domain: "shop", State: taskstate.Completed}, member("over", 8, 0)} {
		c.End(task)
	}
	got := c.Since(7)
	slices.SortFunc(got, func(a, b Count) int { return int(a.Made - b.Made) })
	testkit.Equal(t, "members", fmt.Sprint(got, len(c)), "[{{shop a 7} {2 {0 0 1 0}}} {{shop b 9} {1 {0 0 0 0}}}] 2")
}

func TestConclude(t *testing.T) {
	for _, c := range []struct {
		f    Found
		want int
	}{
		{Found{Home: Home{ExpiresAt: 10}}, Wait},
		{Found{Home: Home{ExpiresAt: 5}}, Expire},
		{Found{Home: Home{ExpiresAt: 10, Closed: true}, Counted: true}, Complete},
		{Found{Home: Home{ExpiresAt: 10, Closed: true}}, Wait},
		{Found{Home: Home{ExpiresAt: 10, Closed: true}, Tasks: 2, Ends: Ends{Dead: 1}, Counted: true}, Wait},
		{Found{Home: Home{ExpiresAt: 5, Closed: true}, Tasks: 2, Ends: Ends{Dead: 1, Completed: 1}, Counted: true}, Complete},
		{Found{Home: Home{ExpiresAt: 5, Closed: true}, Tasks: 2, Ends: Ends{Dead: 1}}, Expire},
		{Found{Home: Home{ExpiresAt: 5, Closed: true, Over: true}}, Wait},
	} {
		testkit.Equal(t, fmt.Sprintf("%+v", c.f), c.f.Conclude(5), c.want)
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

// TestWhatIsSaidAgainChangesNothing: of a batch that is closed, of one that is over, and of one that there never was.
func TestWhatIsSaidAgainChangesNothing(t *testing.T) {
	k := NewKeeper()
	n := Name{Domain: "shop", ID: "a"}
	closed := Home{Name: n, ExpiresAt: 1_000_000, Closed: true}
	k.Seen(closed)
	if all := k.Take(20_000, 10); len(all) != 1 {
		t.Fatalf("%v", all)
	}
	k.Seen(closed)
	k.Looked(n, 20_000)
	k.Seen(closed)
	if all := k.Take(20_000+LookEveryMS-1, 10); len(all) != 0 {
		t.Errorf("it is looked at again: %v", all)
	}
	over := closed
	over.Over = true
	k.Take(20_000+LookEveryMS, 10)
	k.Seen(over)
	k.Seen(over)
	k.Seen(Home{Name: Name{Domain: "shop", ID: "b"}, Over: true})
	k.Looked(n, 30_000)
	if at, ok := k.Next(); ok || k.Knows(n) || len(k.of) != 0 {
		t.Errorf("there is something to look at, at %d", at)
	}
	k.Seen(closed)
	k.Take(40_000, 10)
	k.Looked(n, 40_000)
	if k.Seen(over); len(k.known) != 0 {
		t.Fatal("it is known")
	}
	if at, ok := k.Next(); ok {
		t.Errorf("one that is over is to be looked at, at %d", at)
	}
}

// TestWhatIsLeftIsLookedAtNext: no more are taken than there is room for.
func TestWhatIsLeftIsLookedAtNext(t *testing.T) {
	k := NewKeeper()
	for _, id := range []string{"a", "b"} {
		k.Seen(Home{Name: Name{Domain: "shop", ID: id}, ExpiresAt: 1_000_000, Closed: true})
	}
	if all := k.Take(5, 1); len(all) != 1 {
		t.Fatalf("%v", all)
	}
	if at, ok := k.Next(); !ok || at != 0 {
		t.Errorf("the other one is looked at, at %d", at)
	}
}

// TestNoMoreAreTakenThanAsked, though one of those that wait is over meanwhile.
func TestNoMoreAreTakenThanAsked(t *testing.T) {
	k := NewKeeper()
	for _, id := range []string{"o", "a", "b", "c"} {
		k.Seen(Home{Name: Name{Domain: "shop", ID: id}, ExpiresAt: 1_000_000, Closed: true})
	}
	k.Seen(Home{Name: Name{Domain: "shop", ID: "o"}, Over: true})
	if all := k.Take(5, 2); len(all) != 2 || all[0].ID != "a" || all[1].ID != "b" {
		t.Errorf("%v", all)
	}
}

// TestEndsOfPartitionsAddUp.
func TestEndsOfPartitionsAddUp(t *testing.T) {
	if got, want := (Ends{1, 2, 3, 4}).Plus(Ends{10, 20, 30, 40}), (Ends{11, 22, 33, 44}); got != want || got.Total() != 110 {
		t.Errorf("%+v, %d in all", got, got.Total())
	}
}

// TestABatchThatCannotBeEnded is not looked at all the time, not at the instant either at which its time is over.
func TestABatchThatCannotBeEnded(t *testing.T) {
	k := NewKeeper()
	n := Name{Domain: "shop", ID: "a"}
	k.Seen(Home{Name: n, ExpiresAt: 400})
	if all := k.Take(400, 10); len(all) != 1 {
		t.Fatalf("%v", all)
	}
	k.Looked(n, 400)
	if at, ok := k.Next(); !ok || at != 400+LookEveryMS {
		t.Errorf("it is looked at again at %d", at)
	}
}

// TestAClosedBatchIsOverInTime, before it would be looked at again.
func TestAClosedBatchIsOverInTime(t *testing.T) {
	k := NewKeeper()
	n := Name{Domain: "shop", ID: "a"}
	k.Seen(Home{Name: n, ExpiresAt: 1000, Closed: true})
	k.Take(0, 10)
	k.Looked(n, 10)
	if at, ok := k.Next(); !ok || at != 1000 {
		t.Errorf("it is looked at %d next", at)
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
	k.Seen(Home{Name: Name{Domain: "shop", ID: "0"}, Over: true})
	if len(k.of) != 1 || k.of["shop"] != many-1 {
		t.Errorf("domains that have batches: %v", k.of)
	}
}

// TestRandomHistoriesOfAKeeper: whatever comes in whatever order, no batch has two looks at a time, one that is over has none, one that is closed has one again
// within its time, and what was hinted at is looked at by a look that began after the hint.
func TestRandomHistoriesOfAKeeper(t *testing.T) {
	for range 200 {
		seed := rand.Uint64()
		testkit.MustEqual(t, fmt.Sprintf("seed %d", seed), randomHistory(rand.New(rand.NewPCG(seed, 0))), "")
	}
}

// seenBatch is a batch as the model knows it.
type seenBatch struct {
	Home
	looking bool
	// began is when the last look began, wanted since when one is due that begins later; -1 = none is.
	began, wanted int64
}

// story is a keeper and its model.
type story struct {
	dice  *rand.Rand
	k     *Keeper
	model map[Name]*seenBatch
	names []Name
	now   int64
}

func randomHistory(dice *rand.Rand) string {
	s := &story{dice: dice, k: NewKeeper(), model: map[Name]*seenBatch{}, now: 1}
	for i := range 1 + dice.IntN(6) {
		s.names = append(s.names, Name{Domain: fmt.Sprint(i % 2), ID: fmt.Sprint(i)})
	}
	most := 1 + dice.IntN(3)
	for range 400 {
		s.happens(s.names[dice.IntN(len(s.names))])
		looking := 0
		for _, b := range s.model {
			if b.looking {
				looking++
			}
		}
		for _, n := range s.k.Take(s.now, most-looking) {
			b := s.model[n]
			switch {
			case b == nil:
				return fmt.Sprintf("%v is over and looked at", n)
			case b.looking:
				return fmt.Sprintf("%v has two looks", n)
			case !b.Closed && s.now < b.ExpiresAt:
				return fmt.Sprintf("%v is open and looked at", n)
			}
			b.looking, b.began, b.wanted = true, s.now, -1
		}
	}
	return s.ends()
}

// happens has something happen that is about a batch.
func (s *story) happens(name Name) {
	b := s.model[name]
	switch s.dice.IntN(6) {
	case 0:
		if b == nil {
			b = &seenBatch{Home: Home{Name: name, ExpiresAt: s.now + s.dice.Int64N(60_000)}, began: -1, wanted: -1}
			s.model[name] = b
		}
		if !b.Closed && s.dice.IntN(2) == 0 {
			b.Closed, b.wanted = true, s.now
		}
		s.k.Seen(b.Home)
	case 1:
		if b != nil && s.dice.IntN(8) == 0 {
			over := b.Home
			over.Over = true
			s.k.Seen(over)
			delete(s.model, name)
			s.names = append(s.names, Name{Domain: name.Domain, ID: name.ID, Made: s.now})
		}
	case 2:
		s.k.Hint(name, s.now)
		if b != nil && b.Closed && b.wanted < 0 {
			b.wanted = s.now
		}
	case 3, 4:
		if b != nil && b.looking {
			b.looking = false
			s.k.Looked(name, s.now)
		}
	default:
		s.now += s.dice.Int64N(3000)
	}
}

// ends lets all looks end, with room for all that follow, and tells which batch is not looked at then.
func (s *story) ends() string {
	for _, b := range s.model {
		if b.looking {
			b.looking = false
			s.k.Looked(b.Name, s.now)
		}
	}
	soon := s.now + 3*HintEveryMS
	for end := s.now + LookEveryMS; s.now <= end; s.now += HintEveryMS {
		for _, b := range s.model {
			if b.wanted >= 0 && s.now > soon {
				return fmt.Sprintf("%+v is not looked at soon", *b)
			}
		}
		for _, n := range s.k.Take(s.now, len(s.names)) {
			if b := s.model[n]; b != nil {
				b.began, b.wanted = s.now, -1
			}
			s.k.Looked(n, s.now)
		}
	}
	for _, b := range s.model {
		if b.Closed && b.began < s.now-LookEveryMS-2*HintEveryMS {
			return fmt.Sprintf("%+v is not looked at", *b)
		}
	}
	return ""
}
