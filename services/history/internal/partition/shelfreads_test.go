package partition_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
)

// lineTasks is how long the line of these tests is: most of it goes to the shelf.
const lineTasks = 400

// shelving is an owner whose lines go to the shelf.
func (s *shell) shelving(node string, shelf partition.Shelf) (d partition.Deps, away *atomic.Int64) {
	d, away = s.deps(node), new(atomic.Int64)
	d.LogVersion = func() uint32 { return 10 }
	d.Config.WindowTasks, d.Config.LineTasks = lineTasks/4, 20
	d.Shelved = func(n int) { away.Store(int64(n)) }
	if shelf != nil {
		d.Shelf = shelf
	}
	return d, away
}

// line submits a line of tasks in pairs, and waits until most of it is away.
func (s *shell) line(away *atomic.Int64) (all []ids.TaskID) {
	for n := uint64(1); n <= lineTasks; n += 2 {
		first, second := keyedTask(n, "a", 10), keyedTask(n+1, "a", 10)
		all = append(all, ids.TaskID(first.Id), ids.TaskID(second.Id))
		s.submit(ids.LaneKeyed, first, second)
	}
	time.Sleep(time.Minute)
	if n := away.Load(); n < lineTasks/2 {
		s.t.Fatalf("%d of %d tasks are on the shelf", n, lineTasks)
	}
	return all
}

// runs has a worker that ends up to so many attempts, and waits for it.
func (s *shell) runs(o *partition.Owner, most int64) {
	var begun atomic.Int64
	s.mu.Lock()
	s.worker = func(tr ids.Trigger) {
		if begun.Add(1) <= most {
			s.event(outcome(tr, logv1.EventKind_EVENT_KIND_STARTED))
			s.event(outcome(tr, logv1.EventKind_EVENT_KIND_COMPLETED))
		}
	}
	s.mu.Unlock()
	if _, err := o.Retrigger(s.t.Context(), &rpcv1.RetriggerRequest{Shard: -1}); err != nil {
		s.t.Error(err)
	}
	time.Sleep(5 * time.Minute)
}

// TestALineComesBackFromTheShelf, to the owner that wrote it, or to the next one, a part of it: what was cancelled is not run. All others run once, in order.
func TestALineComesBackFromTheShelf(t *testing.T) {
	for _, takeover := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newShell(t)
			d, away := s.shelving("a", nil)
			o, stop := run(d)
			<-o.Ready()
			all := s.line(away)
			cancelled := all[lineTasks-10]
			if takeover {
				s.runs(o, lineTasks/4) // the log may forget what lies before the pages, and is on them
				if err := stop(); err != nil {
					t.Fatal(err)
				}
			}
			s.event(&logv1.Event{Kind: logv1.EventKind_EVENT_KIND_CANCEL, TaskId: cancelled[:], Domain: "shop"})
			if takeover {
				d, _ = s.shelving("b", nil)
				o, stop = run(d)
				<-o.Ready()
			}
			s.runs(o, 2*lineTasks)
			if err := stop(); err != nil {
				t.Error(err)
			}
			var ran []ids.TaskID
			for _, r := range s.world.ArchivedTasks() {
				if taskstate.State(r.State) == taskstate.Completed {
					ran = append(ran, ids.TaskID(r.Id))
				}
			}
			want := slices.DeleteFunc(slices.Clone(all), func(id ids.TaskID) bool { return id == cancelled })
			if !slices.Equal(ran, want) {
				t.Errorf("takeover %v: %d tasks ran, or not in order, want %d", takeover, len(ran), len(want))
			}
			if n := s.archived()[cancelled]; n != 1 {
				t.Errorf("takeover %v: the task that was cancelled has ended %d times", takeover, n)
			}
		})
	}
}

// TestTasksOnTheShelfAreFound and listed with those in memory, the newest first, for their domain alone.
func TestTasksOnTheShelfAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		d, away := s.shelving("a", nil)
		o, stop := run(d)
		<-o.Ready()
		all := s.line(away)
		other := keyedTask(lineTasks+1, "b", 10)
		s.submit(ids.LaneKeyed, other)
		time.Sleep(time.Second)
		all = append(all, ids.TaskID(other.Id))
		for domain, want := range map[string]int{"shop": len(all), "rival": 0} {
			var found atomic.Int64
			for _, id := range all {
				o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: domain}, func(r *rpcv1.GetTaskResponse, err error) {
					if err != nil {
						t.Error(err)
					} else if r.Task.GetTaskId() == id.String() {
						found.Add(1)
					}
				})
				synctest.Wait()
			}
			if int(found.Load()) != want {
				t.Errorf("%s: %d are found, want %d", domain, found.Load(), want)
			}
		}
		lists(t, o, all)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// lists goes through the tasks of an owner page by page; all are those of its domain, the oldest first: the last one is of the key b.
func lists(t *testing.T, o *partition.Owner, all []ids.TaskID) {
	t.Helper()
	ready, running := yardv1.TaskState_TASK_STATE_READY, yardv1.TaskState_TASK_STATE_RUNNING
	for name, c := range map[string]struct {
		filter *yardv1.ListRequest
		want   []ids.TaskID
	}{
		"all":           {&yardv1.ListRequest{}, all},
		"ready":         {&yardv1.ListRequest{States: []yardv1.TaskState{ready}}, all},
		"of its key":    {&yardv1.ListRequest{OrderKey: "a"}, all[:len(all)-1]},
		"of another":    {&yardv1.ListRequest{OrderKey: "b"}, all[len(all)-1:]},
		"running":       {&yardv1.ListRequest{States: []yardv1.TaskState{running}}, nil},
		"of other type": {&yardv1.ListRequest{Type: "other"}, nil},
	} {
		for _, limit := range []int32{7, 60, 1000} {
			filter := &yardv1.ListRequest{States: c.filter.States, OrderKey: c.filter.OrderKey, Type: c.filter.Type, Limit: limit}
			var got []ids.TaskID
			for more := true; more; {
				page, err := o.List(t.Context(), &rpcv1.ListTasksRequest{Domain: "shop", Filter: filter})
				if err != nil {
					t.Fatal(err)
				}
				for _, task := range page.Tasks {
					id, err := ids.ParseTaskID(task.TaskId)
					if err != nil {
						t.Fatal(err)
					}
					got, filter.Cursor = append(got, id), task.TaskId
				}
				more = page.More && len(page.Tasks) > 0
			}
			slices.Reverse(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("%s, %d at a time: %d are listed, want %d", name, limit, len(got), len(c.want))
			}
		}
	}
}

// TestOrderKeysAreListed page by page, with what waits in each on the shelf, too.
func TestOrderKeysAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		d, away := s.shelving("a", nil)
		o, stop := run(d)
		<-o.Ready()
		s.line(away)
		time.Sleep(time.Second)
		s.submit(ids.LaneKeyed, keyedTask(lineTasks+1, "b", 10))
		time.Sleep(time.Second)
		for _, limit := range []int32{0, 1, 10} {
			req := &rpcv1.ListKeysRequest{Domain: "shop", Limit: limit}
			var got []string
			for more := true; more; {
				page, err := o.Keys(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				if limit < 2 && len(page.Keys) > 1 {
					t.Errorf("%d keys are listed at a time, want %d", len(page.Keys), limit)
				}
				for _, k := range page.Keys {
					got = append(got, fmt.Sprint(k.OrderKey, " ", k.Waiting))
					req.AfterKey, req.AfterSinceMs = k.OrderKey, k.SinceMs
				}
				more = page.More
			}
			if want := []string{fmt.Sprint("a ", lineTasks-1), "b 0"}; !slices.Equal(got, want) {
				t.Errorf("%d at a time: %q, want %q", limit, got, want)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// lostShelf has no pages any more from a moment on, and takes its time to say so.
type lostShelf struct {
	partition.Shelf
	lost  atomic.Bool
	takes time.Duration
}

func (s *lostShelf) Read(ctx context.Context, seq uint64) ([]byte, error) {
	if s.lost.Load() {
		time.Sleep(s.takes)
		return nil, nil
	}
	return s.Shelf.Read(ctx, seq)
}

// TestALostPageEndsItsOwner: to go on would be to lose the tasks on it, whether the page is needed now, in a takeover, or for what its log brings.
func TestALostPageEndsItsOwner(t *testing.T) {
	for _, when := range []string{"now", "takeover", "command in a takeover"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShell(t)
				shelf := &lostShelf{Shelf: s.deps("a").Shelf}
				d, away := s.shelving("a", shelf)
				o, stop := run(d)
				<-o.Ready()
				all := s.line(away)
				last := all[lineTasks-10]
				if when != "now" {
					if err := stop(); err != nil {
						t.Fatal(err)
					}
				}
				if when != "takeover" {
					s.event(&logv1.Event{Kind: logv1.EventKind_EVENT_KIND_CANCEL, TaskId: last[:], Domain: "shop"})
				}
				shelf.lost.Store(true)
				if when != "now" {
					d, _ = s.shelving("b", shelf)
					_, stop = run(d)
				}
				time.Sleep(time.Minute)
				if err := stop(); !errors.Is(err, partition.ErrUnreadable) {
					t.Errorf("it ended with %v", err)
				}
			})
		})
	}
}

// TestAPageThatALaterOwnerHasDeleted: this owner was paused for longer than its lease. Nothing is lost, so no operator has to restore the stores.
func TestAPageThatALaterOwnerHasDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		shelf := &lostShelf{Shelf: s.deps("a").Shelf, takes: 10 * time.Second}
		d, away := s.shelving("a", shelf)
		checkpoints := &brokenCheckpoints{Checkpoints: s.world}
		d.Checkpoints = checkpoints
		o, stop := run(d)
		<-o.Ready()
		last := s.line(away)[lineTasks-10]
		s.event(&logv1.Event{Kind: logv1.EventKind_EVENT_KIND_CANCEL, TaskId: last[:], Domain: "shop"})
		shelf.lost.Store(true)
		checkpoints.broken.Store(true)
		time.Sleep(time.Minute)
		if err := stop(); !errors.Is(err, partition.ErrTakenOver) {
			t.Errorf("it ended with %v", err)
		}
	})
}
