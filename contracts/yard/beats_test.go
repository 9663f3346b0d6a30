package yard

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// sleeping runs until its context ends, or an hour is over, and tells why.
func sleeping(causes chan<- error) HandlerFunc {
	return func(ctx context.Context, _ *Attempt) (Payload, error) {
		select {
		case <-ctx.Done():
			causes <- context.Cause(ctx)
			return Payload{}, ctx.Err()
		case <-time.After(time.Hour):
			return Payload{}, nil
		}
	}
}

// A cancel reaches a handler at once, though its task needs no heartbeats: a hint has one sent. Hints of what others
// run, and many hints, cost little.
func TestACancelReachesItsHandlerAtOnce(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		causes := make(chan error, 2)
		cancelled := false
		b.engine.script = func(verb string, _ int, ids []string) (all []*yardv1.Verdict, err error) {
			for range ids {
				all = append(all, &yardv1.Verdict{Code: codeOK, CancelRequested: verb == "heartbeat" && cancelled})
			}
			return all, nil
		}
		b.worker.HandleFunc("x", sleeping(causes))
		b.start(granted("x", 1)...)
		time.Sleep(time.Second)
		var hint func(taskIDs []string)
		b.engine.locked(func() { hint = b.engine.hint })
		for range 1000 {
			hint([]string{"x-7"})
			hint([]string{"x-0"})
			time.Sleep(time.Millisecond)
		}
		b.engine.locked(func() {
			if n := len(b.engine.requests["heartbeat"]); n < 5 || n > 12 {
				t.Errorf("%d heartbeats for a thousand hints in a second", n)
			}
			cancelled = true
		})
		began := time.Now()
		hint([]string{"x-0"})
		if cause := <-causes; cause != ErrCancelled || time.Since(began) > hintPace {
			t.Errorf("after %v: %v", time.Since(began), cause)
		}
		b.finish(t)
	})
}

func TestHeartbeatsKeepTheTimeoutAndShareRequests(t *testing.T) {
	const tasks = 200
	inBubble(t, func(t *testing.T) {
		b := newBench(WithConcurrency(tasks))
		last := map[string]time.Time{}
		b.engine.script = func(verb string, _ int, ids []string) ([]*yardv1.Verdict, error) {
			for _, id := range ids {
				if silent := time.Since(last[id]); verb == "heartbeat" && !last[id].IsZero() && silent > 2*time.Second {
					t.Errorf("%s was silent for %v", id, silent)
				}
				last[id] = time.Now()
			}
			return nil, nil
		}
		b.worker.HandleFunc("x", lasting(time.Minute))
		b.start()
		for _, task := range granted("x", tasks) {
			task.HeartbeatTimeoutMs = 3000
			b.engine.push(task)
			time.Sleep(7 * time.Millisecond) // begun at different times
		}
		time.Sleep(59 * time.Second)
		b.engine.locked(func() {
			requests, beats := len(b.engine.requests["heartbeat"]), len(b.engine.beats)
			if beats < tasks*55 || requests > beats/30 {
				t.Errorf("%d beats in %d requests", beats, requests)
			}
		})
		b.finish(t)
	})
}

func TestCancelEndsTheHandlersContext(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		causes := make(chan error, 1)
		b.worker.HandleFunc("x", sleeping(causes))
		b.engine.script = func(verb string, call int, ids []string) ([]*yardv1.Verdict, error) {
			verdicts := verdictsOf(ids, codeOK)
			if verb != "heartbeat" {
				return nil, nil
			}
			verdicts[0].CancelRequested = call == 1
			return verdicts, nil
		}
		b.start(granted("x", 1)...)
		checktest.Equal(t, "the context ended with", <-causes, ErrCancelled)
		synctest.Wait()
		b.finish(t)
		if f := b.engine.failed[0]; f.ErrorType != TypeCancelled || !f.NonRetryable || f.NotStarted {
			t.Errorf("got %v", f)
		}
	})
}

func TestLostAttemptEndsTheContextAndReportsNothing(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		causes := make(chan error, 1)
		b.worker.HandleFunc("x", sleeping(causes))
		b.engine.script = func(verb string, _ int, ids []string) ([]*yardv1.Verdict, error) {
			return verdictsOf(ids, string(fault.Stale)), nil
		}
		b.start(granted("x", 1)...)
		checktest.Equal(t, "the context ended with", <-causes, ErrLostAttempt)
		b.finish(t)
		if n := len(b.engine.requests["fail"]) + len(b.engine.requests["complete"]); n != 0 {
			t.Errorf("%d outcomes of a lost attempt were sent", n)
		}
		if n := len(b.engine.requests["heartbeat"]); n != 1 {
			t.Errorf("%d heartbeats of a lost attempt", n)
		}
	})
}

func TestFailedHeartbeatIsRepeatedSooner(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		began := time.Now()
		var at []time.Duration
		b.engine.script = func(verb string, call int, ids []string) ([]*yardv1.Verdict, error) {
			if verb != "heartbeat" {
				return nil, nil
			}
			at = append(at, time.Since(began))
			if call == 0 {
				return nil, fault.New(fault.Unavailable, "nobody")
			}
			return nil, nil
		}
		b.worker.HandleFunc("x", lasting(11*time.Second))
		b.start()
		task := granted("x", 1)[0]
		task.HeartbeatTimeoutMs = 24_000
		b.engine.push(task)
		time.Sleep(12 * time.Second)
		b.finish(t)
		if len(at) != 2 || at[1]-at[0] > 3*time.Second {
			t.Errorf("beats at %v", at)
		}
	})
}

// An engine that cannot be reached, or does not know, is asked four times as often and no more, however quickly it says so.
func TestHeartbeatsInVainKeepTheirPace(t *testing.T) {
	for name, answer := range map[string]func(n int) ([]*yardv1.Verdict, error){
		"closed": func(int) ([]*yardv1.Verdict, error) {
			return nil, fault.New(fault.Unavailable, "the connection is closed")
		},
		"unknown": func(int) ([]*yardv1.Verdict, error) { return []*yardv1.Verdict{{Code: string(fault.Unknown)}}, nil },
	} {
		onBench(t, func(t *testing.T, b *bench) {
			b.engine.script = func(verb string, n int, _ []string) ([]*yardv1.Verdict, error) {
				if verb == "heartbeat" {
					return answer(n)
				}
				return nil, nil
			}
			b.worker.HandleFunc("x", lasting(time.Minute))
			b.start(granted("x", 1)...)
			time.Sleep(time.Minute - time.Millisecond)
			b.engine.locked(func() {
				every := beatDefault / 4
				if n, most := len(b.engine.requests["heartbeat"]), int(time.Minute/every)+1; n < most/3 || n > most {
					t.Errorf("%s: %d heartbeats in a minute, want up to %d", name, n, most)
				}
			})
			b.finish(t)
		})
	}
}

func TestProgressTravelsWithinASecondAndOnlyTheLast(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.worker.HandleFunc("x", func(ctx context.Context, _ *Attempt) (Payload, error) {
			for i := range 30 { // three seconds
				checktest.Check(t, Progress(ctx, i))
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(5 * time.Second)
			return Payload{}, Progress(ctx, make([]int, 4096))
		})
		b.start(granted("x", 1)...)
		time.Sleep(9 * time.Second)
		b.finish(t)
		if n := len(b.engine.beats); n < 3 || n > 5 { // the last of two at one moment may come first
			t.Fatalf("%d beats for 30 reports in 3 s", n)
		}
		if last := b.engine.beats[len(b.engine.beats)-1]; string(last.Progress.GetData()) != "29" {
			t.Errorf("the last progress is %v", last)
		}
		if len(b.engine.failed) != 1 { // by the last line of the handler: too large
			t.Errorf("a progress of 8 KiB was taken")
		}
	})
	checktest.Code(t, "outside of a handler", Progress(t.Context(), 1), fault.FailedPrecondition)
}
