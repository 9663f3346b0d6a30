package firing

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// How soon, at the latest how often, and how many times in a purge, it is asked
// whether the loop has read what was in the store.
const (
	catchUpFirst = time.Millisecond
	catchUpWait  = 50 * time.Millisecond
	catchUpTries = 40
)

// purge removes what no one needs, every now and then, beside the loop. What
// fails is left for the next time, but for a checkpoint of an unknown log version:
// then the owner must end.
func (o *Owner) purge(ctx context.Context) error {
	for backoff.Sleep(ctx, pace.Of(o.Config.PurgeEvery)) {
		err := o.purgeStore(ctx)
		if err == nil {
			err = o.purgeCursors(ctx)
		}
		if unknownVersion(err) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			o.Logger.Warn("fired tasks could not be removed, trying again later", "error", err)
		}
	}
	return nil
}

func (o *Owner) purgeStore(ctx context.Context) error {
	parked, err := o.Log.Parked(ctx)
	if err != nil {
		return err
	}
	end, err := o.Store.Last(ctx) // after Parked, see due.Table.Purgeable
	if err != nil {
		return err
	}
	for range catchUpTries {
		var all []due.Purge
		caughtUp := false
		err := o.ask(ctx, func() {
			caughtUp = o.readTo >= end
			all = o.table.Purgeable(parked, end)
		})
		if err != nil {
			return err
		}
		if caughtUp {
			return o.purgeAll(ctx, all)
		}
		if !backoff.Sleep(ctx, catchUpWait) {
			return ctx.Err()
		}
	}
	return nil
}

func (o *Owner) purgeAll(ctx context.Context, all []due.Purge) error {
	for _, p := range all {
		if err := o.Pruner.Purge(ctx, p); err != nil {
			return err
		}
		if err := o.ask(ctx, func() { o.table.Purged(p) }); err != nil {
			return err
		}
	}
	return nil
}

// purgeCursors removes the cursors before the last one, when there are many.
func (o *Owner) purgeCursors(ctx context.Context) error {
	var seq uint64
	err := o.ask(ctx, func() {
		if o.cursors >= cursorsKept {
			seq = o.cursorSeq
		}
	})
	if err != nil || seq == 0 {
		return err
	}
	if err := o.Log.DropCursors(ctx, seq); err != nil {
		return err
	}
	return o.ask(ctx, func() { o.cursors = 0 })
}
