package partition_test

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI5_AnOvertakenTaskIsTriggeredAgain: a trigger is lost while its tasklist is
// busy, so that no poll is ever hungry. That younger tasks of its column are granted gives it away.
func TestI5_AnOvertakenTaskIsTriggeredAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		lost := newID(1)
		s.worker = func(tr ids.Trigger) {
			if tr.ID != lost { // the lost one is never grabbed
				s.event(outcome(tr, logv1.EventKind_EVENT_KIND_STARTED))
			}
		}
		_, stop := ready(s.deps("heal"))
		for n := range uint64(20) {
			id := lost
			if n > 0 {
				id = newID(n + 1)
			}
			s.submit(3, task(id, "shop"))
			time.Sleep(time.Second)
		}
		testkit.Check(t, stop())
		if s.triggered[lost] < 2 {
			t.Errorf("the overtaken task was triggered %d times", s.triggered[lost])
		}
		for id, n := range s.triggered {
			if id != lost && n > 1 {
				t.Errorf("%s was granted at once and triggered %d times", id, n)
			}
		}
	})
}

func submitted(t *testing.T, id ids.TaskID) []byte {
	return encoded(t, &logv1.Batch{Tasks: []*logv1.Record{task(id, "shop")}})
}
