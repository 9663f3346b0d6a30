package turns

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrBusy: as many of the key wait for their turn as may.
var ErrBusy = errors.New("too many wait for their turn")

// Line is who waits for the turn. It is safe for concurrent use.
type Line struct {
	mu    sync.Mutex
	order *order[chan struct{}]
}

// NewLine makes one in which most callers of each key may wait, 0 or more, beside the one whose turn it is.
func NewLine(most int) *Line { return &Line{order: newOrder[chan struct{}](most)} }

// Run runs fn when the turn of a caller of a key has come, and has the next one wait for as long again as it took: however many a key
// has, half of the time is everything else's. It fails with ErrBusy at once where too many wait, and with ctx's error if that
// ends before fn begins; else with fn's.
func (l *Line) Run(ctx context.Context, key string, fn func() error) error {
	if err := l.enter(ctx, key); err != nil {
		return err
	}
	began := time.Now()
	defer func() { time.AfterFunc(time.Since(began), l.leave) }()
	if ctx.Err() != nil { // no one waits for it
		return ctx.Err()
	}
	return fn()
}

// enter waits for the turn. A caller that has entered must leave.
func (l *Line) enter(ctx context.Context, key string) error {
	mine := make(chan struct{})
	l.mu.Lock()
	now, ok := l.order.enter(key, mine)
	l.mu.Unlock()
	switch {
	case !ok:
		return ErrBusy
	case now:
		return nil
	}
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	left := l.order.leave(key, mine)
	l.mu.Unlock()
	if !left {
		l.leave()
	}
	return ctx.Err()
}

// leave ends the turn.
func (l *Line) leave() {
	l.mu.Lock()
	next, ok := l.order.next()
	l.mu.Unlock()
	if ok {
		close(next)
	}
}
