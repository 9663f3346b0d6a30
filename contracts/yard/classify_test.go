package yard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

var errGone, errBusy = errors.New("no such invoice"), errors.New("the partner is busy")

// byTask decides by the error and by the task.
func byTask(a *Attempt, err error) error {
	switch {
	case errors.Is(err, errGone):
		return NonRetryable(err)
	case errors.Is(err, errBusy) && a.Type == "x" && a.Number == 1:
		return RetryAfter(err, time.Minute)
	}
	return err
}

// What is reported of an error: by the handler's own word, else by its classifiers, else by those of the worker, else by the policy.
func TestClassifiers(t *testing.T) {
	never := func(why string) Classifier {
		return func(_ *Attempt, err error) error { return NonRetryable(fmt.Errorf("%s: %w", why, err)) }
	}
	panics := func(*Attempt, error) error { panic("out of cheese") }
	forgets := func(*Attempt, error) error { return nil }
	explains := func(_ *Attempt, err error) error { return fmt.Errorf("explained: %w", err) }
	cases := map[string]struct {
		err            error
		worker, handle []Classifier
		message        string
		errorType      string
		final          bool
		delay          time.Duration
		snooze         bool
	}{
		"none":                          {err: errGone, message: "no such invoice", errorType: "error"},
		"not retried":                   {err: fmt.Errorf("fetch: %w", errGone), handle: []Classifier{byTask}, message: "fetch: no such invoice", errorType: "error", final: true},
		"retried later":                 {err: errBusy, handle: []Classifier{byTask}, message: "the partner is busy", errorType: "error", delay: time.Minute},
		"by the policy":                 {err: errors.New("no route"), handle: []Classifier{byTask}, message: "no route", errorType: "error"},
		"by the worker":                 {err: errGone, worker: []Classifier{byTask}, message: "no such invoice", errorType: "error", final: true},
		"the handler before worker":     {err: errBusy, handle: []Classifier{byTask}, worker: []Classifier{never("worker")}, message: "the partner is busy", errorType: "error", delay: time.Minute},
		"the worker after handler":      {err: errors.New("no route"), handle: []Classifier{byTask}, worker: []Classifier{never("worker")}, message: "worker: no route", errorType: "error", final: true},
		"the first that decides":        {err: errGone, handle: []Classifier{explains, byTask, never("third")}, message: "explained: no such invoice", errorType: "error", final: true},
		"the handler's own word":        {err: RetryAfter(errGone, time.Second), handle: []Classifier{byTask}, worker: []Classifier{never("worker")}, message: "no such invoice", errorType: "error", delay: time.Second},
		"it is put off":                 {err: fmt.Errorf("pay: %w", Snooze(time.Hour, "not yet")), worker: []Classifier{never("worker")}, message: "pay: not yet", delay: time.Hour, snooze: true},
		"put off for no time":           {err: Snooze(0, "not yet"), message: "not yet", delay: time.Millisecond, snooze: true},
		"put off, and a failure":        {err: RetryAfter(Snooze(time.Hour, "not yet"), time.Minute), message: "not yet", errorType: "error", delay: time.Minute},
		"put off, and final":            {err: NonRetryable(Snooze(time.Hour, "not yet")), message: "not yet", errorType: "error", final: true},
		"its own word, deep":            {err: fmt.Errorf("pay: %w", NonRetryable(errBusy)), handle: []Classifier{byTask}, message: "pay: the partner is busy", errorType: "error", final: true},
		"panics by their type":          {handle: []Classifier{NonRetryableTypes("bad_card", TypePanic)}, message: "panic: out of luck", errorType: "panic", final: true},
		"errors by their type":          {err: ownType{}, worker: []Classifier{NonRetryableTypes("card_declined")}, message: "declined", errorType: "card_declined", final: true},
		"another type":                  {err: fault.New("X", "y"), worker: []Classifier{NonRetryableTypes("card_declined")}, message: "X: y", errorType: "fault.Error"},
		"errors that match":             {err: fmt.Errorf("fetch: %w", errGone), worker: []Classifier{NonRetryableErrors(errBusy, errGone)}, message: "fetch: no such invoice", errorType: "error", final: true},
		"errors that do not":            {err: errors.New("no route"), worker: []Classifier{NonRetryableErrors(errBusy, errGone)}, message: "no route", errorType: "error"},
		"a classifier that panics":      {err: errGone, handle: []Classifier{panics, byTask}, message: "no such invoice", errorType: "error", final: true},
		"a classifier without an error": {err: errGone, handle: []Classifier{forgets, byTask}, message: "no such invoice", errorType: "error", final: true},
		"a result that is too large":    {err: NonRetryable(typedError{errBusy, TypeBadResult}), handle: []Classifier{byTask}, message: "the partner is busy", errorType: "bad_result", final: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newBench(WithClassifier(c.worker...))
				handle := failing(c.err)
				if c.err == nil {
					handle = func(context.Context, *Attempt) (Payload, error) { panic("out of luck") }
				}
				b.worker.HandleFunc("x", handle, WithHandlerClassifier(c.handle...))
				b.start(granted("x", 1)...)
				synctest.Wait()
				b.finish(t)
				f := b.engine.failed[0]
				if !strings.HasPrefix(f.Message, c.message) || f.ErrorType != c.errorType || f.NonRetryable != c.final || f.Snooze != c.snooze || f.DelayMs != c.delay.Milliseconds() {
					t.Errorf("got %v", f)
				}
			})
		})
	}
}

// The classifiers of a worker are for the handler of all other types too, and a task that completes asks none.
func TestClassifiersOfTheRest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithClassifier(byTask))
		b.worker.HandleRest(func(_ context.Context, a *Attempt) (Payload, error) {
			if a.TaskID == "x-0" {
				return NewPayload("done")
			}
			return Payload{}, errBusy
		}, WithHandlerClassifier(func(a *Attempt, err error) error {
			if a.TaskID == "x-0" {
				t.Errorf("it is asked of %v", err)
			}
			if a.TaskID == "x-1" {
				return NonRetryable(err)
			}
			return err
		}))
		b.start(granted("x", 3)...)
		synctest.Wait()
		b.finish(t)
		got := map[string]string{}
		for _, f := range b.engine.failed {
			got[f.TaskId] = fmt.Sprint(f.NonRetryable, f.DelayMs)
		}
		if len(b.engine.completed) != 1 || len(got) != 2 || got["x-1"] != "true 0" || got["x-2"] != "false 60000" {
			t.Errorf("completed %v, failed %v", b.engine.completed, got)
		}
	})
}

// An attempt that is cancelled, or handed back since the worker stops, asks no classifier: what follows does not depend on its error.
func TestNoClassifierWhereTheErrorDecidesNothing(t *testing.T) {
	for cause, end := range map[error]func(*bench){
		ErrCancelled: func(b *bench) {
			b.engine.locked(func() {
				b.engine.script = func(verb string, _ int, ids []string) ([]*yardv1.Verdict, error) {
					all := verdictsOf(ids, codeOK)
					for _, v := range all {
						v.CancelRequested = true
					}
					if verb != "heartbeat" {
						all = nil
					}
					return all, nil
				}
			})
		},
		ErrStopping: func(b *bench) { b.stop() },
	} {
		t.Run(cause.Error(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newBench(WithDrainTimeout(time.Second), WithClassifier(func(_ *Attempt, err error) error {
					t.Errorf("it is asked of %v", err)
					return RetryAfter(err, time.Hour)
				}))
				var ended error
				b.worker.HandleFunc("x", func(ctx context.Context, _ *Attempt) (Payload, error) {
					<-ctx.Done()
					ended = context.Cause(ctx)
					return Payload{}, ctx.Err()
				})
				b.start(granted("x", 1)...)
				synctest.Wait()
				end(b)
				time.Sleep(time.Minute)
				b.finish(t)
				if f := b.engine.failed[0]; ended != cause || f.DelayMs != 0 || f.NonRetryable != (cause == ErrCancelled) || f.NotStarted != (cause == ErrStopping) {
					t.Errorf("it ended with %v, reported as %v", ended, f)
				}
			})
		})
	}
}

func TestANilClassifierIsAnErrorOfRun(t *testing.T) {
	b := newBench(WithClassifier(nil))
	b.worker.HandleFunc("x", failing(errGone), WithHandlerClassifier(byTask, nil))
	err := b.worker.Run(t.Context())
	if fault.CodeOf(err) != fault.InvalidArgument || !strings.Contains(err.Error(), "a classifier is nil") || !strings.Contains(err.Error(), "a classifier of a handler is nil") {
		t.Errorf("got %v", err)
	}
}
