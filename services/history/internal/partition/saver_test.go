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
	"github.com/yardmaster-io/yardmaster/services/history/internal/gauges"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// deaf stores checkpoints and does not hear of it: each save that lost picks ends with err.
type deaf struct {
	partition.Checkpoints
	err   error
	saves int
	lost  func(save int) bool
}

func (d *deaf) Save(ctx context.Context, cp *logv1.Checkpoint, revision uint64) (uint64, error) {
	next, err := d.Checkpoints.Save(ctx, cp, revision)
	if d.saves++; err == nil && d.lost(d.saves) {
		return 0, d.err
	}
	return next, err
}

// TestAStoredCheckpointThatIsNotAcknowledged does not end its owner, whether the answer is lost
// or a repetition meets the owner's own write; the lease is kept, and what comes is served
// (R22, R71).
func TestAStoredCheckpointThatIsNotAcknowledged(t *testing.T) {
	for name, answer := range map[string]error{"lost": context.DeadlineExceeded, "repeated": partition.ErrTakenOver} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t)
				checkpoints := &deaf{Checkpoints: l.world, err: answer, lost: func(save int) bool { return save%4 == 2 }}
				l.change = func(d *partition.Deps) { d.Checkpoints, d.Config.SnapshotEvery = checkpoints, 5*time.Second }
				o, ended, stop := l.run("deaf")
				<-o.Ready()
				for n := range uint64(20) {
					id := ids.NewTaskID(time.Now(), 0, n+1)
					seq := l.world.AppendSubmit(3, submitted(t, id))
					synctest.Wait()
					l.world.SendEvents(l.encoded(&logv1.EventBatch{ReplyTo: "asker", Events: []*logv1.Event{l.grab(id, seq)}}))
					select {
					case v := <-l.verdict:
						if v.Verdicts[0].Code != "" {
							t.Fatalf("%v", v)
						}
					case err := <-ended:
						t.Fatalf("the owner ended after %d saves: %v", checkpoints.saves, err)
					case <-time.After(time.Minute):
						t.Fatalf("grab %d is not answered after %d saves", n, checkpoints.saves)
					}
					time.Sleep(time.Second)
				}
				before := l.world.Checkpoint()
				testkit.NoError(t, stop())
				if before.Epoch != 1 || before.Owner != "deaf" || before.Snapshot == nil {
					t.Errorf("the checkpoint stayed behind: %v", before)
				}
			})
		})
	}
}

// TestAClaimThatIsNotAcknowledged: an owner knows its own claim again.
func TestAClaimThatIsNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.change = func(d *partition.Deps) {
			d.Checkpoints = &deaf{Checkpoints: l.world, err: partition.ErrTakenOver, lost: func(save int) bool { return save == 1 }}
		}
		o, ended, stop := l.run("deaf")
		select {
		case <-o.Ready():
		case err := <-ended:
			t.Fatalf("the owner ended: %v", err)
		}
		testkit.Check(t, stop())
	})
}

// TestI12AnotherOwnersCheckpointEndsTheOwner, even if it is of the same name: the epoch tells.
func TestI12AnotherOwnersCheckpointEndsTheOwner(t *testing.T) {
	for _, node := range []string{"first", "second"} {
		synctest.Test(t, func(t *testing.T) {
			l := newLine(t)
			first, ended, _ := l.run("first")
			<-first.Ready()
			synctest.Wait() // its checkpoint is saved
			_, revision, err := l.world.Load(t.Context())
			if err == nil {
				_, err = l.world.Save(t.Context(), &logv1.Checkpoint{Epoch: 2, Owner: node, Save: 1}, revision)
			}
			testkit.NoError(t, err)
			if err := end(ended); !errors.Is(err, partition.ErrTakenOver) {
				t.Errorf("the owner ended with %v", err)
			}
		})
	}
}

// TestTheAgeOfTheSnapshotIsReported: when it was saved, and how much of the log follows. The next owner has saved none, and has read what follows.
func TestTheAgeOfTheSnapshotIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		var reported atomic.Pointer[gauges.Saved]
		d := s.deps("a")
		d.Report = func(r *gauges.Report) { reported.Store(&r.Saved) }
		_, stop := ready(d)
		s.submit(3, task(newID(1), "shop"))
		time.Sleep(d.Config.SnapshotEvery + time.Second)
		saved := *reported.Load()
		if age := time.Duration(time.Now().UnixMilli()-saved.SavedAtMS) * time.Millisecond; age > 2*d.Config.SnapshotEvery || saved.UnsavedBytes > 100 {
			t.Errorf("saved %v ago, %d bytes follow", age, saved.UnsavedBytes)
		}
		s.submit(3, task(newID(2), "shop"))
		time.Sleep(time.Second)
		if later := *reported.Load(); later.SavedAtMS != saved.SavedAtMS || later.UnsavedBytes <= saved.UnsavedBytes {
			t.Errorf("reported %+v, then %+v", saved, later)
		}
		testkit.NoError(t, stop())
		d.Node = "b"
		s.serves(d)
		time.Sleep(time.Second)
		if next := *reported.Load(); next.SavedAtMS != 0 || next.UnsavedBytes <= saved.UnsavedBytes {
			t.Errorf("the next owner reports %+v", next)
		}
	})
}
