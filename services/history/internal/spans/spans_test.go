package spans_test

import (
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/spans"
	"github.com/yardmaster-io/yardmaster/shared/clock"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// I14: the failures of unsampled tasks are shown, but a domain whose tasks all fail takes no more of the queue than its part.
func TestI14_FailuresOfADomainAreBounded(t *testing.T) {
	sink := signalkit.RunTraceSink(t)
	for _, setting := range sink.Env() {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
	tracing, err := telemetry.NewTracing(t.Context(), "yard-history", "one", nil)
	testkit.NoError(t, err)
	now := time.Now()
	m := spans.Maker{Tracing: tracing, Clock: clock.New()}
	failed := func(domain string, what int) replica.Traced {
		task := &taskstate.Task{ID: ids.NewTaskID(now, 0, 1), Domain: domain, State: taskstate.Dead, ErrMessage: "no disk"}
		return replica.Traced{What: what, Task: task, Since: now.UnixMilli()}
	}
	var fx replica.Effects
	for range 1000 {
		fx.Traced = append(fx.Traced, failed("flood", replica.TraceFailed))
	}
	undelivered := failed("shop", replica.TraceExpired)
	undelivered.Task.Steps = []taskstate.Step{{Kind: taskstate.StepHandedBack}}
	fx.Traced = append(fx.Traced, undelivered, failed("shop", replica.TraceFailed), failed("shop", replica.TraceExpired), failed("shop", replica.TraceApplied), failed("shop", replica.TraceGranted))
	m.Show(&fx)
	testkit.NoError(t, tracing.Shutdown(t.Context()))
	shown := map[string]int{}
	for _, s := range sink.Spans() {
		shown[s.Name+" of "+s.Attrs["yardmaster.domain"]]++
	}
	if flood := shown["failed attempt of flood"]; flood < 1 || flood > 100 { // 20 in a second
		t.Errorf("%d failures of a flood are shown", flood)
	}
	testkit.Equal(t, "those of another domain", []int{shown["failed attempt of shop"], shown["expired attempt of shop"], len(shown)}, []int{1, 1, 3})
}
