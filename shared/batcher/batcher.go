// Package batcher is group commit: while one flush runs, the next batch gathers.
//
// Owns: the queue between many callers that each have one item and a flush that
// costs about the same for one item as for a thousand; its limits; the cutting of
// batches.
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
)

var (
	// ErrFull refuses an item because the queue is at its limit. Trying again later
	// helps: to the caller this is RESOURCE_EXHAUSTED.
	ErrFull = errors.New("batcher: the queue is full")
	// ErrClosed refuses an item because the batcher is closed.
	ErrClosed = errors.New("batcher: closed")
)

// Batcher gathers items into batches and flushes them. It is safe for concurrent
// use, also from inside flush.
type Batcher[T any] struct {
	cfg    Config
	flush  func(ctx context.Context, batch []T)
	ctx    context.Context // of the flushes
	cancel context.CancelFunc

	mu       sync.Mutex
	waiting  []gathered[T] // in order; only the last one still takes items
	items    int           // in waiting
	bytes    int           // in waiting
	workers  int           // goroutines, at most cfg.InFlight
	starting int           // those of them that have not looked for a batch yet
	expected int           // length of the last batch: room to make for the next
	closed   bool
	drained  chan struct{} // closed once nothing is left after closing
}

// gathered is one batch that waits to be flushed.
type gathered[T any] struct {
	items []T
	bytes int
}

// New returns a batcher without starting anything. It panics if cfg is not valid.
//
// Flush is called with one batch at a time per flush in flight, never with an
// empty one. The slice is flush's own. Batches are cut in the order of Add, and
// items keep that order within a batch; with more than one flush in flight the
// flushes of two batches overlap, so a caller that needs order across batches sets
// InFlight to 1. The context is cancelled when Close runs out of time.
func New[T any](cfg Config, flush func(ctx context.Context, batch []T)) *Batcher[T] {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	b := &Batcher[T]{cfg: cfg, flush: flush, drained: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// Add queues an item, whose weight is its size in bytes on the wire (not
// negative), and returns at once. An error means that the item was not taken and flush will never see
// it; otherwise it is in exactly one batch.
func (b *Batcher[T]) Add(item T, weight int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	// One item always fits an empty queue, or a large one could never be sent.
	if b.items > 0 && (b.items >= b.cfg.MaxQueuedItems || b.bytes+weight > b.cfg.MaxQueuedBytes) {
		return ErrFull
	}
	b.gather(item, weight)
	b.items++
	b.bytes += weight
	b.wake()
	return nil
}

// Queued returns what waits for a flush now: the measure of overload. Batches
// being flushed are not counted.
func (b *Batcher[T]) Queued() (items, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.items, b.bytes
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

// gather puts an item into the batch that still takes items, or begins one.
func (b *Batcher[T]) gather(item T, weight int) {
	if n := len(b.waiting); n > 0 {
		last := &b.waiting[n-1]
		if len(last.items) < b.cfg.MaxItems && last.bytes+weight <= b.cfg.MaxBytes {
			last.items = append(last.items, item)
			last.bytes += weight
			return
		}
	}
	items := make([]T, 0, max(b.expected, 1))
	b.waiting = append(b.waiting, gathered[T]{append(items, item), weight})
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

// next takes the first batch off the queue. With none there it returns nil, and
// the worker has been signed off.
func (b *Batcher[T]) next(first bool) []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	if first {
		b.starting--
	}
	if len(b.waiting) == 0 {
		b.workers--
		if b.closed && b.workers == 0 {
			close(b.drained)
		}
		return nil
	}
	batch := b.waiting[0]
	b.waiting[0] = gathered[T]{} // or the array would keep the items alive
	b.waiting = b.waiting[1:]
	b.items -= len(batch.items)
	b.bytes -= batch.bytes
	b.expected = len(batch.items)
	if len(b.waiting) > 0 {
		b.wake() // more than one batch came while the worker was starting
	}
	return batch.items
}
