package partition_test

import (
	"cmp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/clock"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestTimesAreThoseOfTheLog, whatever the client's clock put into the id and the frontend's into the due time: a task is submitted when the log stores
// it, and a delay counts from then. Nothing happens before that, though the owners' clocks are behind; an owner that reads the submit later decides alike.
func TestTimesAreThoseOfTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		behind, at := clock.New(), time.Now().UnixMilli()
		behind.Learn(time.Now().Add(-50*time.Millisecond), time.Now(), time.Now())
		s.works(logv1.EventKind_EVENT_KIND_COMPLETED)
		for n, node := range []string{"a", "b"} {
			id := ids.NewTaskID(time.Now().Add(-1500*time.Millisecond), 0, uint64(n))
			r := task(id, "shop")
			r.DueAtMs, r.DelayMs = time.Now().UnixMilli()-22+60_000, 60_000
			s.submit(ids.LaneLater, r)
			time.Sleep(time.Second)
			d := s.deps(node)
			d.Clock = behind
			_, stop := ready(d)
			time.Sleep(time.Second)
			due := at + 60_000
			if early := s.world.Fire(due - 1); len(early) > 0 {
				t.Errorf("due at %d, want %d", early[0].DueAtMs, due)
			}
			time.Sleep(time.Until(time.UnixMilli(due)))
			s.submit(3, s.world.Fire(due)...)
			time.Sleep(time.Second)
			testkit.NoError(t, stop())
			all := s.world.ArchivedTasks()
			if len(all) != n+1 {
				t.Fatalf("%d tasks are archived", len(all))
			}
			ascend := func(a, b *logv1.Step) int { return cmp.Compare(a.AtMs, b.AtMs) }
			if r := all[n]; r.DueAtMs != due || r.Steps[0].AtMs != at || len(r.Steps) != 5 || !slices.IsSortedFunc(r.Steps, ascend) {
				t.Errorf("stored at %d: %v", at, r)
			}
			at = time.Now().UnixMilli()
		}
	})
}

// TestASubmitFromTheFuturePullsNoTurnWithIt: the server's clock was an hour ahead when it stored it. What is asked for now must not count as made then.
func TestASubmitFromTheFuturePullsNoTurnWithIt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		d.Clock = clock.New()
		d.Clock.Learn(time.Now().Add(-time.Hour), time.Now(), time.Now())
		s.serves(d)
		r := task(newID(1), "shop")
		s.submit(3, r)
		s.event(&logv1.Event{Kind: logv1.EventKind_EVENT_KIND_CANCEL, TaskId: r.Id, Domain: "shop"})
		synctest.Wait()
		last, err := s.world.LastTurn(t.Context())
		testkit.NoError(t, err)
		turn, err := record.ReadTurn(last.Data)
		if ahead := time.UnixMilli(turn.At).Sub(d.Clock.Now()); err != nil || len(turn.Batches) != 1 || ahead > 2*time.Second {
			t.Errorf("the turn of the cancel counts as made %v ahead of now, %v", ahead, err)
		}
	})
}
