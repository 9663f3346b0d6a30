package load

import (
	"context"
	"testing"
	"time"
)

// A lost task, a payload that was never sent, and a repeat are each noticed.
func TestLedger(t *testing.T) {
	t.Parallel()
	l := newLedger(1)
	first, second := l.next(time.Time{}, false), l.next(time.Now().Add(-time.Second), false)
	l.handle(first)
	l.handle(first)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.drained(ctx); err == nil {
		t.Error("a lost task was not noticed")
	}
	l.handle(second)
	if err := l.drained(t.Context()); err != nil {
		t.Error(err)
	}
	if l.duplicates != 1 {
		t.Errorf("%d repeats, want 1", l.duplicates)
	}
	if _, p99 := l.quantiles(); p99 < 1000 {
		t.Errorf("p99 is %v ms, want the second since the task was due", p99)
	}
	l.handle("x")
	if err := l.drained(t.Context()); err == nil {
		t.Error("a payload that was never sent was not noticed")
	}
}
