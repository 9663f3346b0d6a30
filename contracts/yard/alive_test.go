package yard

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// TestAWorkerSendsSignsOfLife: the first one before its first poll, which names it, then in its interval while handlers run and outcomes are reported, and a
// last one that says that it leaves.
func TestAWorkerSendsSignsOfLife(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithSignsOfLife(time.Second), WithIdentity("ann"), WithVersion("v1"), WithTasklists("more"))
		b.worker.HandleFunc("x", lasting(5*time.Second))
		began := time.Now()
		b.start()
		synctest.Wait()
		b.engine.locked(func() {
			if len(b.engine.signs) == 0 || len(b.engine.asked) == 0 || b.engine.asked[0].WorkerId != b.engine.signs[0].WorkerId {
				t.Errorf("signs %v, polls %v", b.engine.signs, b.engine.asked)
			}
		})
		b.engine.push(granted("x", 1)...)
		time.Sleep(1500 * time.Millisecond)
		b.finish(t) // which waits for the handler
		signs := b.engine.signs
		for i, s := range signs {
			if s.EveryMs != 1000 || s.Worker != "ann" || s.Version != "v1" || s.Host == "" || !slices.Equal(s.Tasklists, []string{"list", "more"}) || len(s.WorkerId) != 32 ||
				s.WorkerId != signs[0].WorkerId || s.RunningForMs != b.engine.signsAt[i].Sub(began).Milliseconds() || s.Leaving != (i == len(signs)-1) {
				t.Errorf("sign %d: %v", i, s)
			}
		}
		if took := time.Since(began); len(signs) < 7 || len(signs) > 9 || took < 5*time.Second {
			t.Errorf("%d signs in %v", len(signs), took)
		}
		other := newSigns(b.worker)
		if other.ID() == signs[0].WorkerId {
			t.Error("two runs have the same id")
		}
	})
}

// TestSignsThatAreNotSentComeSoon: where the connection is broken, one is sent as soon as it is whole.
func TestSignsThatAreNotSentComeSoon(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithSignsOfLife(10 * time.Second))
		b.worker.HandleFunc("x", failing(nil))
		b.engine.signsFail = fault.New(fault.Unavailable, "not connected")
		b.start()
		time.Sleep(2 * time.Second)
		b.engine.locked(func() {
			if n := len(b.engine.signs); n < 15 || n > 25 {
				t.Errorf("%d tries", n)
			}
			b.engine.signsFail, b.engine.signs = nil, nil
		})
		time.Sleep(5 * time.Second)
		b.engine.locked(func() {
			if n := len(b.engine.signs); n != 1 {
				t.Errorf("%d signs since", n)
			}
		})
		b.finish(t)
	})
}

// TestAWorkerWithoutSigns names itself in no poll: it wants none, may send none, or the engine knows none.
func TestAWorkerWithoutSigns(t *testing.T) {
	for name, c := range map[string]struct {
		opt   WorkerOption
		fail  error
		signs int
	}{
		"it wants none":    {WithSignsOfLife(0), nil, 0},
		"it may send none": {WithSignsOfLife(time.Second), errNoSigns, 2},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newBench(c.opt, WithPollWait(time.Second))
				b.worker.HandleFunc("x", failing(nil))
				b.engine.signsFail = c.fail
				b.start()
				time.Sleep(10 * time.Second)
				b.finish(t)
				if len(b.engine.signs) != c.signs {
					t.Errorf("signs %v", b.engine.signs)
				}
				if last := b.engine.asked[len(b.engine.asked)-1]; last.WorkerId != "" {
					t.Errorf("the last poll is %v", last)
				}
			})
		})
	}
}

// A worker that leaves something behind does not say that it leaves: the engine takes its attempts back.
func TestAWorkerThatLeavesAttemptsBehindFallsSilent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithSignsOfLife(time.Second), WithDrainTimeout(time.Second), WithStopGrace(time.Second))
		release := make(chan struct{})
		b.worker.HandleFunc("x", waitingFor(release))
		b.start(granted("x", 1)...)
		time.Sleep(time.Second)
		b.stop()
		if err := <-b.done; err == nil || !strings.Contains(err.Error(), "1 handlers still running") {
			t.Errorf("it ended with %v", err)
		}
		if last := b.engine.signs[len(b.engine.signs)-1]; last.Leaving {
			t.Error("it leaves")
		}
		close(release)
	})
}
