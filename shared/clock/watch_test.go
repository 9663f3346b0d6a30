package clock

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// stage is a watch in a bubble, with a server whose clock is off by what the test says.
type stage struct {
	*Watch
	t    *testing.T
	mu   sync.Mutex
	off  time.Duration
	fail error
	log  bytes.Buffer
}

func newStage(t *testing.T, off time.Duration) *stage {
	t.Helper()
	s := &stage{t: t, off: off}
	s.Watch = &Watch{Clock: New(), SkewMax: 10 * time.Second, Ask: s.ask, Log: slog.New(slog.NewTextHandler(&s.log, nil))}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		testkit.Check(t, <-done)
	})
	return s
}

func (s *stage) ask(context.Context) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.off), s.fail
}

// set sets the server's clock, and lets the watch find out.
func (s *stage) set(off time.Duration, fail error) {
	s.mu.Lock()
	s.off, s.fail = off, fail
	s.mu.Unlock()
	time.Sleep(2 * watchEvery)
	synctest.Wait()
}

// is checks whether the watch is ready, what Check says, and the node's time.
func (s *stage) is(ready bool, check string, off time.Duration) {
	s.t.Helper()
	select {
	case <-s.Ready():
		if !ready {
			s.t.Error("it is ready")
		}
	default:
		if ready {
			s.t.Error("it is not ready")
		}
	}
	err := s.Check()
	if check == "" && err != nil || check != "" && (err == nil || !strings.Contains(err.Error(), check)) {
		s.t.Errorf("it says %v, want %q", err, check)
	}
	testkit.Equal(s.t, "its time is off the node's", time.Until(s.Clock.Now()).Round(time.Millisecond), off)
}

// said counts what the log says.
func (s *stage) said(text string, times int) {
	s.t.Helper()
	if n := strings.Count(s.log.String(), text); n != times {
		s.t.Errorf("%q was logged %d times, want %d, in\n%s", text, n, times, s.log.String())
	}
}

// R44: a skew is warned about once, and its end is reported; the time is the server's in any case.
func TestR44_ASkewIsSaidOnceAndSoIsItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 900*time.Millisecond)
		s.set(900*time.Millisecond, nil)
		s.is(true, "", 900*time.Millisecond)
		s.said("clock is off", 0)
		s.set(-3*time.Second, nil)
		s.set(-3*time.Second, nil)
		s.set(-900*time.Millisecond, nil) // not a warning that comes and goes
		s.set(-2*time.Second, nil)
		s.is(true, "", -2*time.Second)
		s.said("clock is off", 1)
		s.set(-100*time.Millisecond, nil)
		s.said("right again", 1)
		s.set(time.Millisecond, errors.New("no NATS")) // what is known holds
		s.is(true, "", -100*time.Millisecond)
	})
}

// R44: a node whose clock is too far off is not let in; one that serves goes on, by the server's time, and is not ready.
func TestR44_AClockTooFarOffIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, -61*time.Second)
		s.set(-61*time.Second, nil)
		s.is(false, "this node's clock is 1m1s ahead of the NATS server's, more than the 10s of clock.skew_max", -61*time.Second)
		s.said("level=ERROR", 1)
		s.set(5*time.Second, nil)
		s.is(true, "", 5*time.Second)
		s.set(time.Hour, nil)
		s.is(true, "1h0m0s behind the NATS server's", time.Hour)
		s.said("level=ERROR", 2)
		s.SkewMax = 0
		s.is(true, "", time.Hour)
	})
}

func TestAClockThatKnowsNothingIsTheNodesOwn(t *testing.T) {
	for name, c := range map[string]*Clock{"none": nil, "new": New()} {
		before := time.Now().Round(0)
		if got := c.Now(); got.Before(before) || got.After(time.Now().Round(0)) {
			t.Errorf("%s says %v", name, got)
		}
		if _, ok := c.Skew(); ok {
			t.Errorf("%s knows a skew", name)
		}
	}
	if err := (&Watch{Clock: New()}).Check(); err == nil {
		t.Error("a clock that is not known is ready")
	}
}
