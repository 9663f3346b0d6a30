// Package turns has callers do one after the other what holds up everything else, such as to look through all that an owner has.
//
// Owns: the order. Keys come one after the other, the callers of each as they came, so one that asks without end is the
// next one's wait once; and the rest after each turn. Never does: know what a turn is for. On failure: nothing can fail; a caller
// too many of its key is refused.
package turns

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrBusy: as many of the key wait for their turn as may.
var ErrBusy = errors.New("too many wait for their turn")

// Line is who waits for the turn. It is safe for concurrent use.
type Line struct {
	most int

	mu    sync.Mutex
	taken bool
	// waiting are the callers of each key that has some: a channel that is closed when the turn comes. Keys is their order.
	waiting map[string][]chan struct{}
	keys    []string
}

// NewLine makes one in which most callers of each key may wait, 0 or more, beside the one whose turn it is.
func NewLine(most int) *Line { return &Line{most: most, waiting: map[string][]chan struct{}{}} }

// Run runs fn when the turn of a caller of a key has come, and has the next one wait for as long again as it took: however many a key
// has, half of the time is everything else's. It fails with ErrBusy at once where too many wait, and with ctx's error if that
// ends before fn begins; else with fn's.
func (l *Line) Run(ctx context.Context, key string, fn func() error) error {
	turn, err := l.enter(key)
	if err != nil {
		return err
	}
	select {
	case <-turn:
	case <-ctx.Done():
		if l.leave(key, turn) {
			return ctx.Err()
		}
	}
	began := time.Now()
	defer func() {
		// In fake time nothing has passed: with the race detector, Go 1.26 crashes if goroutines of a bubble make timers that are due at once.
		if took := time.Since(began); took > 0 {
			time.AfterFunc(took, l.next)
		} else {
			l.next()
		}
	}()
	if ctx.Err() != nil { // no one waits for it
		return ctx.Err()
	}
	return fn()
}

// enter puts a caller into the line. The channel that it returns is closed when the turn comes.
func (l *Line) enter(key string) (turn chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	turn = make(chan struct{})
	mine := l.waiting[key]
	switch {
	case !l.taken:
		l.taken = true
		close(turn)
		return turn, nil
	case len(mine) >= l.most:
		return nil, ErrBusy
	case len(mine) == 0:
		l.keys = append(l.keys, key)
	}
	l.waiting[key] = append(mine, turn)
	return turn, nil
}

// next ends the turn, and begins that of the next key's first caller.
func (l *Line) next() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.keys) == 0 {
		l.taken = false
		return
	}
	key := l.keys[0]
	l.keys = l.keys[1:]
	close(l.waiting[key][0])
	if l.waiting[key] = l.waiting[key][1:]; len(l.waiting[key]) > 0 {
		l.keys = append(l.keys, key)
	} else {
		delete(l.waiting, key)
	}
}

// leave takes a caller out of the line. It is false if its turn has come by now: next ends it.
func (l *Line) leave(key string, turn chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting[key], turn)
	if i < 0 {
		return false
	}
	if l.waiting[key] = slices.Delete(l.waiting[key], i, i+1); len(l.waiting[key]) == 0 {
		delete(l.waiting, key)
		l.keys = slices.DeleteFunc(l.keys, func(k string) bool { return k == key })
	}
	return true
}
