package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// TestAFailureIsAnsweredWithTheNextTry: in times from now on, since a worker's clock may be wrong; also where that has come already.
func TestAFailureIsAnsweredWithTheNextTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t)
		req := &yardv1.FailRequest{}
		for n := range uint64(3) {
			c := completion(1, n)
			req.Tasks = append(req.Tasks, &yardv1.Failure{TaskId: c.TaskId, Token: c.Token, Keep: n < 2, Failures: int32(n)})
		}
		answer, got := r.answers(t)
		r.Fail(r.call(), req, answer)
		synctest.Wait()
		sent := r.bus.sentEvents()
		for n, e := range sent[0].batch.Events {
			if e.Keep != (n < 2) || e.Keep && e.Failures != int32(n) || !e.Keep && e.Failures != 0 {
				t.Errorf("event %d: %v", n, e)
			}
		}
		now := time.Now().UnixMilli()
		data, err := (&logv1.VerdictBatch{RequestId: sent[0].id, Verdicts: []*logv1.EventVerdict{
			{RetryAtMs: now + 70, Failures: 1, LeaseUntilMs: now + 80, DeadlineMs: now + 90}, {RetryAtMs: now - 5, Failures: 2}, {},
		}}).MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		r.TakeVerdicts(data)
		all := verdicts(t, <-got)
		if v := all[0]; !v.Kept || v.RetryInMs != 70 || v.Failures != 1 || v.LeaseMs != 80 || v.TimeoutMs != 90 {
			t.Errorf("%v", v)
		}
		if v := all[1]; !v.Kept || v.RetryInMs != 0 || v.Failures != 2 {
			t.Errorf("its time has come: %v", v)
		}
		if v := all[2]; v.Kept || v.RetryInMs != 0 {
			t.Errorf("not kept: %v", v)
		}
	})
}
