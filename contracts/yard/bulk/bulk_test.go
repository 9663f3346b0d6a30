package bulk

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// backlog is the tasks of a domain, by id. It decides as verdicts says, else it takes what is asked.
type backlog struct {
	began    time.Time
	tasks    map[string]*yard.TaskInfo
	verdicts map[string][]string
	// steps are the sizes of the requests, at when they came.
	steps []int
	at    []time.Duration
	lists int
	// before is called before each list.
	before func(n int)
}

func newBacklog() *backlog {
	return &backlog{began: time.Now(), tasks: map[string]*yard.TaskInfo{}, verdicts: map[string][]string{}}
}

func (b *backlog) add(state yard.State, ids ...string) {
	for _, id := range ids {
		b.tasks[id] = &yard.TaskInfo{ID: id, State: state, CreatedAt: time.Now()}
	}
}

func (b *backlog) list(_ context.Context, f yard.Filter) iter.Seq2[*yard.TaskInfo, error] {
	b.lists++
	if b.before != nil {
		b.before(b.lists)
	}
	return func(yield func(*yard.TaskInfo, error) bool) {
		var ids []string
		for id, t := range b.tasks {
			if slices.Contains(f.States, t.State) {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		for _, id := range ids {
			if !yield(b.tasks[id], nil) {
				return
			}
		}
	}
}

func (b *backlog) cancel(ids []string) (all []*yardv1.Verdict, err error) {
	b.steps, b.at = append(b.steps, len(ids)), append(b.at, time.Since(b.began))
	for _, id := range ids {
		v := &yardv1.Verdict{TaskId: id, Code: "OK"}
		if codes := b.verdicts[id]; len(codes) > 0 {
			v.Code, b.verdicts[id] = codes[0], codes[1:]
		}
		all = append(all, v)
	}
	return all, nil
}

func (b *backlog) run(t *testing.T, o Options, want string) Done {
	t.Helper()
	d, err := run(t.Context(), b.list, o, 0, b.cancel)
	if got := fmt.Sprint(d.Found, d.Changed, d.Refused, d.Undecided, err); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	return d
}

// numbered are so many ids.
func numbered(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("%04d", i))
	}
	return ids
}

// TestEachTaskIsTakenOnce at the rate, in steps of at most 100, though it is listed again; tasks that run are left out.
func TestEachTaskIsTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog()
		b.add(yard.StateReady, numbered(250)...)
		b.add(yard.StateQueued, "q")
		b.add(yard.StateWaiting, "w")
		b.add(yard.StateBackoff, "b")
		b.add(yard.StateRunning, "r")
		d := b.run(t, Options{Rate: 1000}, "253 253 0 0 <nil>")
		if len(d.Sample) != sampleMax || !slices.Equal(b.steps, []int{100, 100, 53}) || b.at[2] != 200*time.Millisecond {
			t.Errorf("%d are shown, steps %v at %v", len(d.Sample), b.steps, b.at)
		}
		b.steps = nil
		b.run(t, Options{Filter: yard.Filter{States: []yard.State{yard.StateRunning}}, Rate: 2}, "1 1 0 0 <nil>")
		b.run(t, Options{Filter: yard.Filter{States: []yard.State{yard.StateReady}}, Rate: 8}, "250 250 0 0 <nil>")
		if b.steps[1] != 2 {
			t.Errorf("steps %v", b.steps)
		}
	})
}

// TestAPreviewChangesNothing: it goes through the lists once, without a rate.
func TestAPreviewChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog()
		b.add(yard.StateReady, numbered(3000)...)
		b.run(t, Options{Preview: true}, "3000 0 0 0 <nil>")
		if len(b.steps) > 0 || b.lists != 2 || time.Since(b.began) > 0 {
			t.Errorf("steps %v, %d lists in %v", b.steps, b.lists, time.Since(b.began))
		}
	})
}

// TestTasksThatMoveBetweenListsAreFound: a pass follows until two find nothing. Younger tasks are left out.
func TestTasksThatMoveBetweenListsAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog()
		b.add(yard.StateReady, "a")
		old := &yard.TaskInfo{ID: "old", State: yard.StateQueued, CreatedAt: time.Now()}
		b.before = func(n int) {
			switch n {
			case 4: // behind the list of its state
				b.tasks["old"] = old
			case 5:
				b.add(yard.StateReady, "young")
			}
		}
		b.run(t, Options{}, "2 2 0 0 <nil>")
		if b.lists != 10 {
			t.Errorf("%d lists", b.lists)
		}
		time.Sleep(time.Minute)
		b.run(t, Options{OlderThan: time.Hour}, "0 0 0 0 <nil>")
	})
}

// TestATaskThatIsListedTwiceIsTakenOnce: it is admitted after the list of what is on disk and before the other one, and its step is not sent yet.
func TestATaskThatIsListedTwiceIsTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog()
		b.add(yard.StateQueued, "a", "b")
		b.before = func(n int) {
			if n == 2 {
				b.add(yard.StateReady, "a")
			}
		}
		b.run(t, Options{}, "2 2 0 0 <nil>")
		if !slices.Equal(b.steps, []int{2}) {
			t.Errorf("steps %v", b.steps)
		}
	})
}

// TestTheStepsOfALargeUpdateAreSmall: no request is larger than the least message that a server must take.
func TestTheStepsOfALargeUpdateAreSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for bytes, most := range map[int]int{60: 100, 10 << 10: 40, 1 << 20: 1} {
			b := newBacklog()
			b.add(yard.StateReady, numbered(200)...)
			if d, err := run(t.Context(), b.list, Options{Rate: 1000}, bytes, b.cancel); err != nil || d.Changed != 200 || slices.Max(b.steps) != most {
				t.Errorf("%d bytes: steps %v, %+v, %v", bytes, b.steps, d, err)
			}
		}
	})
}

// TestWhatIsNotDecidedIsTakenAgain, and a refusal is final. One that is never decided ends the call at some time.
func TestWhatIsNotDecidedIsTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog()
		b.add(yard.StateReady, "a", "b", "c", "d")
		b.verdicts["a"] = []string{"UNKNOWN", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}
		b.verdicts["b"] = []string{"NOT_FOUND"}
		b.verdicts["c"] = []string{"FAILED_PRECONDITION"}
		b.run(t, Options{}, "4 2 2 0 <nil>")
		b.add(yard.StateReady, "e")
		for range 100 {
			b.verdicts["e"] = append(b.verdicts["e"], "UNAVAILABLE")
		}
		b.run(t, Options{}, "5 4 0 1 <nil>")
	})
}

// TestACallEndsWithItsContext, with an error of a list, or of a request, and says what it has done.
func TestACallEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog()
		b.add(yard.StateReady, numbered(100)...)
		ctx, cancel := context.WithTimeout(t.Context(), 10500*time.Millisecond)
		defer cancel()
		d, err := run(ctx, b.list, Options{Rate: 4}, 0, b.cancel)
		if !errors.Is(err, context.DeadlineExceeded) || d.Changed != 42+1 {
			t.Errorf("%+v: %v", d, err)
		}
		broken := errors.New("broken")
		if d, err = run(t.Context(), b.list, Options{Rate: 4}, 0, func([]string) ([]*yardv1.Verdict, error) { return nil, broken }); !errors.Is(err, broken) || d.Found != 1 {
			t.Errorf("%+v: %v", d, err)
		}
		lost := func(context.Context, yard.Filter) iter.Seq2[*yard.TaskInfo, error] {
			return func(yield func(*yard.TaskInfo, error) bool) { yield(nil, broken) }
		}
		if _, err = run(t.Context(), lost, Options{}, 0, b.cancel); !errors.Is(err, broken) {
			t.Error(err)
		}
		if _, err = Update(t.Context(), nil, yard.Update{TaskID: "x"}, Options{}); err == nil {
			t.Error("an update of one task")
		}
	})
}
