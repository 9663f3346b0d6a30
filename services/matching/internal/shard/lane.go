package shard

import "sync"

// lane carries out jobs beside the loop, one batch after the other: what comes while a
// batch is under way makes the next one.
type lane[T any] struct {
	// run carries out a batch, which it does not keep.
	run func(batch []T)
	// beside counts the goroutines that run.
	beside *sync.WaitGroup

	mu    sync.Mutex
	next  []T
	spare []T
	busy  bool
}

// queue adds a job to the next batch. The jobs of one turn are one batch, so that is started only then.
func (l *lane[T]) queue(job T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = append(l.next, job)
}

// start has what is queued carried out.
func (l *lane[T]) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.busy && len(l.next) > 0 {
		l.busy = true
		l.beside.Go(l.work)
	}
}

// work runs batches until there is none.
func (l *lane[T]) work() {
	for batch := l.take(); len(batch) > 0; batch = l.take() {
		l.run(batch)
		clear(batch)
		l.spare = batch[:0]
	}
}

func (l *lane[T]) take() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := l.next
	l.next, l.spare = l.spare, nil
	l.busy = len(batch) > 0
	return batch
}
