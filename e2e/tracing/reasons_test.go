package tracing_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// reasonOf submits so many tasks, waits until they have ended, and returns why the last one waited, as its span `match` says.
func (w *world) reasonOf(n int, task yard.Task) (string, error) {
	var order signalkit.Span
	var tasks []yard.Task
	for range n {
		_, span := w.tracer.Start(context.Background(), "order")
		span.End()
		task.Traceparent = telemetry.FormatTraceparent(telemetry.FromSpan(span.SpanContext()))
		order.TraceID = span.SpanContext().TraceID().String()
		tasks = append(tasks, task)
	}
	ids, err := w.client.SubmitMany(w.soon(), tasks)
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		if err := testkit.Err(w.client.Wait(w.soon(), id)); err != nil {
			return "", err
		}
	}
	reason := ""
	testkit.Eventually(w.t, within, func() error {
		all, err := w.collector.trace(order.TraceID)
		if err != nil {
			return err
		}
		for _, s := range all {
			if s.Name == "match" || s.Name == "start" {
				reason = s.Attrs["yardmaster.reason"]
				return nil
			}
		}
		return fmt.Errorf("trace %s has no span match among %d", order.TraceID, len(all))
	})
	return reason, nil
}

// because submits tasks until the last one waited for what the pattern names: settings take effect within a second.
func (w *world) because(pattern string, n int, task yard.Task) {
	w.t.Helper()
	want := regexp.MustCompile(pattern)
	testkit.Eventually(w.t, within, func() error {
		got, err := w.reasonOf(n, task)
		if err == nil && !want.MatchString(got) {
			err = fmt.Errorf("the task waited for %q, want %s", got, pattern)
		}
		return err
	})
}

// TestAWaitHasItsReasons: a full limit, a rate, a pause, and no worker.
func TestAWaitHasItsReasons(t *testing.T) {
	testkit.Slow(t, "waits for settings to take effect")
	everywhere(t, func(t *testing.T, w *world) {
		w.work(func(ctx context.Context, _ struct{}) (struct{}, error) {
			select { // a run is long enough to hold up the next one
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			return struct{}{}, nil
		})
		one := yard.Task{Type: "ship", Tasklist: list}
		set := func(l yard.Tasklist) {
			l.Name = list
			testkit.NoError(t, testkit.Err(w.client.PutTasklist(w.soon(), l)))
		}
		set(yard.Tasklist{MaxConcurrency: 1})
		w.because(`limit \S+ \d`, 4, one)
		set(yard.Tasklist{Rate: yard.Rate{Tasks: 4, Burst: 1}})
		w.because(`rate \S+ \d`, 4, one)
		set(yard.Tasklist{})
		testkit.NoError(t, testkit.Err(w.client.Pause(w.soon(), yard.OfTasklist(list), yard.PauseOptions{For: 3 * time.Second})))
		w.because(`pause \S+ \d`, 1, one)
	})
}

// TestAWaitForTheOrderKeyIsASpan: the second task of a key has its turn when the first one has ended.
func TestAWaitForTheOrderKeyIsASpan(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		begun, end := make(chan struct{}, 2), make(chan struct{})
		w.work(func(context.Context, struct{}) (struct{}, error) {
			begun <- struct{}{}
			<-end
			return struct{}{}, nil
		})
		submit := func() (string, string) {
			ctx, order := w.tracer.Start(w.soon(), "order")
			id, err := w.client.Submit(ctx, yard.Task{Type: "ship", Tasklist: list, OrderKey: "cart 7"})
			order.End()
			testkit.NoError(t, err)
			return id, order.SpanContext().TraceID().String()
		}
		submit()
		<-begun
		id, trace := submit()
		time.AfterFunc(50*time.Millisecond, func() { close(end) })
		testkit.NoError(t, testkit.Err(w.client.Wait(w.soon(), id)))
		testkit.Eventually(t, within, func() error {
			all, err := w.collector.trace(trace)
			for _, s := range all {
				if s.Name == "order key" {
					equal(t, "its reason", s.Attrs["yardmaster.reason"], "earlier tasks of the order key")
					return nil
				}
			}
			return fmt.Errorf("no span of the order key among %d (%v)", len(all), err)
		})
	})
}
