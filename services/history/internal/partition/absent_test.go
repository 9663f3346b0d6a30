package partition_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// slowReader finds nothing unread, after an hour.
type slowReader struct {
	partition.Reader
	running, most *atomic.Int64
}

func (r slowReader) Unread(ctx context.Context, _ replica.Search, _ uint64, _ replica.Levels) (*logv1.Record, ids.Position, error) {
	n := r.running.Add(1)
	defer r.running.Add(-1)
	if n > r.most.Load() {
		r.most.Store(n)
	}
	select {
	case <-time.After(time.Hour):
		return nil, 0, nil
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// TestQuestionsForAbsentTasksAreBounded: R22. A caller that asks for tasks that are nowhere gets
// RESOURCE_EXHAUSTED once too many are looked for, and no search goes on forever.
func TestQuestionsForAbsentTasksAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		var running, most atomic.Int64
		d.Reader = slowReader{d.Reader, &running, &most}
		o := s.serves(d)
		var refused, answered atomic.Int64
		const asked = 5000
		for n := range uint64(asked) {
			id := newID(n)
			o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: "shop"}, func(_ *rpcv1.GetTaskResponse, err error) {
				answered.Add(1)
				if fault.CodeOf(err) == fault.ResourceExhausted {
					refused.Add(1)
				}
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if most.Load() > 1000 || refused.Load() == 0 {
			t.Errorf("%d searches ran at once, %d were refused", most.Load(), refused.Load())
		}
		if running.Load() != 0 || answered.Load() != asked {
			t.Errorf("after a minute %d searches run, %d of %d are answered", running.Load(), answered.Load(), asked)
		}
	})
}

// heldReader notes whose tasks are looked for, and lets each lookup wait until it is let go.
type heldReader struct {
	partition.Reader
	asked chan string
	free  chan struct{}
}

func (r heldReader) Archived(ctx context.Context, wanted []replica.Search) ([]*logv1.Record, error) {
	r.asked <- wanted[0].Domain
	<-r.free
	return r.Reader.Archived(ctx, wanted)
}

// TestI14_AbsentTasksAreLookedForInTurn: few at a time are looked for, and however many one domain asks for, another's one comes next.
func TestI14_AbsentTasksAreLookedForInTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		r := heldReader{d.Reader, make(chan string, 1000), make(chan struct{})}
		d.Reader = r
		o := s.serves(d)
		get := func(domain string, n uint64) {
			id := newID(n)
			o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: domain}, func(_ *rpcv1.GetTaskResponse, err error) { testkit.Check(t, err) })
			synctest.Wait()
		}
		const flood = 100
		for n := range uint64(flood) {
			get("flood", n)
		}
		get("shop", flood)
		begun := len(r.asked)
		var order []string
		for range flood + 1 {
			r.free <- struct{}{}
			synctest.Wait()
			order = append(order, <-r.asked)
		}
		if at := slices.Index(order, "shop"); at < 0 || at > begun+1 || begun > flood/4 {
			t.Errorf("%d were looked for at once; the other domain's was number %d", begun, at+1)
		}
	})
}

// costlyReader looks through what is unread for a millisecond, and notes when it began.
type costlyReader struct {
	partition.Reader
	at chan time.Time
}

func (r costlyReader) Unread(context.Context, replica.Search, uint64, replica.Levels) (*logv1.Record, ids.Position, error) {
	r.at <- time.Now()
	time.Sleep(time.Millisecond)
	return nil, 0, nil
}

// TestI14_SearchesOfAbsentTasksLeaveTimeToOthers: however many a domain asks for, those that wait are looked for together, and most of the time is left to
// everything else.
func TestI14_SearchesOfAbsentTasksLeaveTimeToOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		const flood, togetherMax, restMin = 100, 32, 2 * time.Millisecond
		d := s.deps("a")
		r := costlyReader{d.Reader, make(chan time.Time, flood)}
		d.Reader = r
		o := s.serves(d)
		for n := range uint64(flood) {
			id := newID(n)
			o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: "flood"}, func(_ *rpcv1.GetTaskResponse, err error) { testkit.Check(t, err) })
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		testkit.Equal(t, "looked for", len(r.at), flood)
		together, last := 0, time.Time{}
		for range flood {
			at := <-r.at
			switch since := at.Sub(last); {
			case since == 0:
				together++
			case since < time.Millisecond+restMin:
				t.Errorf("a turn began %v after the one before", since)
			default:
				together = 1
			}
			if together > togetherMax {
				t.Fatalf("%d were looked for together", together)
			}
			last = at
		}
	})
}

// shown is the state in which a task is shown.
func (s *shell) shown(o *partition.Owner, id ids.TaskID) (state yardv1.TaskState) {
	s.t.Helper()
	o.Get(s.t.Context(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: "shop"}, func(r *rpcv1.GetTaskResponse, err error) {
		testkit.Check(s.t, err)
		state = r.GetTask().GetState()
	})
	time.Sleep(time.Second)
	synctest.Wait()
	return state
}

// TestWhatACommandDidIsSeenBeforeItsTaskIsRead: its caller has the verdict, and asks for the task.
func TestWhatACommandDidIsSeenBeforeItsTaskIsRead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		let := make(chan struct{})
		id := newID(1)
		back := task(id, "shop")
		back.Parkings, back.Position = 1, uint64(ids.NewPosition(1, 3))
		s.world.AppendSubmit(ids.LaneLater, encoded(t, &logv1.Batch{Tasks: []*logv1.Record{back}}))
		d.Log = heldLane{d.Log, let}
		o := s.serves(d)
		s.submit(3, task(newID(2), "shop")) // where the stay before lay
		if state := s.shown(o, id); state != yardv1.TaskState_TASK_STATE_QUEUED {
			t.Errorf("it is shown as %v", state)
		}
		s.cancels("shop", id)
		time.Sleep(time.Second)
		if state, verdict := s.shown(o, id), s.last().GetCode(); state != yardv1.TaskState_TASK_STATE_CANCELLED || verdict != "" {
			t.Errorf("it is cancelled with %q, and shown as %v", verdict, state)
		}
		close(let)
		time.Sleep(time.Second)
	})
}

// TestARedriveIsSeenBeforeItIsCarriedOut: that waits until the lanes are read, and its caller has the verdict.
func TestARedriveIsSeenBeforeItIsCarriedOut(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		s.works(logv1.EventKind_EVENT_KIND_FAILED)
		d := s.deps("a")
		_, stop := ready(d)
		id := newID(1)
		s.submit(3, task(id, "shop"))
		time.Sleep(time.Minute) // it is dead
		testkit.NoError(t, stop())
		d.Node, d.Log = "b", laterLog{d.Log, 100}
		o := s.serves(d)
		if state := s.shown(o, id); state != yardv1.TaskState_TASK_STATE_DEAD {
			t.Errorf("it is shown as %v", state)
		}
		s.event(&logv1.Event{
			Kind: logv1.EventKind_EVENT_KIND_REDRIVEN, TaskId: id[:], Domain: "shop", Redrive: &logv1.Redrive{Letter: 1, Tasklist: "mail", Request: 7},
		})
		time.Sleep(time.Minute)
		if state, verdict := s.shown(o, id), s.last().GetCode(); state.Finished() || verdict != "" {
			t.Errorf("it is redriven with %q, and shown as %v", verdict, state)
		}
	})
}

// TestARefusedSkipIsNotShown: a task that was fired for it waits for its time, so it is not skipped.
func TestARefusedSkipIsNotShown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		let := make(chan struct{})
		id := newID(1)
		back := task(id, "shop")
		back.Parkings, back.Position = 1, uint64(ids.NewPosition(1, 3))
		back.Order = &logv1.Order{Key: "k", Index: 1, Turn: true}
		s.world.AppendSubmit(ids.LaneLater, encoded(t, &logv1.Batch{Tasks: []*logv1.Record{back}}))
		d.Log = heldLane{d.Log, let}
		o := s.serves(d)
		s.submit(3, task(newID(2), "shop")) // where the stay before lay
		s.event(&logv1.Event{Kind: logv1.EventKind_EVENT_KIND_SKIPPED, TaskId: id[:], Domain: "shop", OrderKey: "k", Message: "skip", Update: &logv1.Update{Request: 3}})
		time.Sleep(time.Second)
		if state, verdict := s.shown(o, id), s.last().GetCode(); state.Finished() || verdict != string(fault.FailedPrecondition) {
			t.Errorf("it is refused with %q, and shown as %v", verdict, state)
		}
		close(let)
		time.Sleep(time.Second)
	})
}
