package yardtest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// An idle hour in fake time has few messages: they are what it costs.
func TestAnIdleHourIsQuiet(t *testing.T) {
	FakeTime(t, func(t *testing.T, e *Engine) {
		nc, err := e.host.stack.Connect("counts")
		testkit.NoError(t, err)
		defer nc.Close()
		var messages atomic.Int64
		testkit.NoError(t, testkit.Err(nc.Subscribe(">", func(*nats.Msg) { messages.Add(1) })))
		testkit.NoError(t, nc.Flush())
		<-time.After(time.Hour)
		if n := messages.Load(); n > 20 {
			t.Errorf("an idle hour has %d messages", n)
		}
	})
}
