package partition_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// I14: who asks for a task in brief, one of many, gets no payload and no events, wherever the task is.
func TestI14_ABriefAnswerIsShort(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		ended := newID(1)
		s.ended(ended)
		o := s.serves(s.deps("b"))
		ready := newID(2)
		s.submit(3, task(ready, "shop"))
		time.Sleep(time.Second)
		for what, id := range map[string][16]byte{"in memory": ready, "ended": ended} {
			for _, brief := range []bool{false, true} {
				var got *yardv1.Task
				o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: "shop", Brief: brief}, func(r *rpcv1.GetTaskResponse, err error) {
					testkit.Check(t, err)
					got = r.GetTask()
				})
				time.Sleep(time.Second)
				synctest.Wait()
				if got == nil || got.Type == "" || brief != (len(got.Events) == 0) {
					t.Errorf("%s, brief %v: %v", what, brief, got)
				}
			}
		}
	})
}
