package yard

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// pinned makes n granted tasks whose attempts may be kept.
func pinned(n int) []*yardv1.PolledTask {
	tasks := granted("x", n)
	for _, t := range tasks {
		t.PinnedForMs, t.Failures = 60_000, 2
	}
	return tasks
}

// keepingFor has each failure answered with another try in place after so long.
func (e *fakeEngine) keepingFor(wait time.Duration) {
	e.keeps = func(f *yardv1.Failure, v *yardv1.Verdict) {
		v.Kept, v.RetryInMs, v.TimeoutMs, v.Failures = true, wait.Milliseconds(), (wait + time.Minute).Milliseconds(), f.Failures+1
	}
}

// failingFirst is a worker of one slot whose handler fails so often, and what its attempts were so far.
func failingFirst(times int, opts ...WorkerOption) (b *bench, attempts func() []Attempt) {
	b = newBench(append([]WorkerOption{WithConcurrency(1)}, opts...)...)
	var mu sync.Mutex
	var all []Attempt
	b.worker.HandleFunc("x", func(_ context.Context, a *Attempt) (Payload, error) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, *a)
		if len(all) <= times {
			return Payload{}, errors.New("not yet")
		}
		return Payload{}, nil
	})
	return b, func() []Attempt {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// TestAHandlerRunsAgainInPlace: after the wait that the engine said, under the same token, in the same slot, as an attempt of its own.
func TestAHandlerRunsAgainInPlace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, attempts := failingFirst(2)
		b.engine.keepingFor(20 * time.Second)
		b.start()
		began := time.Now()
		b.engine.push(pinned(2)...)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := len(attempts()); n != 2 {
			t.Errorf("%d attempts while the only slot is held", n)
		}
		time.Sleep(time.Minute)
		b.finish(t)
		for i, a := range attempts()[:3] {
			deadline := began.Add(time.Duration(i)*20*time.Second + time.Minute)
			if i == 0 {
				deadline = began.Add(time.Hour)
			}
			if a.TaskID != "x-0" || a.Number != i+1 || a.Failures != 2+i || !a.Deadline.Equal(deadline) || a.token != "token-0" {
				t.Errorf("attempt %d is %+v", i, a)
			}
		}
		if len(attempts()) != 4 || len(b.engine.completed) != 2 || b.engine.completed[0].Token != "token-0" {
			t.Fatalf("%d attempts, completed are %v", len(attempts()), b.engine.completed)
		}
		for i, f := range b.engine.failed {
			if !f.Keep || int(f.Failures) != 2+i || f.Token != "token-0" {
				t.Errorf("reported was %v", f)
			}
		}
	})
}

// TestAWorkerAsksToKeepWhatItMay: and not a failure for good, nor what is put off, nor where the grant does not offer it.
func TestAWorkerAsksToKeepWhatItMay(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		offered bool
		want    bool
	}{
		"offered": {errors.New("x"), true, true}, "later": {RetryAfter(errors.New("x"), time.Second), true, true},
		"not offered": {errors.New("x"), false, false}, "for good": {NonRetryable(errors.New("x")), true, false}, "put off": {Snooze(time.Second, "x"), true, false},
	} {
		inBubble(t, func(t *testing.T) {
			b := newBench()
			b.worker.HandleFunc("x", func(context.Context, *Attempt) (Payload, error) { return Payload{}, c.err })
			b.start()
			task := granted("x", 1)
			if c.offered {
				task = pinned(1)
			}
			b.engine.push(task...)
			time.Sleep(time.Second)
			b.finish(t)
			if f := b.engine.failed; len(f) != 1 || f[0].Keep != c.want || (f[0].Failures != 0) != c.want {
				t.Errorf("%s: reported was %v", name, f)
			}
		})
	}
}

// TestASlotIsFreeWhereTheEngineKeepsNothing, however it answers.
func TestASlotIsFreeWhereTheEngineKeepsNothing(t *testing.T) {
	for _, code := range []string{codeOK, string(fault.Stale)} {
		inBubble(t, func(t *testing.T) {
			b, attempts := failingFirst(1)
			b.engine.script = func(verb string, _ int, ids []string) ([]*yardv1.Verdict, error) {
				if verb == "fail" {
					return verdictsOf(ids, code), nil
				}
				return nil, nil
			}
			b.start()
			b.engine.push(pinned(2)...)
			time.Sleep(time.Second)
			b.finish(t)
			if len(attempts()) != 2 || len(b.engine.completed) != 1 {
				t.Errorf("%s: %d attempts, completed are %v", code, len(attempts()), b.engine.completed)
			}
		})
	}
}

// TestAFailureOfUnknownFateIsRepeated as it was, and the answer to the repeat counts.
func TestAFailureOfUnknownFateIsRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, attempts := failingFirst(1)
		b.engine.keepingFor(time.Second)
		var sent []*yardv1.Failure
		keep := b.engine.keeps
		b.engine.keeps = func(f *yardv1.Failure, v *yardv1.Verdict) {
			sent = append(sent, f)
			keep(f, v)
		}
		b.engine.script = func(verb string, call int, _ []string) ([]*yardv1.Verdict, error) {
			if verb == "fail" && call < 3 {
				return nil, fault.New(fault.Unknown, "no answer")
			}
			return nil, nil
		}
		b.start()
		b.engine.push(pinned(1)...)
		time.Sleep(time.Minute)
		b.finish(t)
		if len(attempts()) != 2 || len(b.engine.requests["fail"]) != 4 || len(sent) != 1 || sent[0].Failures != 2 || len(b.engine.completed) != 1 {
			t.Errorf("%d attempts, %d requests, %v", len(attempts()), len(b.engine.requests["fail"]), sent)
		}
	})
}

// TestAWorkerThatLeavesHandsBackWhatItKeeps: at once, and it asks to keep nothing more; so does one that is drained.
func TestAWorkerThatLeavesHandsBackWhatItKeeps(t *testing.T) {
	for name, leave := range map[string]func(b *bench){
		"the worker was stopping": func(b *bench) { b.stop() },
		"the worker is drained":   func(b *bench) { b.tell(&yardv1.WorkerDrain{SinceMs: 1}) },
	} {
		inBubble(t, func(t *testing.T) {
			b, attempts := failingFirst(9, WithConcurrency(2))
			b.engine.keepingFor(time.Hour)
			b.start()
			b.engine.push(pinned(1)...)
			time.Sleep(10 * time.Second)
			left := time.Now()
			leave(b)
			synctest.Wait()
			b.engine.locked(func() {
				f := b.engine.failed
				if len(f) != 2 || !f[1].NotStarted || f[1].Keep || f[1].Message != name || f[1].Token != "token-0" || time.Since(left) > 0 {
					t.Errorf("%s: reported was %v", name, f)
				}
			})
			b.finish(t)
			if len(attempts()) != 1 {
				t.Errorf("%s: %d attempts", name, len(attempts()))
			}
		})
	}
}

// TestAnAnswerThatComesWhenTheWorkerLeaves: the attempt that it keeps is handed back before Run returns.
func TestAnAnswerThatComesWhenTheWorkerLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, _ := failingFirst(9)
		b.engine.keepingFor(time.Hour)
		b.engine.latency = time.Second
		b.start()
		b.engine.push(pinned(1)...)
		synctest.Wait()
		b.finish(t)
		if f := b.engine.failed; len(f) != 2 || !f[0].Keep || !f[1].NotStarted {
			t.Errorf("reported was %v", f)
		}
	})
}

// TestADrainedWorkerAsksToKeepNothing, and a resumed one does again.
func TestADrainedWorkerAsksToKeepNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithConcurrency(2))
		b.worker.HandleFunc("x", func(context.Context, *Attempt) (Payload, error) {
			time.Sleep(5 * time.Second)
			return Payload{}, errors.New("x")
		})
		b.start()
		b.engine.push(pinned(1)...)
		synctest.Wait()
		b.tell(&yardv1.WorkerDrain{SinceMs: 1})
		time.Sleep(20 * time.Second)
		b.tell(nil)
		b.engine.push(pinned(1)...)
		time.Sleep(20 * time.Second)
		b.finish(t)
		if f := b.engine.failed; len(f) != 2 || f[0].Keep || !f[1].Keep {
			t.Errorf("reported was %v", f)
		}
	})
}

// TestWhatIsHeardInTheWait: a cancel ends it, by the verdict itself or by a heartbeat, and what is lost is not reported any more.
func TestWhatIsHeardInTheWait(t *testing.T) {
	for name, c := range map[string]struct {
		beat     string
		cancel   bool
		atOnce   bool
		handBack bool
	}{
		"cancelled":                 {codeOK, true, false, true},
		"cancelled by the verdict":  {codeOK, false, true, true},
		"lost":                      {string(fault.Stale), false, false, false},
		"nothing, so it runs again": {codeOK, false, false, false},
	} {
		inBubble(t, func(t *testing.T) {
			b, attempts := failingFirst(1)
			b.engine.keepingFor(30 * time.Second)
			keep := b.engine.keeps
			b.engine.keeps = func(f *yardv1.Failure, v *yardv1.Verdict) {
				keep(f, v)
				v.CancelRequested = c.atOnce
			}
			b.engine.script = func(verb string, _ int, ids []string) ([]*yardv1.Verdict, error) {
				if verb != "heartbeat" {
					return nil, nil
				}
				verdicts := verdictsOf(ids, c.beat)
				verdicts[0].CancelRequested = c.cancel
				return verdicts, nil
			}
			b.start()
			b.engine.push(pinned(1)...)
			time.Sleep(25 * time.Second)
			synctest.Wait()
			if n := len(attempts()); n != 1 {
				t.Errorf("%s: %d attempts in the wait", name, n)
			}
			time.Sleep(time.Minute)
			b.finish(t)
			f := b.engine.failed
			if handBack := len(f) == 2 && f[1].NotStarted && strings.Contains(f[1].Message, "cancelled"); handBack != c.handBack || (len(f) == 1) == c.handBack {
				t.Errorf("%s: reported was %v", name, f)
			}
			if ran := len(attempts()) == 2; ran != strings.HasPrefix(name, "nothing") {
				t.Errorf("%s: %d attempts", name, len(attempts()))
			}
		})
	}
}

// TestATryInPlaceHasAContextOfItsOwn: it is not ended by what ended the one before, and the deadline is its own.
func TestATryInPlaceHasAContextOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithConcurrency(1))
		b.engine.keepingFor(time.Second)
		var contexts []context.Context
		var lasted []time.Duration
		b.worker.HandleFunc("x", func(ctx context.Context, _ *Attempt) (Payload, error) {
			began := time.Now()
			if len(contexts) > 0 && contexts[len(contexts)-1].Err() == nil {
				t.Error("the context of the attempt before lives on")
			}
			contexts = append(contexts, ctx)
			<-ctx.Done()
			lasted = append(lasted, time.Since(began))
			return Payload{}, context.Cause(ctx)
		})
		b.start()
		task := pinned(1)
		task[0].TimeoutMs = 5_000
		b.engine.push(task...)
		time.Sleep(100 * time.Second)
		b.engine.locked(func() { b.engine.keeps = nil })
		time.Sleep(time.Minute)
		b.finish(t)
		if want := []time.Duration{5 * time.Second, time.Minute, time.Minute}; !reflect.DeepEqual(lasted, want) {
			t.Errorf("they lasted %v, want %v", lasted, want)
		}
	})
}

// TestATryInPlaceIsGivenWhatTheFirstWas, whatever a handler, or what wraps it, has made of that.
func TestATryInPlaceIsGivenWhatTheFirstWas(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithConcurrency(1))
		b.engine.keepingFor(time.Second)
		var payloads, headers []string
		var failures []int
		b.worker.HandleFunc("x", func(_ context.Context, a *Attempt) (Payload, error) {
			payloads, headers, failures = append(payloads, string(a.Payload.Data)), append(headers, a.Headers["h"]), append(failures, a.Failures)
			a.Headers["h"], a.Failures = "changed", 77
			a.Payload.Data[0]++
			a.Payload = Payload{Data: []byte("another")}
			if len(payloads) < 3 {
				return Payload{}, errors.New("x")
			}
			return Payload{}, nil
		})
		b.start()
		tasks := pinned(1)
		tasks[0].Headers = map[string]string{"h": "v"}
		b.engine.push(tasks...)
		time.Sleep(time.Minute)
		b.finish(t)
		for i := range payloads {
			if payloads[i] != "0" || headers[i] != "v" || failures[i] != 2+i {
				t.Errorf("try %d got payload %q, header %q, %d failures", i, payloads[i], headers[i], failures[i])
			}
		}
		if len(payloads) != 3 || len(b.engine.failed) != 2 || b.engine.failed[0].Failures != 2 || b.engine.failed[1].Failures != 3 {
			t.Errorf("%d tries, reported was %v", len(payloads), b.engine.failed)
		}
	})
}

// TestATryInPlaceKnowsADeadlineThatWasMovedInTheWait: it gets what is so when it begins.
func TestATryInPlaceKnowsADeadlineThatWasMovedInTheWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, attempts := failingFirst(1)
		b.engine.keepingFor(27 * time.Second) // between two heartbeats
		var until time.Time
		b.engine.script = func(verb string, _ int, ids []string) ([]*yardv1.Verdict, error) {
			if verb != "heartbeat" {
				return nil, nil
			}
			verdicts := verdictsOf(ids, codeOK)
			verdicts[0].TimeoutMs, until = time.Hour.Milliseconds(), time.Now().Add(time.Hour)
			return verdicts, nil
		}
		b.start()
		b.engine.push(pinned(1)...)
		time.Sleep(25 * time.Second)
		var want time.Time
		b.engine.locked(func() { want = until })
		time.Sleep(time.Minute)
		b.finish(t)
		if a := attempts(); len(a) != 2 || want.IsZero() || !a[1].Deadline.Equal(want) {
			t.Errorf("the attempts were %+v, the deadline is %v", a, want)
		}
	})
}

// TestNothingRunsAgainOnceTheWorkerEnds: a try in place that would begin in the same moment is seen by the one who waits for handlers, or does not begin.
func TestNothingRunsAgainOnceTheWorkerEnds(t *testing.T) {
	s := newSlots(2)
	s.reserve(t.Context(), 2)
	for range 2 {
		s.start()
		s.keep()
	}
	if !s.runAgain() {
		t.Error("it does not run again")
	}
	s.close()
	if running, _ := s.left(); s.runAgain() || running != 1 {
		t.Errorf("%d run, and more begin", running)
	}
	s.finish()
	s.letGo()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s.idle(ctx)
	if s.allReported(ctx); s.reserve(ctx, 2) != 2 {
		t.Error("slots are lost")
	}
}
