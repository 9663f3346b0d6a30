package partition

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/shared/turns"
)

// base is what the parts of an owner share: the loop, the writers, the readers.
type base struct {
	Deps
	calls chan call
	// origin is where the clock of replica.Now.Mono begins.
	origin time.Time
	// work ends with the owner.
	work context.Context
	stop context.CancelFunc
	// epoch is the owner's, once it has claimed the partition.
	epoch uint64
	// leaseUntil is for the writers and for who asks: nothing is written or shown when it is over (ns after origin).
	leaseUntil atomic.Int64
	// inLog and inTimer are for callers who look for a task there. The archive has a bound of its own.
	inLog, inTimer *room
	// looks is who waits to look at all that is in memory.
	looks *turns.Line
	// give hands the replica an input; it is for the loop's goroutine.
	give func(replica.Input)
}

func (b *base) now() replica.Now {
	now := time.Now()
	return replica.Now{MS: b.Clock.At(now).UnixMilli(), Mono: now.Sub(b.origin)}
}

// leased tells whether the lease holds. It is for any goroutine.
func (b *base) leased() bool { return int64(b.now().Mono) < b.leaseUntil.Load() }

// call is what another goroutine wants of the owner's: do, or leave if the owner ends before that. Leave may be nil.
type call struct{ do, leave func() }

// post hands fn to the owner's goroutine. It is for other goroutines.
func (b *base) post(ctx context.Context, fn func()) bool { return b.postOr(ctx, fn, nil) }

// postOr hands do to the owner's goroutine. If it returns true, either do or leave runs.
func (b *base) postOr(ctx context.Context, do, leave func()) bool {
	select {
	case b.calls <- call{do, leave}:
		if b.work.Err() != nil {
			b.endCalls() // the owner may not have seen it
		}
		return true
	case <-ctx.Done():
		return false
	case <-b.work.Done():
		return false
	}
}

// endCalls tells those whose calls are queued that the owner has ended; its loop runs no more.
func (b *base) endCalls() {
	for {
		select {
		case c := <-b.calls:
			if c.leave != nil {
				c.leave()
			}
		default:
			return
		}
	}
}

// report hands the replica the outcome of an effect.
func (b *base) report(in replica.Input) {
	b.post(b.work, func() { b.give(in) })
}
