package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"
)

// The log acknowledges a message when it may be too late, and this frontend gives up at that moment. The request is answered once.
func TestALateAcknowledgementAtTheEndIsAnsweredOnce(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		tick := make(chan time.Time, 2)
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			time.Sleep(tries.AliveFor)
			go func() { _ = r.Run.Drain(tick, 0) }()
			tick <- time.Now().Add(time.Second)
			<-r.Run.Base().Done()
			return true, nil
		}
		req := tasks(1)
		req.RequestId, req.Tries = ids.NewRequestID(time.Now()).String(), 1
		got := r.submitBy(t, req, time.Minute, 0)
		wantCode(t, (<-got).err, fault.Unknown)
		synctest.Wait()
		tick <- time.Now().Add(time.Minute)
		synctest.Wait()
		if len(got) > 0 {
			t.Errorf("it is answered again: %+v", <-got)
		}
	})
}
