package partition

import (
	"context"
	"errors"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/shared/admission"
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
		return tooMany(o.Partition)
	case err != nil && err == ctx.Err():
		return fault.New(fault.Unavailable, "the owner of partition %d is busy", o.Partition)
	}
	return err
}

func tooMany(partition int) error {
	return fault.New(fault.ResourceExhausted, "too many queries wait for partition %d", partition).After(lookRetryAfter)
}

// room bounds how many callers ask one store at a time, and by domain how many wait for that. Those who wait go in
// order.
type room struct {
	slots  chan struct{}
	places *admission.Room
}

func newRoom(slots, most int) *room {
	return &room{slots: make(chan struct{}, slots), places: admission.New(most)}
}

// enter waits for a slot until ctx ends. ErrReaderBusy: there is no place to wait. A caller that has entered calls
// leave.
func (r *room) enter(ctx context.Context, domain string) (leave func(), err error) {
	if !r.places.Enter(domain) {
		return nil, ErrReaderBusy
	}
	select {
	case r.slots <- struct{}{}:
		return func() {
			<-r.slots
			r.places.Leave(domain)
		}, nil
	case <-ctx.Done():
		r.places.Leave(domain)
		return nil, ctx.Err()
	}
}
