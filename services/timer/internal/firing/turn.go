package firing

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/turns"
)

// ErrBusy: as many of the domain wait for a search as may.
var ErrBusy = errors.New("too many searches of the domain wait for the timer partition")

// line is who waits for the turn to look through all that waits.
type line struct {
	mu    sync.Mutex
	turns *turns.Turns[chan struct{}]
}

func newLine() *line { return &line{turns: turns.New[chan struct{}](searchersMax)} }

// enter waits for the turn until ctx ends, or fails with ErrBusy at once. Who has entered calls leave.
func (l *line) enter(ctx context.Context, domain string) error {
	mine := make(chan struct{})
	l.mu.Lock()
	now, ok := l.turns.Enter(domain, mine)
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
	left := l.turns.Leave(domain, mine)
	l.mu.Unlock()
	if !left {
		l.leave()
	}
	return ctx.Err()
}

// leave ends the turn.
func (l *line) leave() {
	l.mu.Lock()
	next, ok := l.turns.Next()
	l.mu.Unlock()
	if ok {
		close(next)
	}
}

// inTurn runs search, which looks through all that waits, for a caller of a domain. One goes after the other, the domains take turns,
// and after each as much time as it took is left to everything else. So however many a domain asks for, it does
// not hold up others, nor firing (I14).
func (o *Owner) inTurn(ctx context.Context, domain string, search func() error) error {
	if err := o.line.enter(ctx, domain); err != nil {
		return err
	}
	began := time.Now()
	defer func() { time.AfterFunc(time.Since(began), o.line.leave) }()
	if ctx.Err() != nil { // no one waits for it
		return ctx.Err()
	}
	return search()
}
