package partition_test

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
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
