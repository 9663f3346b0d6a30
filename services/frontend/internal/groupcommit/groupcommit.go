// Package groupcommit gathers what goes to one partition while an earlier flush is under way.
//
// Owns: the queue of a partition, in which domains take turns, and its bounds.
// Never does: know what is flushed.
// On failure: an item that finds no room is refused at once.
package groupcommit

import (
	"sync"

	"github.com/yardmaster-io/yardmaster/shared/admission"
	"github.com/yardmaster-io/yardmaster/shared/fair"
)

// MessageBytesMax bounds a message of a group commit. A larger request goes alone.
const MessageBytesMax = 400 << 10

// Queue is the group commit of one partition: the log syncs each message to disk, one after the other, so what comes
// while one flush is under way goes together with the next. Domains take turns.
type Queue[T Item] struct {
	flush func(batch []T)
	// bytesMax bounds a flush: what comes meanwhile waits for it.
	bytesMax int
	// places are what waits in the queue, in bytes, by domain.
	places *admission.Room

	mu    sync.Mutex
	queue fair.Queue[T]
	// flushing: a goroutine takes what waits.
	flushing bool
}

// Item is what waits for a flush. Its weight, in bytes, is 1 or more.
type Item interface {
	Load() (domain string, weight int)
}

// New makes a queue that flushes bytesMax at most, and share of one domain.
func New[T Item](turns func(domain string) int, queuedBytesMax, bytesMax, share int, flush func(batch []T)) *Queue[T] {
	return &Queue[T]{flush: flush, bytesMax: bytesMax, places: admission.New(queuedBytesMax), queue: fair.Queue[T]{Turns: turns, Share: share}}
}

// Add queues an item, or returns false: its domain has no room there to wait.
func (c *Queue[T]) Add(item T) bool {
	domain, weight := item.Load()
	if !c.places.Take(domain, weight) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue.Add(domain, item, weight)
	if !c.flushing {
		c.flushing = true
		go c.run() // takes its batch when it first runs: a burst goes together
	}
	return true
}

// TakeAll takes out what waits.
func (c *Queue[T]) TakeAll() (all []T) {
	c.mu.Lock()
	for batch := c.queue.Cut(c.bytesMax); len(batch) > 0; batch = c.queue.Cut(c.bytesMax) {
		all = append(all, batch...)
	}
	c.mu.Unlock()
	for _, item := range all {
		c.places.Give(item.Load())
	}
	return all
}

// run flushes until nothing waits.
func (c *Queue[T]) run() {
	for batch := c.next(); len(batch) > 0; batch = c.next() {
		c.flush(batch)
	}
}

// next takes what goes with the next flush. If there is nothing, flushing is over.
func (c *Queue[T]) next() []T {
	c.mu.Lock()
	batch := c.queue.Cut(c.bytesMax)
	c.flushing = len(batch) > 0
	c.mu.Unlock()
	for _, item := range batch {
		c.places.Give(item.Load())
	}
	return batch
}
