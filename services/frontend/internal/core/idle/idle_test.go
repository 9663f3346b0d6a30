package idle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var main = Tasklist{"shop", "main"}

var began = time.Unix(1_800_000_000, 0)

// at is a time of a test.
func at(d time.Duration) time.Time { return began.Add(d) }

// known is Polls whose owner of main knows worker w.
func known(t *testing.T) *Polls {
	t.Helper()
	p := &Polls{}
	if p.Keep(main, Poll{ID: 1, Worker: "w", Max: 1, Bytes: 100}, at(0)) {
		t.Fatal("the first poll of a worker stays: the owner does not know it")
	}
	return p
}

func poll(id uint64, types ...string) Poll {
	return Poll{ID: id, Worker: "w", Types: types, Max: 3, Bytes: 100}
}

func stays(t *testing.T, p *Polls, poll Poll, now time.Duration, want bool) {
	t.Helper()
	if got := p.Keep(main, poll, at(now)); got != want {
		t.Errorf("poll %d stays: %v, want %v", poll.ID, got, want)
	}
}

func ids(t *testing.T, what string, got []uint64, want ...uint64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestOneOfEachWorkerGoes now and then, so that its owner knows who polls.
func TestOneOfEachWorkerGoes(t *testing.T) {
	p := known(t)
	stays(t, p, poll(2), time.Second, true)
	other := poll(3)
	other.Worker = "other"
	stays(t, p, other, time.Second, false)
	other.ID = 4
	stays(t, p, other, time.Second, true)
	stays(t, p, poll(5), KnownFor-1, true)
	stays(t, p, poll(6), KnownFor, false)
	stays(t, p, poll(7), KnownFor, true)
}

// TestCalls: polls go until they have room for what waits, first those that are here, then new ones; a call is over when nothing waits, or it is not repeated.
func TestCalls(t *testing.T) {
	p := known(t)
	for id := range uint64(4) {
		stays(t, p, poll(2+id), 0, true)
	}
	ids(t, "called for 4", p.Heard(main, 4, nil, at(0)), 2, 3)
	ids(t, "called for 8", p.Heard(main, 8, nil, at(0)), 4, 5)
	stays(t, p, poll(6), 0, false)
	stays(t, p, poll(7), 0, true)
	ids(t, "nothing waits", p.Heard(main, 0, nil, at(0)))
	stays(t, p, poll(8), 0, true)
	p.Heard(main, 1000, nil, at(time.Second))
	stays(t, p, poll(9), time.Second, false)
	if p.Back(main, poll(10), at(time.Second)) {
		t.Error("one that comes back stays, and is called")
	}
	stays(t, p, poll(11), time.Second+calledFor, true)
	ids(t, "of a tasklist that no one polls", p.Heard(Tasklist{"shop", "other"}, 7, nil, at(0)))
}

// TestCallsForTypes: a poll that takes none of what waits goes, too, since more may wait than is named, and counts for nothing.
func TestCallsForTypes(t *testing.T) {
	p := known(t)
	stays(t, p, poll(2, "b"), 0, true)
	stays(t, p, poll(3, "a", "b"), 0, true)
	stays(t, p, poll(4), 0, true)
	ids(t, "called for 3 of a", p.Heard(main, 3, []string{"a"}, at(0)), 2, 3)
	stays(t, p, poll(5), 0, true)
}

// TestPollsLeave when they have waited for long, or ended.
func TestPollsLeave(t *testing.T) {
	p := known(t)
	stays(t, p, poll(2), 0, true)
	stays(t, p, poll(3), time.Second, true)
	stays(t, p, poll(4), time.Second, true)
	p.Remove(3)
	p.Remove(3)
	ids(t, "due before", p.Due(at(WaitMax-1)))
	ids(t, "due", p.Due(at(WaitMax)), 2)
	ids(t, "due later", p.Due(at(WaitMax+time.Second)), 4)
	if p.Has(main) {
		t.Error("something is left")
	}
	p.Due(at(3 * KnownFor))
	p.Due(at(6 * KnownFor))
	if len(p.lists) != 0 || len(p.byID) != 0 || len(p.listsOf) != 0 {
		t.Errorf("kept: %v %v", p.lists, p.byID)
	}
}

// TestANewOwner hears of each worker, and of each tasklist at once.
func TestANewOwner(t *testing.T) {
	p, other := known(t), Tasklist{"shop", "other"}
	p.Keep(other, Poll{ID: 20, Worker: "w", Max: 1}, at(0))
	p.Keep(other, Poll{ID: 21, Worker: "w", Max: 1}, at(0))
	stays(t, p, poll(2), 0, true)
	stays(t, p, poll(3), 0, true)
	ids(t, "those that go", p.Unknown(func(l Tasklist) bool { return l == main }, at(0)), 2)
	stays(t, p, poll(4), 0, true)
	p.Remove(3)
	p.Remove(4)
	ids(t, "none is here", p.Unknown(func(l Tasklist) bool { return l == main }, at(0)))
	stays(t, p, poll(5), 0, false)
	stays(t, p, poll(6), 0, true)
}

// TestWhatAPollMakesIsBounded: names of workers and tasklists cost nothing to make up, and one domain's do not count for another.
func TestWhatAPollMakesIsBounded(t *testing.T) {
	p := &Polls{}
	for i := range uint64(workersMax + 100) {
		p.Keep(main, Poll{ID: i, Worker: fmt.Sprint("w", i), Max: 1}, at(0))
	}
	for i := range uint64(listsMax + 100) {
		p.Keep(Tasklist{"shop", fmt.Sprint(i)}, poll(i), at(0))
		p.Heard(Tasklist{"shop", fmt.Sprint(listsMax + i)}, 1, nil, at(0))
	}
	if len(p.lists[main].sent) != workersMax || len(p.lists) != listsMax {
		t.Errorf("%d workers and %d tasklists are known", len(p.lists[main].sent), len(p.lists))
	}
	last := Tasklist{"shop", fmt.Sprint(2*listsMax + 99)}
	if p.Keep(last, poll(1), at(0)) || p.Back(last, poll(1), at(0)) {
		t.Error("a poll of a tasklist that is not known stays")
	}
	p.Keep(Tasklist{"other", "main"}, poll(1), at(0))
	if !p.Keep(Tasklist{"other", "main"}, poll(2), at(0)) {
		t.Error("a poll of another domain goes")
	}
}

// TestWhatNoOneUsesIsForgotten: a worker and a tasklist are known for some time after their last poll, and then make room for others.
func TestWhatNoOneUsesIsForgotten(t *testing.T) {
	p := known(t)
	other := Tasklist{"shop", "other"}
	p.Heard(other, 10, nil, at(0))
	ids(t, "due", p.Due(at(0)))
	stays(t, p, poll(2), KnownFor-time.Second, true)
	for id := range uint64(2) {
		if p.Keep(other, poll(10+id), at(time.Second)) {
			t.Errorf("poll %d stays, and matching has called for more than one poll takes", id)
		}
	}

	p = &Polls{}
	for i := range uint64(workersMax) {
		p.Keep(main, Poll{ID: i, Worker: fmt.Sprint("w", i), Max: 1}, at(0))
	}
	next := uint64(workersMax)
	late := func(want bool) {
		t.Helper()
		next++
		stays(t, p, Poll{ID: next, Worker: "late", Max: 1}, 2*KnownFor, want)
	}
	late(false)
	late(false) // there is no room to know it
	p.Due(at(2 * KnownFor))
	late(false)
	late(true)
}

// TestACallForNothingMakesNoTasklist: frontends hear of all, and those that no one polls here must not take the room of others.
func TestACallForNothingMakesNoTasklist(t *testing.T) {
	p := &Polls{}
	for i := range listsMax {
		p.Heard(Tasklist{"shop", fmt.Sprint(i)}, 0, nil, at(0))
	}
	stays(t, p, poll(1), 0, false)
	stays(t, p, poll(2), 0, true)
}

// TestTheNextTaskGoesToTheNextPoll, and the search for one that takes it is bounded.
func TestTheNextTaskGoesToTheNextPoll(t *testing.T) {
	p := known(t)
	for i := range uint64(looksMax) {
		stays(t, p, poll(2+i, "a"), 0, true)
	}
	got, ok := p.Deal(main, []Task{{"a", 1}, {"a", 1}})
	if !ok || !slices.Equal(got, []uint64{2, 3}) {
		t.Errorf("dealt %v", got)
	}
	stays(t, p, poll(100, "b"), 0, true)
	if got, ok := p.Deal(main, []Task{{"b", 1}}); ok {
		t.Errorf("the poll behind too many others gets a task: %v", got)
	}
	p.Remove(2)
	if _, ok := p.Deal(main, []Task{{"b", 1}}); !ok {
		t.Error("the last one that is looked at gets no task")
	}
}

// TestTasksAreDealt to those that have the fewest, as far as they have room and take the type; all of them or none.
func TestTasksAreDealt(t *testing.T) {
	p := known(t)
	stays(t, p, poll(2, "a"), 0, true)
	stays(t, p, poll(3, "a", "b"), 0, true)
	deal := func(types ...string) (got []uint64, ok bool) {
		tasks := make([]Task, len(types))
		for i, typ := range types {
			tasks[i] = Task{typ, 10}
		}
		return p.Deal(main, tasks)
	}
	if got, ok := deal("a", "c"); ok || got != nil {
		t.Errorf("no one takes c: %v", got)
	}
	got, ok := deal("b", "a", "b", "a")
	if slices.Sort(got); !ok || !slices.Equal(got, []uint64{2, 2, 3, 3}) {
		t.Errorf("dealt %v", got)
	}
	if got, ok := deal("b", "b"); ok {
		t.Errorf("there is room for one of b: %v", got)
	}
	if got, ok := deal("b"); !ok || got[0] != 3 {
		t.Errorf("dealt %v", got)
	}
	taken := p.TakeOut([]uint64{2, 3, 2, 99})
	if slices.Sort(taken); !slices.Equal(taken, []uint64{2, 3}) || p.Has(main) {
		t.Errorf("taken %v", taken)
	}
	if _, ok := deal("a"); ok {
		t.Error("no poll is left")
	}
}

// TestBytesOfAPoll: it takes one task however large, and then what fits.
func TestBytesOfAPoll(t *testing.T) {
	p := known(t)
	stays(t, p, poll(2), 0, true)
	if _, ok := p.Deal(main, []Task{{"a", 1000}}); !ok {
		t.Error("a large one is not dealt")
	}
	if _, ok := p.Deal(main, []Task{{"a", 1}}); ok {
		t.Error("there is no room")
	}
	p.TakeOut([]uint64{2})
	stays(t, p, poll(3), 0, true)
	if _, ok := p.Deal(main, []Task{{"a", 60}, {"a", 40}}); !ok {
		t.Error("they fit")
	}
}

// TestAPollIsInOnePlace: here, or with who took it, whatever happens; and no task is dealt to one that is not here.
func TestAPollIsInOnePlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, here, next, now := &Polls{}, map[uint64]Poll{}, uint64(1), time.Duration(0)
		took := func(all []uint64) {
			for _, id := range all {
				if _, ok := here[id]; !ok {
					t.Fatalf("poll %d was not here", id)
				}
				delete(here, id)
			}
		}
		lists := []Tasklist{main, {"shop", "other"}}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			list := rapid.SampledFrom(lists).Draw(t, "list")
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1:
				one := Poll{ID: next, Worker: fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "worker")), Max: rapid.IntRange(1, 4).Draw(t, "max"), Bytes: 100}
				if rapid.Bool().Draw(t, "typed") {
					one.Types = []string{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "type")}
				}
				next++
				if p.Keep(list, one, at(now)) {
					here[one.ID] = one
				}
			case 2:
				took(p.Heard(list, rapid.IntRange(0, 6).Draw(t, "triggers"), nil, at(now)))
			case 3:
				now += time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond
				took(p.Due(at(now)))
			case 4:
				id := rapid.Uint64Range(1, next).Draw(t, "removed")
				p.Remove(id)
				delete(here, id)
			case 5, 6:
				tasks := make([]Task, rapid.IntRange(1, 5).Draw(t, "tasks"))
				for i := range tasks {
					tasks[i] = Task{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "of"), rapid.IntRange(1, 60).Draw(t, "bytes")}
				}
				dealt, ok := p.Deal(list, tasks)
				n, bytes := map[uint64]int{}, map[uint64]int{}
				for i, id := range dealt {
					one, known := here[id]
					if n[id], bytes[id] = n[id]+1, bytes[id]+tasks[i].Bytes; !known || !one.takes(tasks[i].Type) || n[id] > one.Max || n[id] > 1 && bytes[id] > one.Bytes {
						t.Fatalf("task %d of %v was dealt to %+v", i, tasks, one)
					}
				}
				taken := p.TakeOut(dealt)
				if ok != (len(dealt) == len(tasks)) || len(taken) != len(n) {
					t.Fatalf("dealt %v, and %v are taken out", dealt, taken)
				}
				took(taken)
			}
			if len(p.byID) != len(here) || p.byLeave.Len() != len(here) {
				t.Fatalf("%d polls are here, and %d should be", len(p.byID), len(here))
			}
		}
	})
}
