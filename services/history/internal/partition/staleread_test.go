package partition_test

import (
	"context"
	"fmt"
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

// I12: an owner without a lease may be one of two. What it has in memory, or does not have, may be old, so it says neither.
func TestI12_AnOwnerWithoutALeaseShowsNoTask(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		checkpoints := &brokenCheckpoints{Checkpoints: d.Checkpoints}
		d.Checkpoints = checkpoints
		o := s.serves(d)
		known, absent := newID(1), newID(2)
		s.submit(3, task(known, "shop"))
		time.Sleep(time.Second)
		get := func(id [16]byte) (code fault.Code) {
			code = "no answer"
			o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: "shop"}, func(_ *rpcv1.GetTaskResponse, err error) { code = fault.CodeOf(err) })
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			return code
		}
		for _, c := range []struct {
			away bool
			want fault.Code
		}{{false, ""}, {true, fault.Unavailable}, {false, ""}} {
			checkpoints.broken.Store(c.away)
			time.Sleep(5 * time.Second) // a lease, and more
			for what, id := range map[string][16]byte{"known": known, "absent": absent} {
				if got := get(id); got != c.want {
					t.Errorf("checkpoints away %v, %s: %q", c.away, what, got)
				}
			}
		}
	})
}

// lateReader looks into the archive for longer than a lease lasts.
type lateReader struct{ partition.Reader }

func (r lateReader) Archived(ctx context.Context, wanted []replica.Search) ([]*logv1.Record, error) {
	time.Sleep(3 * time.Second)
	return r.Reader.Archived(ctx, wanted)
}

// I12: the same of a lease that ends while the task is looked for.
func TestI12_WhatIsFoundAfterTheLeaseIsNotShown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		checkpoints := &brokenCheckpoints{Checkpoints: d.Checkpoints}
		d.Checkpoints, d.Reader = checkpoints, lateReader{d.Reader}
		o := s.serves(d)
		for _, want := range []fault.Code{"", fault.Unavailable} {
			checkpoints.broken.Store(want != "")
			id, answers := newID(1), make(chan error, 1)
			o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: "shop"}, func(_ *rpcv1.GetTaskResponse, err error) { answers <- err })
			testkit.Equal(t, "answered with", fault.CodeOf(<-answers), want)
		}
		checkpoints.broken.Store(false)
	})
}

// TestAWaitingTaskIsFoundHere too, also while a command has it fired: who asks for it is not to take it for gone.
func TestAWaitingTaskIsFoundHere(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		o := s.serves(s.deps("a"))
		id := newID(1)
		r := task(id, "shop")
		r.DueAtMs = time.Now().Add(time.Hour).UnixMilli()
		s.submit(ids.LaneLater, r)
		time.Sleep(10 * time.Second)
		s.event(&logv1.Event{Kind: logv1.EventKind_EVENT_KIND_UPDATE, TaskId: id[:], Domain: "shop", Update: &logv1.Update{Priority: 1}})
		for range 200 {
			answers := make(chan *rpcv1.GetTaskResponse, 1)
			o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: "shop"}, func(r *rpcv1.GetTaskResponse, _ error) { answers <- r })
			if r := <-answers; r.GetTask().GetState() != yardv1.TaskState_TASK_STATE_WAITING {
				t.Fatalf("got %v", r)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if v := s.last(); v.Code != "" || v.Revision != 2 {
			t.Errorf("the update gets %v", v)
		}
	})
}

// endlessReader gives up each search of the log.
type endlessReader struct{ partition.Reader }

func (endlessReader) Unread(context.Context, replica.Search, uint64, replica.Levels) (*logv1.Record, ids.Position, error) {
	return nil, 0, partition.ErrSearchTooLong
}

// TestAWaitingTaskIsFoundBesideALongLog: the log has a backlog of the time when the task was made, and is not searched for it. A task that no store has is
// searched for there.
func TestAWaitingTaskIsFoundBesideALongLog(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		d.Reader = endlessReader{d.Reader}
		o := s.serves(d)
		far, absent := newID(1), newID(2)
		r := task(far, "shop")
		r.DueAtMs = time.Now().Add(time.Hour).UnixMilli()
		s.submit(ids.LaneLater, r)
		time.Sleep(10 * time.Second)
		if state := s.shown(o, far); state != yardv1.TaskState_TASK_STATE_WAITING {
			t.Errorf("it is shown as %v", state)
		}
		o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: absent[:], Domain: "shop"}, func(r *rpcv1.GetTaskResponse, err error) {
			if fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("the task that no store has: %v, %v", r, err)
			}
		})
		time.Sleep(time.Second)
	})
}

// besideASilentTimer serves a partition whose timer is silent, with a task that is not read until goOn.
func besideASilentTimer(t *testing.T, s *shell) (o *partition.Owner, id ids.TaskID, goOn func()) {
	t.Helper()
	d, let := s.deps("a"), make(chan struct{})
	d.Log, d.Timer = heldLane{d.Log, let}, silentTimer{d.Timer}
	o, id = s.serves(d), newID(1)
	s.world.AppendSubmit(ids.LaneLater, encoded(t, &logv1.Batch{Tasks: []*logv1.Record{task(id, "shop")}}))
	return o, id, func() { close(let) }
}

// TestAnUnreadTaskIsFoundBesideASilentTimer: a submit is not in the timer store, so its owner does not matter to who asks for it.
func TestAnUnreadTaskIsFoundBesideASilentTimer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		o, id, goOn := besideASilentTimer(t, s)
		if state := s.shown(o, id); state != yardv1.TaskState_TASK_STATE_QUEUED {
			t.Errorf("it is shown as %v", state)
		}
		goOn()
		time.Sleep(time.Second)
	})
}

// R18: so the task is found beside a silent timer too if many wait for the timer, who ask for tasks that do not exist.
func TestAnUnreadTaskIsFoundInAFloodBesideASilentTimer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		o, id, goOn := besideASilentTimer(t, s)
		for n := range uint64(200) {
			absent := newID(10 + n)
			o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: absent[:], Domain: fmt.Sprint("other", n%50)}, func(*rpcv1.GetTaskResponse, error) {})
		}
		time.Sleep(100 * time.Millisecond)
		var answers atomic.Int32
		for range 3 {
			o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: "shop"}, func(r *rpcv1.GetTaskResponse, err error) {
				testkit.Check(t, err)
				testkit.Equal(t, "state", r.GetTask().GetState(), yardv1.TaskState_TASK_STATE_QUEUED)
				answers.Add(1)
			})
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		testkit.Equal(t, "answers within two seconds", answers.Load(), 3)
		goOn()
		time.Sleep(time.Minute)
	})
}

// deadReader has a task that died, of which the log has the submit still.
type deadReader struct {
	partition.Reader
	of *logv1.Record
}

func (r deadReader) Archived(context.Context, []replica.Search) ([]*logv1.Record, error) {
	dead := r.of.CloneVT()
	dead.State, dead.FinishedAtMs = int32(yardv1.TaskState_TASK_STATE_DEAD), time.Now().UnixMilli()
	return []*logv1.Record{dead}, nil
}

func (r deadReader) Unread(context.Context, replica.Search, uint64, replica.Levels) (*logv1.Record, ids.Position, error) {
	return r.of, ids.NewPosition(1, ids.LaneLater), nil
}

// The submit of a task that died is older than its end: it is no sign that the task waits.
func TestADeadTaskIsNotShownAsItWasSubmitted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d, id := s.deps("a"), newID(1)
		d.Reader = deadReader{d.Reader, task(id, "shop")}
		testkit.Equal(t, "state", s.shown(s.serves(d), id), yardv1.TaskState_TASK_STATE_DEAD)
	})
}

// An absent task may wait in a silent timer: so the owner does not say that it does not exist.
func TestAnAbsentTaskIsUnknownBesideASilentTimer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		d.Timer = silentTimer{d.Timer}
		o := s.serves(d)
		absent, answers := newID(1), make(chan error, 1)
		o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: absent[:], Domain: "shop"}, func(_ *rpcv1.GetTaskResponse, err error) { answers <- err })
		testkit.Equal(t, "answered with", fault.CodeOf(<-answers), fault.Unavailable)
	})
}
