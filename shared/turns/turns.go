// Package turns bounds how many callers do at a time what holds up others, such as to look through all that an owner has, or to ask
// a store.
//
// Owns: the order, by weight of the callers' keys (package fair), the callers of each as they came, so one that asks without end is
// the next one's wait once; and the rest after each turn. Never does: know what a turn is for. On failure: nothing can fail; a caller
// too many of its key is refused.
package turns

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/fair"
)

// ErrBusy: as many of the key wait for their turn as may.
var ErrBusy = errors.New("too many wait for their turn")

// Config is the limits of a line.
type Config struct {
	// AtOnce is how many callers have their turn at a time; 0 = one has.
	AtOnce int
	// Most is how many callers of each key may wait, 0 or more, beside those whose turn it is.
	Most int
	// Rest has each turn followed by a rest of so many times as long, 100 ms at most: with 1, half of the time is everything else's, however
	// many callers a key has. AtOnce callers begin together then, and share round trips; the next ones begin when all of them are done and the
	// rest is over.
	Rest int
	// Weight is how many turns a key has for each one of others; nil = all have as many.
	Weight func(key string) int
}

// restMax bounds a rest: a turn that takes longer waits for a store most of the time, and there is nothing to make up for.
const restMax = 100 * time.Millisecond

// Line is who waits for a turn. It is safe for concurrent use.
type Line struct {
	cfg Config

	mu sync.Mutex
	// taken is how many have their turn; began is when the last of these turns did, and resting is set in the rest after one.
	taken   int
	began   time.Time
	resting bool
	// waiting are callers, each a channel that is closed when its turn comes; of counts them by key.
	waiting fair.Queue[waiter]
	of      map[string]int
}

type waiter struct {
	key  string
	turn chan struct{}
}

// NewLine makes a line in which no one waits.
func NewLine(c Config) *Line {
	c.AtOnce = max(c.AtOnce, 1)
	return &Line{cfg: c, of: map[string]int{}, waiting: fair.Queue[waiter]{Turns: c.Weight}}
}

// Run runs fn when the turn of a caller of a key has come. It fails with ErrBusy at once where too many wait, and with ctx's error if that
// ends before fn begins; else with fn's.
func (l *Line) Run(ctx context.Context, key string, fn func() error) error {
	turn, err := l.enter(key, l.cfg.Most)
	if err != nil {
		return err
	}
	return l.take(ctx, key, turn, fn)
}

// Steps is Run for what takes long and can be divided: each step has a turn of its own, until one is the last. Only the first may find that too many wait.
func (l *Line) Steps(ctx context.Context, key string, step func() (last bool, err error)) error {
	over := false
	err := l.Run(ctx, key, func() (err error) {
		over, err = step()
		return err
	})
	for err == nil && !over {
		turn, _ := l.enter(key, math.MaxInt)
		err = l.take(ctx, key, turn, func() (err error) {
			over, err = step()
			return err
		})
	}
	return err
}

// take runs fn once turn is closed.
func (l *Line) take(ctx context.Context, key string, turn chan struct{}, fn func() error) error {
	select {
	case <-turn:
	case <-ctx.Done():
		if l.leave(key, turn) {
			return ctx.Err()
		}
	}
	defer l.done()
	if ctx.Err() != nil { // no one waits for it
		return ctx.Err()
	}
	return fn()
}

// enter puts a caller into the line, unless most of its key wait. The channel that it returns is closed when the turn comes.
func (l *Line) enter(key string, most int) (turn chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	turn = make(chan struct{})
	switch {
	case l.free():
		l.taken, l.began = l.taken+1, time.Now()
		close(turn)
		return turn, nil
	case l.of[key] >= most:
		return nil, ErrBusy
	}
	l.waiting.Add(key, waiter{key, turn}, 1)
	l.of[key]++
	return turn, nil
}

// free tells whether a caller can begin at once.
func (l *Line) free() bool {
	if l.cfg.Rest > 0 {
		return l.taken == 0 && !l.resting
	}
	return l.taken < l.cfg.AtOnce
}

// done ends the turn of one caller.
func (l *Line) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken--
	if l.cfg.Rest == 0 {
		l.next()
		return
	}
	if l.taken > 0 { // others have it yet
		return
	}
	// In fake time nothing has passed: with the race detector, Go 1.26 crashes if goroutines of a bubble make timers that are due at once.
	rest := min(time.Duration(l.cfg.Rest)*time.Since(l.began), restMax)
	if rest == 0 {
		l.next()
		return
	}
	l.resting = true
	time.AfterFunc(rest, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.resting = false
		l.next()
	})
}

// next begins turns of the first callers, as the keys follow each other.
func (l *Line) next() {
	first := l.waiting.Cut(l.cfg.AtOnce - l.taken)
	l.taken, l.began = l.taken+len(first), time.Now()
	for _, w := range first {
		close(w.turn)
		l.left(w.key)
	}
}

// leave takes a caller out of the line. It is false if its turn has come by now: done ends it.
func (l *Line) leave(key string, turn chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.waiting.Remove(key, func(w waiter) bool { return w.turn == turn }) {
		return false
	}
	l.left(key)
	return true
}

func (l *Line) left(key string) {
	if l.of[key]--; l.of[key] == 0 {
		delete(l.of, key)
	}
}
