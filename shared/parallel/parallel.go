// Package parallel does many things at once, but no more than so many at a time.
//
// Owns: nothing that outlives a call. Never does: retry, or go on without telling that something failed. On failure: it returns the
// first error, and what has not begun by then does not begin.
package parallel

import (
	"context"
	"sync"
	"sync/atomic"
)

// Each calls f for each of n, at most so many at a time, and waits for all that have begun. It returns the first error; then the context of the
// others ends.
func Each(ctx context.Context, n, most int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	places := make(chan struct{}, max(1, most))
	var all sync.WaitGroup
	var failed atomic.Pointer[error]
	for i := range n {
		places <- struct{}{}
		if failed.Load() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-places }()
			if err := f(ctx, i); err != nil {
				failed.CompareAndSwap(nil, &err)
				cancel()
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
