package gateway

import (
	"sync"

	"github.com/yardmaster-io/yardmaster/shared/admission"
	"github.com/yardmaster-io/yardmaster/shared/fair"
)

// gathering is the group commit of one partition: the log syncs each message to disk, one after the other, so what comes
// while one flush is under way goes together with the next. Domains take turns.
type gathering[T gathered] struct {
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

// gathered is what waits for a flush. Its weight, in bytes, is 1 or more.
type gathered interface {
	load() (domain string, weight int)
}

// newGathering makes one that flushes bytesMax at most, and share of one domain.
func newGathering[T gathered](turns func(domain string) int, queuedBytesMax, bytesMax, share int, flush func(batch []T)) *gathering[T] {
	return &gathering[T]{flush: flush, bytesMax: bytesMax, places: admission.New(queuedBytesMax), queue: fair.Queue[T]{Turns: turns, Share: share}}
}

// add queues an item, or returns false: its domain has no room there to wait.
func (c *gathering[T]) add(item T) bool {
	domain, weight := item.load()
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

// takeAll takes out what waits.
func (c *gathering[T]) takeAll() (all []T) {
	c.mu.Lock()
	for batch := c.queue.Cut(c.bytesMax); len(batch) > 0; batch = c.queue.Cut(c.bytesMax) {
		all = append(all, batch...)
	}
	c.mu.Unlock()
	for _, item := range all {
		c.places.Give(item.load())
	}
	return all
}

// run flushes until nothing waits.
func (c *gathering[T]) run() {
	for batch := c.next(); len(batch) > 0; batch = c.next() {
		c.flush(batch)
	}
}

// next takes what goes with the next flush. If there is nothing, flushing is over.
func (c *gathering[T]) next() []T {
	c.mu.Lock()
	batch := c.queue.Cut(c.bytesMax)
	c.flushing = len(batch) > 0
	c.mu.Unlock()
	for _, item := range batch {
		c.places.Give(item.load())
	}
	return batch
}
