package partition_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// stillLog takes what its owner appends only when it moves again.
type stillLog struct {
	partition.Log
	moves    atomic.Pointer[chan struct{}]
	appended atomic.Int64
}

func (l *stillLog) Append(ctx context.Context, turn []byte, after uint64) (uint64, error) {
	l.appended.Add(1)
	if moves := l.moves.Load(); moves != nil {
		<-*moves
	}
	return l.Log.Append(ctx, turn, after)
}

// TestALogThatStandsStillBurnsNoAttempt: two attempts run whose leases end while the log takes nothing, one right at the
// beginning, when it has just been proposed. A worker that was done in time is heard afterwards, in either way. The
// third one is dead: its task is over when the workers had time to be heard.
func TestALogThatStandsStillBurnsNoAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		still := &stillLog{Log: s.world}
		d.Log = still
		s.serves(d)
		var all []ids.TaskID
		started := make(map[ids.TaskID]ids.Trigger)
		s.worker = func(tr ids.Trigger) {
			s.event(outcome(tr, logv1.EventKind_EVENT_KIND_STARTED))
			s.mu.Lock()
			started[tr.ID] = tr
			s.mu.Unlock()
		}
		for n, lease := range []int64{60_000, 65_000, 65_000} {
			r := task(newID(uint64(n+1)), "shop")
			r.Policy.StartToCloseMs = lease
			all = append(all, ids.TaskID(r.Id))
			s.submit(3, r)
		}
		time.Sleep(59_950 * time.Millisecond)
		synctest.Wait()
		if still.appended.Load() == 0 {
			t.Error("the log was not asked whether it moves, though a lease ends soon")
		}
		moves := make(chan struct{})
		still.moves.Store(&moves)
		time.Sleep(15 * time.Second)
		still.moves.Store(nil)
		close(moves)
		synctest.Wait()
		time.Sleep(4 * time.Second)
		for _, id := range all[:2] {
			s.event(outcome(started[id], logv1.EventKind_EVENT_KIND_COMPLETED))
		}
		time.Sleep(3900 * time.Millisecond)
		synctest.Wait()
		testkit.Equal(t, "tasks are dead before their workers had time to be heard", len(s.world.DeadTasks()), 0)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if dead := s.world.DeadTasks(); len(dead) != 1 || ids.TaskID(dead[0].Id) != all[2] {
			t.Errorf("%d tasks are dead, want the one whose worker is not heard", len(dead))
		}
		s.mu.Lock()
		for _, v := range s.verdicts {
			if v.Code != "" {
				t.Errorf("a worker was answered %s: %s", v.Code, v.Message)
			}
		}
		s.mu.Unlock()
	})
}

// sealedLog takes no turn but the first one, which claims it.
type sealedLog struct {
	partition.Log
	appended atomic.Int64
}

func (l *sealedLog) Append(ctx context.Context, turn []byte, after uint64) (uint64, error) {
	if l.appended.Add(1) == 1 {
		return l.Log.Append(ctx, turn, after)
	}
	return 0, partition.ErrRefused
}

// TestALogThatRefusesToBeAskedEndsNoOwner: a batch without events may be refused too.
func TestALogThatRefusesToBeAskedEndsNoOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		sealed := &sealedLog{Log: s.world}
		d.Log = sealed
		s.serves(d)
		s.worker = func(tr ids.Trigger) { s.event(outcome(tr, logv1.EventKind_EVENT_KIND_STARTED)) }
		r := task(newID(1), "shop")
		r.Policy.StartToCloseMs = 5_000
		s.submit(3, r)
		time.Sleep(20 * time.Second)
		if sealed.appended.Load() < 2 {
			t.Error("the log was not asked again")
		}
	})
}

// TestWhatRestsOnAnAdmissionIsNotInMemorySoFar: the log has not taken the turn that admits a task which is parked as it comes, so another owner may find
// otherwise. A frontend must not decide by it what becomes of a unique key. One that is ready keeps its key in any case.
func TestWhatRestsOnAnAdmissionIsNotInMemorySoFar(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		still := &stillLog{Log: s.world}
		d.Log = still
		o := s.serves(d)
		moves := make(chan struct{})
		still.moves.Store(&moves)
		later, ready := task(newID(1), "shop"), task(newID(2), "shop")
		later.DueAtMs = time.Now().Add(time.Hour).UnixMilli()
		s.submit(3, later, ready)
		for _, r := range []*logv1.Record{later, ready} {
			var got *rpcv1.GetTaskResponse
			o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: r.Id, Domain: "shop", InMemory: true}, func(resp *rpcv1.GetTaskResponse, err error) {
				testkit.Check(t, err)
				got = resp
			})
			synctest.Wait()
			if got.GetTask() != nil != (r == ready) {
				t.Errorf("in memory is %v", got.GetTask())
			}
		}
		still.moves.Store(nil)
		close(moves)
	})
}
