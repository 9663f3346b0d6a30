package partition_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// slowFence lets a lease run out between the claim and the first record that is replayed.
type slowFence struct{ partition.TimerStore }

func (f slowFence) Fence(ctx context.Context, batch []byte) error {
	time.Sleep(3 * time.Second)
	return f.TimerStore.Fence(ctx, batch)
}

// TestATakeoverWithoutALeaseLosesNoRecord: R11. The lease is over when the first record is
// offered. It is taken once a checkpoint is saved, and so is all that comes while the
// replay goes on, once.
func TestATakeoverWithoutALeaseLosesNoRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		const tasks = 300
		submit := func(from uint64) {
			for n := range uint64(tasks / 3) {
				s.submit(ids.Lane(n%ids.Lanes), task(newID(from+n), "shop"))
			}
		}
		_, stop := ready(s.deps("a"))
		submit(0)
		time.Sleep(3 * time.Second)
		d := s.deps("b")
		d.TimerStore = slowFence{s.world}
		s.mu.Lock()
		s.works(logv1.EventKind_EVENT_KIND_COMPLETED)
		s.mu.Unlock()
		next, stopNext := run(d)
		time.Sleep(time.Second)
		submit(tasks)
		<-next.Ready()
		submit(2 * tasks)
		time.Sleep(10 * time.Second)
		if err := stop(); !errors.Is(err, partition.ErrTakenOver) {
			t.Errorf("the first owner ended with %v", err)
		}
		testkit.Check(t, stopNext())
		s.onceArchived(tasks)
	})
}

// onceArchived checks how many tasks are in the archive, each of them once.
func (s *shell) onceArchived(want int) {
	s.t.Helper()
	all := s.archived()
	for id, n := range all {
		if n != 1 {
			s.t.Errorf("%s is archived %d times", id, n)
		}
	}
	if len(all) != want {
		s.t.Errorf("%d of %d tasks are archived", len(all), want)
	}
}

// TestAnOwnerOvertakenInItsWritesLeavesNothingUndone: R24, R27. Jobs of all kinds are under way, and
// fail, when another owner comes. It stores each once.
func TestAnOwnerOvertakenInItsWritesLeavesNothingUndone(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		s.works(logv1.EventKind_EVENT_KIND_COMPLETED)
		_, stop := ready(s.deps("a"))
		s.world.FailWrites(true)
		const tasks = 200
		for n := range uint64(tasks) {
			r := task(newID(n), "shop")
			if n%2 == 0 {
				r.DueAtMs = time.Now().Add(time.Hour).UnixMilli()
			}
			s.submit(3, r)
		}
		time.Sleep(20 * time.Second)
		go func() {
			time.Sleep(3 * time.Second)
			s.world.FailWrites(false)
		}()
		d := s.deps("b")
		d.TimerStore = retryFence{s.world}
		_, stopNext := ready(d)
		time.Sleep(20 * time.Second)
		if err := stop(); !errors.Is(err, partition.ErrTakenOver) {
			t.Errorf("the first owner ended with %v", err)
		}
		s.onceArchived(tasks / 2)
		if n := len(s.world.Fire(time.Now().Add(2 * time.Hour).UnixMilli())); n != tasks/2 {
			t.Errorf("%d of %d tasks wait", n, tasks/2)
		}
		testkit.Check(t, stopNext())
	})
}

// retryFence repeats a fence until it is stored, as the process that runs an owner repeats takeovers.
type retryFence struct{ partition.TimerStore }

func (f retryFence) Fence(ctx context.Context, batch []byte) error {
	for f.TimerStore.Fence(ctx, batch) != nil {
		time.Sleep(time.Second)
	}
	return nil
}

// brokenArchive files nothing while it is broken.
type brokenArchive struct {
	partition.Archive
	broken *atomic.Bool
}

func (a brokenArchive) File(ctx context.Context, tasks []*taskstate.Task, last uint64) (uint64, error) {
	if a.broken.Load() {
		return 0, errors.New("no quorum")
	}
	return a.Archive.File(ctx, tasks, last)
}

// TestI12_AWriteIsNotRepeatedWithoutALease: a newer owner may be there, and it has its fence. With a lease it is repeated.
func TestI12_AWriteIsNotRepeatedWithoutALease(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		s.works(logv1.EventKind_EVENT_KIND_COMPLETED)
		d := s.deps("a")
		var broken atomic.Bool
		checkpoints := &brokenCheckpoints{Checkpoints: d.Checkpoints}
		d.Checkpoints, d.Archive = checkpoints, brokenArchive{d.Archive, &broken}
		s.serves(d)
		broken.Store(true)
		s.submit(3, task(newID(1), "shop"))
		time.Sleep(10 * time.Second) // it has ended, and cannot be filed
		checkpoints.broken.Store(true)
		time.Sleep(2 * replica.LeaseFor)
		broken.Store(false)
		time.Sleep(10 * time.Second)
		s.onceArchived(0)
		checkpoints.broken.Store(false)
		time.Sleep(10 * time.Second)
		s.onceArchived(1)
	})
}

// rivalArchive files each task a moment before its owner does, as an owner did that was overtaken.
type rivalArchive struct {
	partition.Archive
	filed map[ids.TaskID]bool
}

func (a rivalArchive) File(ctx context.Context, tasks []*taskstate.Task, last uint64) (uint64, error) {
	for i, t := range tasks {
		if i%2 == 0 && !a.filed[t.ID] {
			a.filed[t.ID] = true
			at, err := a.Last(ctx)
			if err != nil {
				return 0, err
			}
			if _, err := a.Archive.File(ctx, []*taskstate.Task{t}, at); err != nil {
				return 0, err
			}
		}
	}
	return a.Archive.File(ctx, tasks, last)
}

// TestARivalInTheArchiveDoublesNothing: R27. Another owner files some of the job first.
func TestARivalInTheArchiveDoublesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		s.works(logv1.EventKind_EVENT_KIND_COMPLETED)
		s.archive = rivalArchive{s.archive, map[ids.TaskID]bool{}}
		s.serves(s.deps("a"))
		for n := range uint64(100) {
			s.submit(3, task(newID(n), "shop"))
		}
		time.Sleep(time.Minute)
		s.onceArchived(100)
	})
}

// TestPoisonGoesToTheQuarantineAndTheRestGoesOn: R19.
func TestPoisonGoesToTheQuarantineAndTheRestGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		s.works(logv1.EventKind_EVENT_KIND_COMPLETED)
		s.world.AppendTurn([]byte("\xff\xff poison"))
		s.serves(s.deps("a"))
		s.world.AppendSubmit(3, []byte("\xff\xff poison"))
		s.world.SendEvents([]byte("\xff\xff poison")) // its owner keeps it out of the log
		bad := task(newID(1), "shop")
		bad.Id = bad.Id[:3]
		s.submit(3, bad, task(newID(2), "shop"))
		time.Sleep(10 * time.Second)
		s.onceArchived(1)
		s.mu.Lock()
		testkit.Equal(t, "records are in the quarantine", len(s.quarantined), 3)
		s.mu.Unlock()
	})
}

// TestATakeoverMissesNoMessage: a turn says which ones it has admitted, and the log lacks one. The next owner must not go on without it.
func TestATakeoverMissesNoMessage(t *testing.T) {
	for _, count := range []uint64{0, 1, 2} { // the first of them is lost; 0 = that is the last message of its lane
		inBubble(t, func(t *testing.T, s *shell) {
			_, stop := ready(s.deps("a"))
			lost := s.submit(3, task(newID(1), "shop"))
			for n := range max(1, count) - 1 {
				s.submit(3, task(newID(n+2), "shop"))
			}
			synctest.Wait()
			s.cancels("shop", newID(9)) // its turn has the admission
			synctest.Wait()
			if count > 0 {
				s.submit(3, task(newID(8), "shop"))
			}
			testkit.Check(t, stop())
			testkit.NoError(t, s.world.Forget(t.Context(), replica.Levels{Lanes: [ids.Lanes]uint64{3: lost}}))
			next, stopNext := run(s.deps("b"))
			time.Sleep(3 * time.Second)
			select {
			case <-next.Ready():
				t.Errorf("%d admitted: the next owner serves", count)
			default:
			}
			if err := stopNext(); !errors.Is(err, partition.ErrUnreadable) {
				t.Errorf("%d admitted: the next owner ended with %v", count, err)
			}
		})
	}
}

// TestAnUnknownVersionIsGivenUpLiveAndInATakeover: R21.
func TestAnUnknownVersionIsGivenUpLiveAndInATakeover(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		_, stop := ready(s.deps("a"))
		s.submit(3, task(newID(1), "shop"))
		time.Sleep(3 * time.Second)
		s.world.AppendTurn((&record.Turn{LogVersion: 1 << 20}).Append(nil))
		s.cancels("shop", newID(1)) // its turn meets the one that is there
		time.Sleep(3 * time.Second)
		if err := stop(); !errors.Is(err, partition.ErrUnreadable) {
			t.Errorf("the owner ended with %v", err)
		}
		next, stopNext := run(s.deps("b"))
		time.Sleep(3 * time.Second)
		select {
		case <-next.Ready():
			t.Error("the next owner serves")
		default:
		}
		if err := stopNext(); !errors.Is(err, partition.ErrUnreadable) {
			t.Errorf("the next owner ended with %v", err)
		}
	})
}
