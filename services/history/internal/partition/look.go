package partition

import (
	"context"
	"errors"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/shared/turns"
)

// lookRetryAfter is when to ask again if there is no place to wait.
const lookRetryAfter = time.Second

// Look runs fn, which looks at all tasks in memory for a domain, in the owner's goroutine and waits for it. One goes after the other, domains
// take turns, and after each as much time as it took is left to everything else. So however many a domain asks for, the partition
// is not held up for others, nor loses its lease (I14). Without a lease, another owner may have admitted more: the error says so (I12).
func (o *Owner) Look(ctx context.Context, domain string, fn func(r *replica.Replica)) error {
	leased := true
	err := o.looks.Run(ctx, domain, func() error {
		return o.ask(ctx, func() {
			if leased = o.leased(); leased && ctx.Err() == nil { // else no one waits for it
				fn(o.core)
			}
		})
	})
	switch {
	case err == nil && !leased:
		return o.unsure()
	case errors.Is(err, turns.ErrBusy):
		return o.tooMany()
	case err != nil && err == ctx.Err():
		return fault.New(fault.Unavailable, "the owner of partition %d is busy", o.Partition)
	}
	return err
}

func (o *Owner) tooMany() error {
	return fault.New(fault.ResourceExhausted, "too many queries wait for partition %d", o.Partition).After(lookRetryAfter)
}
