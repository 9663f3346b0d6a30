package partition_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// TestOutcomesThatComeBeforeTheirSubmitWait: an outcome of an attempt that began with its submit waits until the owner has read that, for a moment at
// most. Any other event has its verdict at once: also one of an attempt whose submit was read, was filed apart or in another lane, and a grab.
func TestOutcomesThatComeBeforeTheirSubmitWait(t *testing.T) {
	const (
		grabs, succeeds = logv1.EventKind_EVENT_KIND_STARTED, logv1.EventKind_EVENT_KIND_COMPLETED
		fails, beats    = logv1.EventKind_EVENT_KIND_FAILED, logv1.EventKind_EVENT_KIND_HEARTBEAT
		releases        = logv1.EventKind_EVENT_KIND_RELEASED
		urgent, other   = ids.LaneFirst, ids.LaneFirst + 1
	)
	for name, c := range map[string]struct {
		kind   logv1.EventKind
		lane   ids.Lane
		shared bool
		// behind is how far its submit is behind the last one that the owner has read.
		behind uint64
		waits  bool
	}{
		"a success":                 {succeeds, urgent, true, 100, true},
		"a failure":                 {fails, urgent, true, 100, true},
		"a heartbeat":               {beats, urgent, true, 100, true},
		"a hand-back":               {releases, urgent, true, 100, true},
		"of the next message":       {succeeds, urgent, true, 1, true},
		"a grab":                    {grabs, urgent, true, 100, false},
		"of a message that is read": {succeeds, urgent, true, 0, false},
		"of a message apart":        {succeeds, urgent, false, 100, false},
		"of another lane":           {succeeds, other, true, 100, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *shell) {
				s.serves(s.deps("a"))
				id := newID(1)
				position := ids.NewPosition(s.submit(urgent, task(id, "shop"))+c.behind, c.lane)
				if c.shared {
					position = position.InShared()
				}
				absent := newID(2)
				verdicts := func() int {
					synctest.Wait()
					s.mu.Lock()
					defer s.mu.Unlock()
					return len(s.verdicts)
				}
				s.world.SendEvents(encoded(t, &logv1.EventBatch{ReplyTo: "asker", Events: []*logv1.Event{
					outcome(ids.Trigger{ID: id, Version: 9, Position: ids.NewPosition(1, urgent)}, succeeds),
					outcome(ids.Trigger{ID: absent, Version: 1, Position: position}, c.kind),
				}}))
				if waits := verdicts() == 0; waits != c.waits {
					t.Errorf("it waits: %t", waits)
				}
				time.Sleep(time.Second)
				if verdicts() == 0 {
					t.Error("it waits for longer than a second")
				}
			})
		})
	}
}
