package signs

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
)

// A worker that begins an attempt says at once that its signs come as usual, and they do; when it is idle again they come at the pace.
func TestSignsComeAsUsualWhileTheWorkerRunsSomething(t *testing.T) {
	defer pace.Slow(100)()
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Bool
		s, began := New(&yardv1.WorkerAlive{Worker: "w"}, 3*time.Second, time.Second), time.Now()
		type sign struct{ at, every time.Duration }
		var sent []sign
		send := func() error {
			sent = append(sent, sign{time.Since(began), time.Duration(s.Next(runs.Load(), false).EveryMs) * time.Millisecond})
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		go s.Run(ctx, send)
		time.Sleep(100 * time.Second)
		synctest.Wait()
		runs.Store(true)
		s.Begin(send)
		s.Begin(send) // it has said so
		time.Sleep(5 * time.Second)
		runs.Store(false)
		time.Sleep(time.Minute)
		stop()
		synctest.Wait()
		checktest.Equal(t, "signs", sent, []sign{
			{0, 5 * time.Minute}, {100 * time.Second, 3 * time.Second}, {103 * time.Second, 3 * time.Second}, {106 * time.Second, 5 * time.Minute},
		})
	})
}
