package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// slots are handlers that hold slots of a limit until they are let go, or asked to stop.
type slots struct {
	*world
	running meter
	gate    chan struct{}
	mu      sync.Mutex
	// stopped are the payloads of handlers whose contexts ended.
	stopped map[string]bool
}

// overflowing has two types share a limit, and a worker with room for all.
func overflowing(w *world, l yard.Limit) *slots {
	w.t.Helper()
	s := &slots{world: w, gate: make(chan struct{}), stopped: map[string]bool{}}
	l.Name = "acme"
	stored, err := w.client.PutLimit(w.soon(), l)
	if err != nil || stored.OnFull != l.OnFull || stored.OnFullAfter != l.OnFullAfter {
		w.t.Fatalf("stored %+v: %v", stored, err)
	}
	for _, typ := range []string{"pay", "refund"} {
		w.putType(yard.TaskType{Name: typ, Limits: []string{"acme"}, HeartbeatTimeout: 30 * time.Second})
	}
	w.work(list, func(worker *yard.Worker) {
		for _, typ := range []string{"pay", "refund"} {
			yard.Handle(worker, typ, func(ctx context.Context, name string) (struct{}, error) {
				err := hold(ctx, s.gate, &s.running)
				if err != nil {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.stopped[name] = true
				}
				return struct{}{}, err
			})
		}
	}, yard.WithConcurrency(20))
	return s
}

// add hands in a task.
func (s *slots) add(typ, name, group string) string {
	s.t.Helper()
	return s.submitOne(&yardv1.NewTask{Type: typ, Group: group, Payload: jsonPayload(fmt.Sprintf("%q", name))})
}

// run waits until so many run.
func (s *slots) run(want int) {
	s.t.Helper()
	s.runs("the slots", &s.running, exactly(want))
}

// cancelled waits until a task is cancelled for a reason.
func (s *slots) cancelled(id, reason string) {
	s.t.Helper()
	got := s.ended(id)
	last := got.Events[len(got.Events)-1]
	if stateOf(got) != "cancelled" || !strings.HasPrefix(last.Message, reason) {
		s.t.Errorf("%s is %s, %q; want it cancelled since %s", id, stateOf(got), last.Message, reason)
	}
}

// completed waits until a task is.
func (s *slots) completed(id string) {
	s.t.Helper()
	if got := s.ended(id); stateOf(got) != "completed" {
		s.t.Errorf("%s is %s", id, stateOf(got))
	}
}

// TestAFullLimitRejectsTheNewest: those that run go on, those that wait for a slot are cancelled and have never run, and one that comes later and
// finds a slot runs.
func TestAFullLimitRejectsTheNewest(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		s := overflowing(w, yard.Limit{MaxConcurrency: 2, OnFull: yard.OnFullRejectNewest, OnFullAfter: 200 * time.Millisecond})
		first := []string{s.add("pay", "a", ""), s.add("refund", "b", "")}
		s.run(2)
		var rest []string
		for i := range 8 {
			rest = append(rest, s.add([]string{"pay", "refund"}[i%2], "c", ""))
		}
		for _, id := range rest {
			s.cancelled(id, "limit shared/acme is full")
			want(t, s.get(id), "cancelled", "submitted cancelled")
		}
		w.use("shared/acme", func(l yard.LimitUse) bool { return l.Rejected == 8 && l.Running == 2 })
		s.run(2)
		close(s.gate)
		for _, id := range first {
			s.completed(id)
		}
		s.completed(s.add("pay", "later", ""))
	})
}

// TestAGroupThatIsFullRejectsItsNewest, and no other group's: a task of another group, and one without, run beside it.
func TestAGroupThatIsFullRejectsItsNewest(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		s := overflowing(w, yard.Limit{MaxConcurrencyPerGroup: 1, OnFull: yard.OnFullRejectNewest, OnFullAfter: 200 * time.Millisecond})
		a := s.add("pay", "a", "ann")
		s.run(1)
		again := []string{s.add("pay", "a2", "ann"), s.add("refund", "a3", "ann")}
		b, c := s.add("pay", "b", "bob"), s.add("pay", "c", "")
		s.run(3)
		for _, id := range again {
			s.cancelled(id, "limit shared/acme/group/ann is full")
		}
		close(s.gate)
		for _, id := range []string{a, b, c} {
			s.completed(id)
		}
		s.completed(s.add("pay", "later", "ann"))
	})
}

// TestOnlyTheNewestOfAGroupRuns: the oldest attempt of the group is asked to stop, its handler hears of it, and the newer task runs; other groups are
// undisturbed.
func TestOnlyTheNewestOfAGroupRuns(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		s := overflowing(w, yard.Limit{MaxConcurrencyPerGroup: 1, OnFull: yard.OnFullCancelOldest, OnFullAfter: 200 * time.Millisecond})
		b, c := s.add("pay", "b", "bob"), s.add("pay", "c", "")
		old := s.add("pay", "a", "ann")
		s.run(3)
		for _, name := range []string{"a2", "a3"} {
			newer := s.add("refund", name, "ann")
			s.cancelled(old, "limit shared/acme/group/ann is full")
			old = newer
			s.eventually(func() error {
				if stateOf(s.get(newer)) != "running" {
					return errors.New("the newer task does not run")
				}
				return nil
			})
			s.run(3)
		}
		w.use("shared/acme/group", func(l yard.LimitUse) bool { return l.Displaced == 2 })
		s.mu.Lock()
		if len(s.stopped) != 2 || !s.stopped["a"] || !s.stopped["a2"] {
			t.Errorf("stopped were %v", s.stopped)
		}
		s.mu.Unlock()
		close(s.gate)
		for _, id := range []string{old, b, c} {
			s.completed(id)
		}
	})
}

// TestTheOldestMakeRoom: of a limit of two, for each of two newer tasks one attempt stops, and no other.
func TestTheOldestMakeRoom(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		s := overflowing(w, yard.Limit{MaxConcurrency: 3, OnFull: yard.OnFullCancelOldest, OnFullAfter: 200 * time.Millisecond})
		var all []string
		for i := range 3 {
			all = append(all, s.add("pay", fmt.Sprint(i), ""))
			s.run(i + 1)
		}
		newer := []string{s.add("refund", "x", ""), s.add("pay", "y", "")}
		s.cancelled(all[0], "limit shared/acme is full")
		s.cancelled(all[1], "limit shared/acme is full")
		s.run(3)
		close(s.gate)
		for _, id := range append(newer, all[2]) {
			s.completed(id)
		}
		w.use("shared/acme", func(l yard.LimitUse) bool { return l.Displaced == 2 })
	})
}

// TestAFullLimitKeepsItsPolicyWithANewOwner: owners are replaced while a limit is full and tasks for it come. Of a limit that rejects, what runs goes on; of one
// that cancels, no more are stopped than tasks came, the oldest first.
func TestAFullLimitKeepsItsPolicyWithANewOwner(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	tables, err := kinds()
	testkit.NoError(t, err)
	for _, tables := range tables {
		for _, policy := range []yard.OnFull{yard.OnFullRejectNewest, yard.OnFullCancelOldest} {
			t.Run(fmt.Sprint(tables, "/", policy), func(t *testing.T) {
				t.Parallel()
				w := enter(t, own(t, stack.Config{Partitioning: topology.DefaultPartitioning(), Tables: tables}))
				const most, come = 6, 4
				s := overflowing(w, yard.Limit{MaxConcurrency: most, OnFull: policy, OnFullAfter: time.Second})
				var first, late []string
				for i := range most {
					first = append(first, s.add("pay", fmt.Sprint("first", i), ""))
					s.run(i + 1)
				}
				for i := range come {
					late = append(late, s.add("refund", fmt.Sprint("late", i), ""))
					w.overtakeMatching()
				}
				ends, run := late, first
				if policy == yard.OnFullCancelOldest {
					ends, run = first[:come], append(first[come:], late...)
				}
				for _, id := range ends {
					s.cancelled(id, "limit shared/acme is full")
				}
				s.run(most)
				w.overtakeMatching()
				close(s.gate)
				for _, id := range run {
					s.completed(id)
				}
			})
		}
	}
}
