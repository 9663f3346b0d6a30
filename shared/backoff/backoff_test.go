package backoff

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestDelaysDoubleUpToTheLast(t *testing.T) {
	b := New(10, 35)
	for range 2 {
		for _, want := range []time.Duration{10, 20, 35, 35} {
			if d := b.Next(); d != want {
				t.Errorf("%d, want %d", d, want)
			}
		}
		b.Reset()
	}
}

func TestASleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		began, b := time.Now(), New(10*time.Second, time.Minute)
		if !b.Sleep(ctx) || time.Since(began) != 10*time.Second {
			t.Errorf("the first sleep was over after %v", time.Since(began))
		}
		if b.Sleep(ctx) || time.Since(began) != 25*time.Second {
			t.Errorf("the second sleep was over after %v", time.Since(began))
		}
		if Sleep(ctx, 0) && ctx.Err() == nil {
			t.Error("it slept on")
		}
	})
}
