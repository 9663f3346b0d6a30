package yard

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

func TestTypedHandlerRoundTrip(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		var seen Attempt
		Handle(b.worker, "double", func(ctx context.Context, n int) (int, error) {
			seen = Info(ctx)
			return 2 * n, nil
		})
		b.start(granted("double", 3)[2])
		synctest.Wait()
		b.finish(t)
		if len(b.engine.completed) != 1 {
			t.Fatalf("completed %v, failed %v", b.engine.completed, b.engine.failed)
		}
		c := b.engine.completed[0]
		if c.TaskId != "double-2" || c.Token != "token-2" || string(c.Result.Data) != "4" {
			t.Errorf("got %v", c)
		}
		if seen.TaskID != "double-2" || seen.Domain != "shop" || seen.Number != 1 || seen.Deadline.IsZero() {
			t.Errorf("Info reported %+v", seen)
		}
	})
}

func TestHandlerFailures(t *testing.T) {
	cases := map[string]struct {
		handle    HandlerFunc
		errorType string
		message   string
		final     bool
		delayMS   int64
	}{
		"error":         {failing(errors.New("no route")), "error", "no route", false, 0},
		"own type":      {failing(fault.New(fault.NotFound, "gone")), "fault.Error", "NOT_FOUND: gone", false, 0},
		"non-retryable": {failing(NonRetryable(errors.New("bad address"))), "error", "bad address", true, 0},
		"final anyway":  {failing(NonRetryable(RetryAfter(errors.New("gone"), time.Minute))), "error", "gone", true, 0},
		"retry after":   {failing(RetryAfter(errors.New("busy"), 90*time.Second)), "error", "busy", false, 90_000},
		"panic":         {func(context.Context, *Attempt) (Payload, error) { panic("out of cheese") }, "panic", "panic: out of cheese\n", false, 0},
		"exit": {func(context.Context, *Attempt) (Payload, error) {
			runtime.Goexit()
			return Payload{}, nil
		}, "panic", "ended its goroutine", false, 0},
		"result not JSON": {func(context.Context, *Attempt) (Payload, error) {
			return Payload{Data: []byte("{")}, nil
		}, "bad_result", "valid JSON", true, 0},
		"result too large": {func(context.Context, *Attempt) (Payload, error) {
			return Payload{Data: make([]byte, payloadBytesMax+1), Binary: true}, nil
		}, "bad_result", "more than", true, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				b.worker.HandleFunc("x", c.handle)
				b.start(granted("x", 1)...)
				synctest.Wait()
				b.finish(t)
				if len(b.engine.failed) != 1 {
					t.Fatalf("%d failures, %d completions", len(b.engine.failed), len(b.engine.completed))
				}
				f := b.engine.failed[0]
				if f.ErrorType != c.errorType || !strings.Contains(f.Message, c.message) || f.NonRetryable != c.final || f.DelayMs != c.delayMS || f.NotStarted {
					t.Errorf("got %v", f)
				}
			})
		})
	}
}

func failing(err error) HandlerFunc {
	return func(context.Context, *Attempt) (Payload, error) { return Payload{}, err }
}

func TestBadInputIsNotRetried(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		Handle(b.worker, "x", func(context.Context, []string) (struct{}, error) { return struct{}{}, nil })
		b.start()
		b.engine.push(granted("x", 1)...) // a number, where a list is wanted
		synctest.Wait()
		b.finish(t)
		if f := b.engine.failed[0]; f.ErrorType != TypeBadInput || !f.NonRetryable {
			t.Errorf("got %v", f)
		}
	})
}

func TestConcurrencyIsNeverExceeded(t *testing.T) {
	const concurrency, tasks = 7, 500
	inBubble(t, func(t *testing.T) {
		b := newBench(WithConcurrency(concurrency))
		b.engine.latency = time.Millisecond
		var running, most atomic.Int32
		Handle(b.worker, "x", func(ctx context.Context, n int) (struct{}, error) {
			now := running.Add(1)
			defer running.Add(-1)
			for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
			}
			time.Sleep(time.Duration(1+n%5) * time.Millisecond)
			return struct{}{}, nil
		})
		b.engine.push(granted("x", tasks)...)
		b.start()
		time.Sleep(10 * time.Second)
		b.finish(t)
		if len(b.engine.completed) != tasks {
			t.Errorf("%d of %d completed", len(b.engine.completed), tasks)
		}
		checktest.Equal(t, "ran at once", most.Load(), concurrency)
		if asked := slices.Max(b.engine.polls); asked > concurrency {
			t.Errorf("a poll asked for %d tasks", asked)
		}
	})
}

func TestOutcomesShareRequests(t *testing.T) {
	const tasks = 400
	inBubble(t, func(t *testing.T) {
		b := newBench(WithConcurrency(tasks))
		b.engine.latency = 5 * time.Millisecond
		Handle(b.worker, "x", func(context.Context, int) (struct{}, error) {
			time.Sleep(time.Millisecond) // all together
			return struct{}{}, nil
		})
		b.engine.push(granted("x", tasks)...)
		b.start()
		time.Sleep(time.Second)
		b.finish(t)
		if n := len(b.engine.requests["complete"]); len(b.engine.completed) != tasks || n > 2 {
			t.Errorf("%d completions in %d requests: %v", len(b.engine.completed), n, b.engine.requests["complete"])
		}
	})
}

func TestOutcomesAreRepeated(t *testing.T) {
	passing := map[string]func(ids []string) ([]*yardv1.Verdict, error){
		"request unavailable": func([]string) ([]*yardv1.Verdict, error) { return nil, fault.New(fault.Unavailable, "nobody") },
		"answer lost":         func([]string) ([]*yardv1.Verdict, error) { return nil, fault.New(fault.Unknown, "lost") },
		"verdict unknown":     func(ids []string) ([]*yardv1.Verdict, error) { return verdictsOf(ids, "UNKNOWN"), nil },
		"verdict unavailable": func(ids []string) ([]*yardv1.Verdict, error) { return verdictsOf(ids, "UNAVAILABLE"), nil },
	}
	for name, answer := range passing {
		t.Run(name, func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				b.engine.script = func(verb string, call int, ids []string) ([]*yardv1.Verdict, error) {
					if verb == "complete" && call < 4 {
						return answer(ids)
					}
					return nil, nil
				}
				b.worker.HandleFunc("x", func(context.Context, *Attempt) (Payload, error) { return Payload{}, nil })
				b.start(granted("x", 2)...)
				time.Sleep(10 * time.Second)
				b.finish(t)
				if len(b.engine.completed) != 2 {
					t.Errorf("%d completed", len(b.engine.completed))
				}
			})
		})
	}
}

// TestOutcomeIsRepeatedPastTheDeadline, since the engine ends no attempt while its log stands still; and not forever.
func TestOutcomeIsRepeatedPastTheDeadline(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.engine.script = func(verb string, _ int, ids []string) ([]*yardv1.Verdict, error) {
			if verb == "complete" {
				return nil, fault.New(fault.Unavailable, "nobody")
			}
			return nil, nil
		}
		b.worker.HandleFunc("x", func(context.Context, *Attempt) (Payload, error) { return Payload{}, nil })
		b.start(granted("x", 1)...)
		time.Sleep(59 * time.Minute)
		var before int
		b.engine.locked(func() { before = len(b.engine.requests["complete"]) })
		time.Sleep(time.Minute + outcomeGrace - 2*backoffMax)
		var past, at, after int
		b.engine.locked(func() { past = len(b.engine.requests["complete"]) })
		time.Sleep(backoffMax)
		b.engine.locked(func() { at = len(b.engine.requests["complete"]) })
		if at <= past {
			t.Errorf("%d tries up to the end of the grace, and no more at it", past)
		}
		time.Sleep(2 * backoffMax)
		b.engine.locked(func() { at = len(b.engine.requests["complete"]) })
		time.Sleep(time.Hour)
		b.engine.locked(func() { after = len(b.engine.requests["complete"]) })
		if at <= before || after != at {
			t.Errorf("%d tries before the deadline, %d up to the end of the grace, %d after", before, at, after)
		}
		if before > 59*60 {
			t.Errorf("%d tries in 59 minutes: it does not back off", before)
		}
		b.finish(t)
	})
}

func TestOneBadOutcomeDoesNotHoldUpTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithConcurrency(20))
		b.engine.latency = time.Millisecond
		b.engine.script = func(verb string, _ int, ids []string) ([]*yardv1.Verdict, error) {
			if verb == "complete" && slices.Contains(ids, "x-13") {
				return nil, fault.New(fault.InvalidArgument, "bad entry")
			}
			return nil, nil
		}
		b.worker.HandleFunc("x", func(context.Context, *Attempt) (Payload, error) { return Payload{}, nil })
		b.start(granted("x", 20)...)
		time.Sleep(time.Second)
		b.finish(t)
		if len(b.engine.completed) != 19 {
			t.Errorf("%d of 19 good ones completed", len(b.engine.completed))
		}
	})
}

func TestSlowRequestDoesNotHoldUpTheNext(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.engine.script = func(verb string, _ int, ids []string) ([]*yardv1.Verdict, error) {
			if verb == "complete" && slices.Contains(ids, "unwell-0") {
				return verdictsOf(ids, "UNKNOWN"), nil
			}
			return nil, nil
		}
		for _, name := range []string{"unwell", "well"} {
			b.worker.HandleFunc(name, func(context.Context, *Attempt) (Payload, error) { return Payload{}, nil })
		}
		b.start(granted("unwell", 1)...)
		synctest.Wait()
		b.engine.push(granted("well", 1)...)
		time.Sleep(2 * slowFlight)
		b.engine.locked(func() {
			if len(b.engine.completed) != 1 || b.engine.completed[0].TaskId != "well-0" {
				t.Errorf("completed %v", b.engine.completed)
			}
			b.engine.script = nil
		})
		time.Sleep(time.Minute)
		b.finish(t)
	})
}

func TestPollsBackOff(t *testing.T) {
	for name, err := range map[string]error{"failing": fault.New(fault.Unavailable, "nobody"), "empty at once": nil} {
		t.Run(name, func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				b.worker.HandleFunc("x", failing(nil))
				polls := &barrenPolls{fakeEngine: b.engine, err: err}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- newSession(b.worker, polls).run(ctx) }()
				time.Sleep(time.Minute)
				stop()
				checktest.Check(t, <-done)
				if n := polls.count.Load(); n < 30 || n > 200 {
					t.Errorf("%d polls in a minute", n)
				}
			})
		})
	}
}

// barrenPolls answers every poll at once with nothing.
type barrenPolls struct {
	*fakeEngine
	err   error
	count atomic.Int32
}

func (p *barrenPolls) poll(context.Context, *yardv1.PollRequest) (*yardv1.PollResponse, error) {
	p.count.Add(1)
	return nil, p.err
}

func TestMiddlewareOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var order []string
		mark := func(name string) Middleware {
			return func(next HandlerFunc) HandlerFunc {
				return func(ctx context.Context, a *Attempt) (Payload, error) {
					order = append(order, name)
					return next(ctx, a)
				}
			}
		}
		b := newBench(WithMiddleware(mark("outer"), mark("inner")))
		b.worker.HandleFunc("x", failing(nil), WithHandlerMiddleware(mark("own")))
		b.start(granted("x", 1)...)
		synctest.Wait()
		b.finish(t)
		checktest.Equal(t, "result", order, []string{"outer", "inner", "own"})
	})
}

func TestWorkerSetUpWronglyDoesNotRun(t *testing.T) {
	client := &Client{domain: "shop"}
	none := func(context.Context, *Attempt) (Payload, error) { return Payload{}, nil }
	many := map[string]int{}
	for i := range tasklistsMax {
		many[fmt.Sprint("l", i)] = 1
	}
	wrong := map[string]error{}
	for name, opt := range map[string]WorkerOption{
		"bad second":           WithTasklists("a b"),
		"same list":            WithTasklists("b", "list"),
		"no weight":            WithWeights(map[string]int{"b": 0}),
		"heavy":                WithWeights(map[string]int{"b": weightMax + 1}),
		"bad name of a weight": WithWeights(map[string]int{"a b": 1}),
		"many tasklists":       WithWeights(many),
		"bad grace":            WithStopGrace(-1),
		"concurrency 0":        WithConcurrency(0),
		"a nil middleware":     WithMiddleware(nil),
		"long wait":            WithPollWait(time.Hour),
		"signs too often":      WithSignsOfLife(signsMin - 1),
		"signs too seldom":     WithSignsOfLife(signsMax + 1),
		"negative signs":       WithSignsOfLife(-1),
	} {
		w := NewWorker(client, "list", opt)
		w.HandleFunc("x", none)
		wrong[name] = w.Run(t.Context())
	}
	for name, setUp := range map[string]func(*Worker){
		"no handlers": func(*Worker) {},
		"bad type":    func(w *Worker) { w.HandleFunc("", none) },
		"twice":       func(w *Worker) { w.HandleFunc("x", none); w.HandleFunc("x", none) },
		"two rests":   func(w *Worker) { w.HandleRest(none); w.HandleRest(none) },
		"nil handler": func(w *Worker) { Handle[int, int](w, "x", nil) },
	} {
		w := NewWorker(client, "list")
		setUp(w)
		wrong[name] = w.Run(t.Context())
	}
	for name, w := range map[string]*Worker{"bad tasklist": NewWorker(client, "a b"), "no client": NewWorker(nil, "list")} {
		w.HandleFunc("x", none)
		wrong[name] = w.Run(t.Context())
	}
	for name, err := range wrong {
		checktest.Code(t, name, err, fault.InvalidArgument)
	}
}
