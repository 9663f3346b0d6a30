// Package batcher is group commit: while one flush runs, the next batch gathers.
//
// Owns: the queue between many callers that each have one item and a flush that
// costs about the same for one item as for a thousand; its limits; the cutting of
// batches. Keys, which are domains, take turns by weight (package fair), and no key has all places.
//
// Never does: wait for a batch to fill. There is no linger timer: on an idle
// system an item is flushed at once, alone; under load batches grow by themselves
// as flushes take longer. Nothing blocks the caller, and no goroutine is left when
// there is nothing to do.
//
// On failure: a full queue refuses the item, which is how overload reaches the
// caller. The meaning of a failed flush is between flush and the items: flush tells
// each of them its outcome.
package batcher

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/yardmaster-io/yardmaster/shared/admission"
	"github.com/yardmaster-io/yardmaster/shared/fair"
)

var (
	// ErrFull refuses an item because its key has as many in the queue as it may. Trying again later
	// helps: to the caller this is RESOURCE_EXHAUSTED.
	ErrFull = errors.New("batcher: the queue is full")
	// ErrClosed refuses an item because the batcher is closed.
	ErrClosed = errors.New("batcher: closed")
)

// Config is the limits of a batcher. The caller says how much an item weighs: its bytes, or 1.
type Config struct {
	// InFlight is how many flushes run at once, 1 or more. With 1 the flushes follow each other.
	InFlight int
	// BatchMax is the weight of a batch at most; an item that weighs more goes alone.
	BatchMax int
	// QueuedMax is the weight that may wait, besides the batches in flight; of one key three quarters of it.
	QueuedMax int
	// Turns is how many turns a key has for each one of others; nil = all have as many.
	Turns func(key string) int
}

// Batcher gathers items into batches and flushes them. It is safe for concurrent
// use, also from inside flush.
type Batcher[T any] struct {
	cfg    Config
	flush  func(ctx context.Context, batch []T)
	ctx    context.Context // of the flushes
	cancel context.CancelFunc
	// places are what waits, by key.
	places *admission.Room

	mu       sync.Mutex
	waiting  fair.Queue[queued[T]]
	workers  int // goroutines, at most cfg.InFlight
	starting int // those of them that have not looked for a batch yet
	closed   bool
	drained  chan struct{} // closed once nothing is left after closing
}

// queued is an item that waits.
type queued[T any] struct {
	item   T
	key    string
	weight int
}

// New returns a batcher without starting anything.
//
// Flush is called with one batch at a time per flush in flight, never with an
// empty one. The slice is flush's own. The items of a key keep the order of Add;
// with more than one flush in flight the
// flushes of two batches overlap, so a caller that needs order across batches sets
// InFlight to 1. The context is cancelled when Close runs out of time.
func New[T any](cfg Config, flush func(ctx context.Context, batch []T)) *Batcher[T] {
	b := &Batcher[T]{
		cfg: cfg, flush: flush, drained: make(chan struct{}), places: admission.New(cfg.QueuedMax),
		waiting: fair.Queue[queued[T]]{Turns: cfg.Turns},
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// Add queues an item of a key, whose weight is 1 or more, and returns at once. An error means that the item was not taken and
// flush will never see it; otherwise it is in exactly one batch.
func (b *Batcher[T]) Add(key string, item T, weight int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	if !b.places.Take(key, weight) {
		return ErrFull
	}
	b.waiting.Add(key, queued[T]{item, key, weight}, weight)
	b.wake()
	return nil
}

// Close refuses further items and waits until those taken have been flushed. If
// ctx ends first, Close returns an error that wraps ctx's and cancels the context
// of all flushes; the rest of the queue is still handed to flush, with that
// cancelled context, so that every item hears of its outcome. Close may be called
// again to wait again.
func (b *Batcher[T]) Close(ctx context.Context) error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		if b.workers == 0 {
			close(b.drained)
		}
	}
	b.mu.Unlock()
	defer b.cancel()
	select {
	case <-b.drained:
		return nil
	case <-ctx.Done():
		select {
		case <-b.drained: // both at once
			return nil
		default:
		}
		return fmt.Errorf("batcher: closed before everything was flushed: %w", ctx.Err())
	}
}

// wake starts a worker if one is allowed and none is about to look anyway: a
// worker takes its batch when it first runs, so a burst of items from one caller
// goes into one batch.
func (b *Batcher[T]) wake() {
	if b.starting == 0 && b.workers < b.cfg.InFlight {
		b.starting++
		b.workers++
		go b.work()
	}
}

// work flushes until nothing waits.
func (b *Batcher[T]) work() {
	for first := true; ; first = false {
		batch := b.next(first)
		if batch == nil {
			return
		}
		b.flush(b.ctx, batch)
	}
}

// next takes a batch off the queue. With none there it returns nil, and
// the worker has been signed off.
func (b *Batcher[T]) next(first bool) []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	if first {
		b.starting--
	}
	taken := b.waiting.Cut(b.cfg.BatchMax)
	if len(taken) == 0 {
		b.workers--
		if b.closed && b.workers == 0 {
			close(b.drained)
		}
		return nil
	}
	batch := make([]T, len(taken))
	for i, q := range taken {
		batch[i] = q.item
		b.places.Give(q.key, q.weight)
	}
	if b.waiting.Len() > 0 {
		b.wake() // more than one batch came while the worker was starting
	}
	return batch
}
