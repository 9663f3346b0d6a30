package partition

import (
	"context"
	"errors"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

const (
	// lookingMax is how many looks at what is in memory may wait, by domain.
	lookingMax = 64
	// lookRetryAfter is when to ask again if there is no place to wait.
	lookRetryAfter = time.Second
)

// look runs fn, which looks at all tasks in memory for a domain, in the owner's goroutine and waits for it. One goes after the other, and after
// each as much time as it took is left to everything else. So however many a domain asks for, the partition is not held up
// for others, nor loses its lease (I14).
func (o *Owner) look(ctx context.Context, domain string, fn func()) error {
	busy := fault.New(fault.Unavailable, "the owner of partition %d is busy", o.Partition)
	leave, err := o.looks.enter(ctx, domain)
	switch {
	case errors.Is(err, ErrReaderBusy):
		return fault.New(fault.ResourceExhausted, "too many queries wait for partition %d", o.Partition).After(lookRetryAfter)
	case err != nil:
		return busy
	}
	done := make(chan error, 1)
	posted := o.postOr(ctx, func() {
		began := time.Now()
		if ctx.Err() == nil { // else no one waits for it
			fn()
		}
		done <- nil
		time.AfterFunc(time.Since(began), leave)
	}, func() {
		leave()
		done <- o.leaving()
	})
	if !posted {
		leave()
		return busy
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return busy
	}
}
