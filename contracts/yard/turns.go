package yard

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turnLength is how long a poll may hold its slots while another tasklist waits for one.
const turnLength = 100 * time.Millisecond

// turns shares the slots of a worker among the polls of its tasklists. Who wants slots waits in line, so each
// tasklist gets its turn. While the line is not empty polls are short. Who is first in line and finds no slot has the
// oldest long poll withdrawn, which began when the line was empty. That is the exception, since the engine learns of it
// only when it has an answer for that poll.
type turns struct {
	// line is held by the one that is first. Go serves the senders that wait in the order they came.
	line chan struct{}
	// fair is what each tasklist has of the slots if all have work.
	fair int

	mu sync.Mutex
	// inLine counts those who want slots.
	inLine int
	// waiting are the long polls under way, the oldest first.
	waiting []*turn
}

// turn is one long poll under way.
type turn struct {
	since     time.Time
	cancel    context.CancelFunc
	withdrawn bool
}

func newTurns(share int) *turns { return &turns{line: make(chan struct{}, 1), fair: max(share, 1)} }

// share is how many of n slots one may take: where others are in line, no more than its fair part.
func (t *turns) share(n int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inLine > 1 {
		return min(n, t.fair)
	}
	return n
}

// reserve waits for its turn and then for slots, and takes up to n. It returns 0 when ctx has ended.
func (t *turns) reserve(ctx context.Context, s *slots, n int) int {
	t.queue(1)
	defer t.queue(-1)
	select {
	case t.line <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	defer func() { <-t.line }()
	for {
		patience, cancel := context.WithTimeout(ctx, turnLength)
		got := s.reserve(patience, t.share(n))
		cancel()
		if got > 0 || ctx.Err() != nil {
			return got
		}
		t.withdraw()
	}
}

func (t *turns) queue(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inLine += n
}

// enter begins a poll that is to wait for most at most, and says how long it may. Its context ends where the poll is
// withdrawn, and leave, which must be called, tells whether it was.
func (t *turns) enter(ctx context.Context, most time.Duration) (polling context.Context, wait time.Duration, leave func() (withdrawn bool)) {
	polling, cancel := context.WithCancel(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inLine > 0 {
		return polling, min(most, turnLength), func() bool { cancel(); return false }
	}
	own := &turn{since: time.Now(), cancel: cancel}
	t.waiting = append(t.waiting, own)
	return polling, most, func() bool {
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.waiting = slices.DeleteFunc(t.waiting, func(w *turn) bool { return w == own })
		return own.withdrawn
	}
}

// withdraw ends the oldest poll, if it had its turn. One at a time: a poll that ends frees a slot soon.
func (t *turns) withdraw() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return
	}
	if oldest := t.waiting[0]; !oldest.withdrawn && time.Since(oldest.since) >= turnLength {
		oldest.withdrawn = true
		oldest.cancel()
	}
}
