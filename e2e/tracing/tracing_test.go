package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// whole is the life of a task that succeeds at once.
const whole = "submit append apply trigger wait match grab run complete"

func TestOneTaskIsOneTrace(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		ctx, order := w.tracer.Start(w.soon(), "order")
		id, err := w.client.Submit(ctx, yard.Task{Type: "ship", Tasklist: list})
		order.End()
		testkit.NoError(t, err)
		// It waits until somebody works, which its trace tells.
		testkit.Eventually(t, within, func() error {
			task, err := w.client.Wire().Get(w.soon(), id)
			if err == nil && task.State != yardv1.TaskState_TASK_STATE_READY {
				err = fmt.Errorf("the task is %s", task.State)
			}
			return err
		})
		ready := time.Now()
		w.work(nothing)
		testkit.NoError(t, testkit.Err(w.client.Wait(w.soon(), id)))

		sc := order.SpanContext()
		spans := w.spans(sc.TraceID(), "order "+whole)
		w.task(spans, sc.SpanID(), id)
		if why := spans["match"][0].Attrs["yardmaster.reason"]; !strings.HasPrefix(why, "no worker ") {
			t.Errorf("it waited for %q", why)
		}
		wait := spans["wait"][0]
		if wait.Start.After(ready) || wait.End.Before(ready.Truncate(time.Millisecond)) {
			t.Errorf("the wait is reported as %v to %v; it was over %v", wait.Start, wait.End, ready)
		}
		for _, pair := range [][2]string{{"submit", "apply"}, {"append", "apply"}, {"wait", "run"}, {"match", "grab"}, {"grab", "run"}, {"run", "complete"}} {
			if first, then := spans[pair[0]][0], spans[pair[1]][0]; then.End.Before(first.Start) {
				t.Errorf("%s ends before %s starts", pair[1], pair[0])
			}
		}
	})
}

// TestATaskThatStartsWithItsSubmit has one span in place of the way through matching.
func TestATaskThatStartsWithItsSubmit(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.work(nothing)
		testkit.Eventually(t, within, func() error { // a poll stays in the frontend soon after the worker's first one
			ctx, order := w.tracer.Start(w.soon(), "order")
			id, err := w.client.Submit(ctx, yard.Task{Type: "ship", Tasklist: list})
			order.End()
			testkit.NoError(t, err)
			testkit.NoError(t, testkit.Err(w.client.Wait(w.soon(), id)))
			sc := order.SpanContext()
			if !w.came(sc.TraceID(), "start", "grab") {
				return errors.New("the task went through matching")
			}
			w.task(w.spans(sc.TraceID(), "order submit append apply start run complete"), sc.SpanID(), id)
			return nil
		})
	})
}

// TestEachTaskOfABatchHasItsOwnTrace: one request, one log message, a trace each.
func TestEachTaskOfABatchHasItsOwnTrace(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.work(nothing)
		const n = 5
		var tasks []yard.Task
		var orders []trace.SpanContext
		for range n {
			_, order := w.tracer.Start(context.Background(), "order")
			order.End()
			orders = append(orders, order.SpanContext())
			tasks = append(tasks, yard.Task{
				Type: "ship", Tasklist: list, Traceparent: telemetry.FormatTraceparent(telemetry.FromSpan(order.SpanContext())),
			})
		}
		ids, err := w.client.SubmitMany(w.soon(), tasks)
		testkit.NoError(t, err)
		for i, order := range orders {
			w.task(w.spans(order.TraceID(), "order "+whole), order.SpanID(), ids[i])
		}
	})
}

// TestATraceOutlivesRetriesAndTheTimerStore: two attempts, and a stay in the timer
// store before the first: it is read twice.
func TestATraceOutlivesRetriesAndTheTimerStore(t *testing.T) {
	testkit.Slow(t, "waits for retries")
	everywhere(t, func(t *testing.T, w *world) {
		w.work(func(ctx context.Context, _ struct{}) (struct{}, error) {
			if yard.Info(ctx).Failures == 0 {
				return struct{}{}, errors.New("not yet")
			}
			return struct{}{}, nil
		})
		ctx, order := w.tracer.Start(w.soon(), "order")
		id, err := w.client.Submit(ctx, yard.Task{
			Type: "ship", Tasklist: list, Delay: 300 * time.Millisecond, Retry: &yard.RetryPolicy{InitialInterval: 50 * time.Millisecond},
		})
		order.End()
		testkit.NoError(t, err)
		spans := w.spans(order.SpanContext().TraceID(),
			"order submit append apply delay apply trigger wait match grab run fail trigger backoff wait match grab run complete")
		w.task(spans, order.SpanContext().SpanID(), id)
		equal(t, "the first attempt's status", spans["run"][0].Raw.GetStatus().GetMessage(), "not yet")
		equal(t, "its failure's status", spans["fail"][0].Raw.GetStatus().GetCode(), tracepb.Status_STATUS_CODE_ERROR)
		delay, backoff := spans["delay"][0], spans["backoff"][0]
		equal(t, "why it was delayed", delay.Attrs["yardmaster.reason"], "scheduled")
		equal(t, "why it backed off", backoff.Attrs["yardmaster.reason"], "failed: not yet")
		if lasted := delay.End.Sub(delay.Start); lasted < 200*time.Millisecond {
			t.Errorf("a delay of 300 ms is shown as %v", lasted)
		}
		if lasted := backoff.End.Sub(backoff.Start); lasted < 45*time.Millisecond { // less a tenth
			t.Errorf("a backoff of 50 ms is shown as %v", lasted)
		}
		for first, then := range map[string]string{"delay": "wait", "fail": "backoff"} {
			if spans[then][0].End.Before(spans[first][0].Start) {
				t.Errorf("%s ends before %s starts", then, first)
			}
		}
	})
}

// TestAnAttemptThatExpiresIsAnError: its worker says nothing, so history shows it.
func TestAnAttemptThatExpiresIsAnError(t *testing.T) {
	testkit.Slow(t, "waits for an attempt to expire")
	everywhere(t, func(t *testing.T, w *world) {
		ctx, order := w.tracer.Start(w.soon(), "order")
		id, err := w.client.Submit(ctx, yard.Task{Type: "ship", Tasklist: list, StartToClose: time.Second, Retry: &yard.RetryPolicy{MaxAttempts: 1}})
		order.End()
		testkit.NoError(t, err)
		w.pollOnce()
		spans := w.spans(order.SpanContext().TraceID(), "order submit append apply trigger wait match grab", "expired attempt")
		w.task(spans, order.SpanContext().SpanID(), id)
		expired := spans["expired attempt"][0]
		equal(t, "status", expired.Raw.GetStatus().GetCode(), tracepb.Status_STATUS_CODE_ERROR)
		if lasted := expired.End.Sub(expired.Start); lasted < time.Second {
			t.Errorf("a time-out of 1 s is shown as %v", lasted)
		}
	})
}

// TestUnsampledTasksHaveNoSpans, and pass their context on all the same.
func TestUnsampledTasksHaveNoSpans(t *testing.T) {
	testkit.Slow(t, "waits for spans that do not come")
	everywhere(t, func(t *testing.T, w *world) {
		const unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
		seen := make(chan trace.SpanContext, 1)
		w.work(func(ctx context.Context, _ struct{}) (struct{}, error) {
			if yard.Info(ctx).Priority == 5 {
				seen <- trace.SpanContextFromContext(ctx)
			}
			return struct{}{}, nil
		})
		testkit.NoError(t, testkit.Err(w.client.Submit(w.soon(), yard.Task{Type: "ship", Tasklist: list, Priority: 5, Traceparent: unsampled})))
		got := <-seen
		equal(t, "the handler's trace", got.TraceID().String(), "4bf92f3577b34da6a3ce929d0e0e4736")
		equal(t, "sampled", got.IsSampled(), false)

		// When a later task's spans are here, those of the first would be. It has one attempt, so it goes through matching.
		ctx, order := w.tracer.Start(w.soon(), "order")
		testkit.NoError(t, testkit.Err(yard.Run[struct{}](ctx, w.client, yard.Task{Type: "ship", Tasklist: list, Retry: &yard.RetryPolicy{MaxAttempts: 1}})))
		order.End()
		w.spans(order.SpanContext().TraceID(), "order "+whole)
		w.spans(got.TraceID(), "")
	})
}
