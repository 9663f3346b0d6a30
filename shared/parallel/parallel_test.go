package parallel

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestEachIsCalledOnceAndAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, most = 20, 3
		var called [n]atomic.Int64
		var now, atOnce atomic.Int64
		began := time.Now()
		err := Each(t.Context(), n, most, func(_ context.Context, i int) error {
			called[i].Add(1)
			atOnce.Store(max(atOnce.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return nil
		})
		if took := time.Since(began); err != nil || atOnce.Load() != most || took != 7*time.Second {
			t.Errorf("%v, %d at once, in %v", err, atOnce.Load(), took)
		}
		for i := range called {
			if called[i].Load() != 1 {
				t.Errorf("number %d was called %d times", i, called[i].Load())
			}
		}
	})
}

func TestAFailureEndsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := errors.New("the first")
		began, calls := time.Now(), atomic.Int64{}
		err := Each(t.Context(), 10, 2, func(ctx context.Context, i int) error {
			if calls.Add(1); i == 1 {
				time.Sleep(time.Second)
				return first
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, first) || calls.Load() > 3 || time.Since(began) != time.Second {
			t.Errorf("%v after %v, %d calls", err, time.Since(began), calls.Load())
		}
	})
}
