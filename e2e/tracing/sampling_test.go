package tracing_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/schedules"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// sampling sets the share of the domain's traces that are recorded, and waits until it counts.
func (w *world) sampling(ratio float64) {
	w.t.Helper()
	testkit.NoError(w.t, testkit.Err(w.client.Admin().PutDomain(w.soon(), yard.Domain{Name: domain, TraceRatio: &ratio})))
	testkit.Eventually(w.t, within, func() error {
		id, err := w.client.Submit(w.soon(), yard.Task{Type: "probe", Tasklist: list})
		if err != nil {
			return err
		}
		if traced := w.traceOf(id).IsValid(); traced != (ratio > 0) {
			return fmt.Errorf("task %s is traced: %v, with a ratio of %v", id, traced, ratio)
		}
		return nil
	})
}

// traceOf returns the trace context of a task.
func (w *world) traceOf(id string) trace.SpanContext {
	w.t.Helper()
	task, err := w.client.Wire().Get(w.soon(), id)
	testkit.NoError(w.t, err)
	return telemetry.ToSpanContext(telemetry.ParseTraceparent(task.Traceparent))
}

// TestADomainSetsTheShareOfItsTraces: it decides for submits without a trace context, whatever the samplers of the services say.
func TestADomainSetsTheShareOfItsTraces(t *testing.T) {
	for _, c := range []struct {
		sampler string
		ratio   float64
		spans   string
	}{
		{"parentbased_always_on", 0, ""},
		{"parentbased_always_off", 1, whole},
	} {
		t.Run(c.sampler, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_SAMPLER", c.sampler)
			everywhere(t, func(t *testing.T, w *world) {
				w.sampling(c.ratio)
				id, err := w.client.Submit(w.soon(), yard.Task{Type: "ship", Tasklist: list, Retry: &yard.RetryPolicy{MaxAttempts: 1}})
				testkit.NoError(t, err)
				w.work(nothing)
				testkit.NoError(t, testkit.Err(w.client.Wait(w.soon(), id)))
				w.spans(w.traceOf(id).TraceID(), c.spans)
			})
		})
	}
}

// TestAFailureIsAlwaysTraced: attempts of an unsampled task that fail are in the trace of its submit, or in a trace with the id of the task.
func TestAFailureIsAlwaysTraced(t *testing.T) {
	testkit.Slow(t, "waits for attempts to fail")
	everywhere(t, func(t *testing.T, w *world) {
		w.sampling(0)
		unsampled := fmt.Sprintf("00-%032x-00f067aa0ba902b7-00", time.Now().UnixNano())
		fails := yard.Task{Type: "ship", Tasklist: list, Retry: &yard.RetryPolicy{MaxAttempts: 2, InitialInterval: 10 * time.Millisecond}}
		bare, err := w.client.Submit(w.soon(), fails)
		testkit.NoError(t, err)
		fails.Traceparent = unsampled
		brought, err := w.client.Submit(w.soon(), fails)
		testkit.NoError(t, err)
		w.work(func(context.Context, struct{}) (struct{}, error) { return struct{}{}, errors.New("no stock") })

		id, err := ids.ParseTaskID(bare)
		testkit.NoError(t, err)
		for task, trace := range map[string]string{bare: hex.EncodeToString(id[:]), brought: unsampled[3:35]} {
			spans := w.failures(trace, 2)
			for i, s := range spans {
				equal(t, "name", s.Name, "failed attempt")
				equal(t, "task", s.Attrs["yardmaster.task_id"], task)
				equal(t, "attempt", s.Attrs["yardmaster.attempt"], fmt.Sprint(i+1))
				equal(t, "state", s.Attrs["yardmaster.state"], []string{"backoff", "dead"}[i])
				equal(t, "status", s.Raw.GetStatus().GetCode(), tracepb.Status_STATUS_CODE_ERROR)
				equal(t, "why", s.Raw.GetStatus().GetMessage(), "the attempt failed: no stock")
			}
			if task == brought {
				equal(t, "parent", spans[0].ParentID, unsampled[36:52])
			}
		}
	})
}

// failures waits until a trace has so many spans, and returns them in the order of their attempts.
func (w *world) failures(trace string, n int) (all []signalkit.Span) {
	w.t.Helper()
	testkit.Eventually(w.t, within, func() (err error) {
		if all, err = w.collector.trace(trace); err == nil && len(all) != n {
			err = fmt.Errorf("trace %s has %d spans, want %d", trace, len(all), n)
		}
		return err
	})
	slices.SortFunc(all, func(a, b signalkit.Span) int { return a.Start.Compare(b.Start) })
	return all
}

// TestARunOfAScheduleIsATrace: it begins with the start of the run.
func TestARunOfAScheduleIsATrace(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		ran := make(chan trace.SpanContext, 1)
		all := schedules.Of(w.client)
		testkit.NoError(t, testkit.Err(all.Put(w.soon(), schedules.Schedule{
			Name: "nightly", Every: 24 * time.Hour, Task: yard.Task{Type: "ship", Tasklist: list, Retry: &yard.RetryPolicy{MaxAttempts: 1}},
		})))
		testkit.NoError(t, testkit.Err(all.Trigger(w.soon(), "nightly", "")))
		w.work(func(ctx context.Context, _ struct{}) (struct{}, error) {
			ran <- trace.SpanContextFromContext(ctx)
			return struct{}{}, nil
		})
		spans := w.spans((<-ran).TraceID(), "schedule apply trigger wait match grab run complete")
		begun := spans["schedule"][0]
		equal(t, "service", begun.Service, "yard-timer")
		equal(t, "parent", begun.ParentID, "")
		equal(t, "schedule", begun.Attrs["yardmaster.schedule"], "nightly")
		for name, s := range spans {
			if name != "schedule" {
				equal(t, name+": parent", s[0].ParentID, begun.SpanID)
			}
			equal(t, name+": task", s[0].Attrs["yardmaster.task_id"], begun.Attrs["yardmaster.task_id"])
		}
	})
}
