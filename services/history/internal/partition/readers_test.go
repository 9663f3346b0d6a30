package partition_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A message of any lane is taken when it comes, not at the next beat.
func TestEachLaneIsReadAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		s.serves(s.deps("a"))
		for n := range uint64(10 * ids.Lanes) {
			id, lane := newID(n+1), ids.Lane(n%ids.Lanes)
			s.submit(lane, task(id, "shop"))
			time.Sleep(30 * time.Millisecond)
			s.mu.Lock()
			if s.triggered[id] != 1 {
				t.Errorf("a task of lane %s was triggered %d times", lane, s.triggered[id])
			}
			s.mu.Unlock()
		}
	})
}

// stalled is a log that keeps the next turn back.
type stalled struct {
	partition.Log
	next chan struct{}
}

func (l stalled) Append(ctx context.Context, turn []byte, after uint64) (uint64, error) {
	<-l.next
	return l.Log.Append(ctx, turn, after)
}

// spoken counts the triggers of each message to matching.
type spoken struct {
	partition.Wire
	with func(triggered []ids.TaskID)
}

func (w spoken) Publish(subject string, data []byte) {
	var h logv1.Hints
	if subject == topology.Matching(0) && h.UnmarshalVT(data) == nil {
		var all []ids.TaskID
		for _, g := range h.Triggers {
			for i := range len(g.Triggers) / ids.TriggerBytes {
				all = append(all, ids.TriggerAt(g.Triggers, i).ID)
			}
		}
		w.with(all)
	}
	w.Wire.Publish(subject, data)
}

// I11: a flood has been read while a turn was stored. Another's task is triggered with the first thousand of its tasks, not behind all of them.
func TestI11_AFloodComesInInParts(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		log := stalled{d.Log, make(chan struct{})}
		mine, before := newID(1), -1
		flood, all := []*logv1.Record(nil), 0
		d.Log, d.Wire = log, spoken{d.Wire, func(triggered []ids.TaskID) {
			if all += len(triggered); slices.Contains(triggered, mine) {
				before = all - 1
			}
		}}
		o, stop := run(d)
		log.next <- struct{}{} // the claim
		<-o.Ready()
		s.event(&logv1.Event{Kind: logv1.EventKind_EVENT_KIND_CANCEL, TaskId: make([]byte, 16), Domain: "shop"})
		synctest.Wait()
		const messages, each = 8, 500
		for n := range uint64(messages * each) {
			if flood = append(flood, task(newID(n+2), "flood")); len(flood) == each {
				s.submitOf(3, "flood", flood...)
				flood = nil
			}
		}
		s.submitOf(1, "shop", task(mine, "shop"))
		synctest.Wait()
		close(log.next)
		synctest.Wait()
		if before < 0 || before > 1500 {
			t.Errorf("%d of the flood were triggered before", before)
		}
		testkit.Equal(t, "triggered", all, messages*each+1)
		testkit.NoError(t, stop())
	})
}
