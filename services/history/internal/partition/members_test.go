package partition_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/batches"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// made is when the batch night was created, Unix ms, by the clock of a bubble.
var made = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// member is a task of the batch night.
func member(n uint64) *logv1.Record {
	r := task(newID(n), "shop")
	r.BatchId, r.BatchMadeMs = "night", made
	return r
}

// wantMembers checks how many tasks of the batch an owner counts, and how many have ended.
func (s *shell) wantMembers(t *testing.T, o *partition.Owner, tasks, completed int64, complete bool) {
	t.Helper()
	got, err := batches.Count(t.Context(), o, s.world, &rpcv1.CountBatchRequest{Domain: "shop", BatchId: "night", MadeMs: made})
	testkit.NoError(t, err)
	if got.Tasks != tasks || got.Ends.Completed != completed || got.Complete != complete {
		t.Errorf("%v, want %d tasks, %d of them completed, complete %v", got, tasks, completed, complete)
	}
}

// TestMembersAreCountedOnce, and their ends: those that wait for a time, too, and not again when they come back. An owner that takes over counts the same, with a snapshot
// between or without. Batches of other times or domains have counts of their own.
func TestMembersAreCountedOnce(t *testing.T) {
	for name, rest := range map[string]time.Duration{"from the log": 0, "from a snapshot": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *shell) {
				s.works(logv1.EventKind_EVENT_KIND_COMPLETED)
				o, stop := ready(s.deps("a"))
				later, other := member(3), member(4)
				later.DueAtMs, other.BatchMadeMs = time.Now().Add(time.Minute).UnixMilli(), made+1
				s.submit(3, member(1), member(2), other)
				s.submit(ids.LaneLater, later)
				s.wantMembers(t, o, 3, 2, true)
				time.Sleep(rest)
				testkit.Check(t, stop())
				s.submit(3, member(5))
				next := s.serves(s.deps("b"))
				time.Sleep(time.Second)
				s.wantMembers(t, next, 4, 3, true)
				back := member(3)
				back.Parkings = 1
				s.submit(3, back)
				s.wantMembers(t, next, 4, 4, true)
				_, err := batches.Count(t.Context(), next, s.world, &rpcv1.CountBatchRequest{Domain: "shop", BatchId: "night", MadeMs: made, Forget: true})
				testkit.NoError(t, err)
				s.wantMembers(t, next, 0, 0, true)
			})
		})
	}
}

// TestMembersInABacklogAreNotCountedSoFar: the count says that it is not complete, until they are admitted.
func TestMembersInABacklogAreNotCountedSoFar(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		d.Config.WindowTasks = 10
		o := s.serves(d)
		for n := range uint64(10) {
			s.submit(3, task(newID(100+n), "shop"))
		}
		s.submit(3, member(1))
		s.submit(3, member(2))
		s.wantMembers(t, o, 0, 0, false)
		s.works(logv1.EventKind_EVENT_KIND_COMPLETED)
		for n := range uint64(10) {
			tr := ids.Trigger{ID: newID(100 + n), Position: ids.NewPosition(n+1, 3), Version: 1}
			s.worker(tr)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		s.wantMembers(t, o, 2, 2, true)
	})
}

// TestABacklogOfOneLaneIsSeen, though the last of the members came in by another one.
func TestABacklogOfOneLaneIsSeen(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		d.Config.WindowTasks = 10
		o := s.serves(d)
		for n := range uint64(10) {
			s.submit(3, task(newID(100+n), "shop"))
		}
		s.submit(3, member(1))
		s.submit(1, member(2))
		s.wantMembers(t, o, 1, 0, false)
	})
}
