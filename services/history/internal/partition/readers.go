package partition

import (
	"context"
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// positions is where the readers go on after a takeover.
type positions struct {
	lanes  [ids.Lanes]uint64
	events uint64
}

// startReaders follows the log: one reader for the events, never paused, and
// one per lane, paused while the window is full. They must be separate: a single paused
// reader would not see the outcomes that make room. They decode, the loop applies.
func (o *Owner) startReaders(ctx context.Context, from positions) <-chan error {
	failed := make(chan error, 1)
	fail := func(err error) {
		if err == nil || ctx.Err() != nil {
			return
		}
		select {
		case failed <- err:
		default:
		}
	}
	go func() {
		dec := record.NewDecoder()
		err := o.Log.ReadEvents(ctx, from.events, func(r Record) error {
			batch, err := dec.Events(r.Data)
			if err != nil {
				o.poison("event", r.Seq, err)
				batch = &record.Events{}
			}
			o.post(ctx, func() { o.events(r.Seq, r.Time, batch) })
			return nil
		})
		if err != nil {
			fail(fmt.Errorf("read events: %w", err))
		}
	}()
	for lane := range ids.Lane(ids.Lanes) {
		go func() {
			dec := record.NewDecoder()
			err := o.Log.ReadLane(ctx, lane, from.lanes[lane], func(r Record) error {
				entries := o.decodeSubmit(dec, lane, r)
				o.pending[lane].Store(int64(r.Pending) + 1)
				if err := o.gates[lane].enter(ctx, r.Seq, len(entries)); err != nil {
					return nil //nolint:nilerr // ctx ended: the reader notices by itself
				}
				o.post(ctx, func() {
					o.pending[lane].Store(int64(r.Pending))
					o.submit(ids.NewPosition(r.Seq, lane), r.Time, entries)
				})
				return nil
			})
			if err != nil {
				fail(fmt.Errorf("read lane %s: %w", lane, err))
			}
		}()
	}
	return failed
}

// decodeSubmit decodes a submit message; a broken one counts as empty.
func (o *Owner) decodeSubmit(dec *record.Decoder, lane ids.Lane, r Record) []*entry {
	var entries []*entry
	err := dec.Tasks(r.Data, ids.NewPosition(r.Seq, lane), func() *taskstate.Task {
		e := &entry{index: int32(len(entries))}
		entries = append(entries, e)
		return &e.Task
	})
	if err != nil {
		o.poison("submit", r.Seq, err)
		return nil
	}
	return entries
}

// poison reports a record that cannot be read. It must not wedge the partition.
func (o *Owner) poison(what string, seq uint64, err error) {
	o.Metrics.Poison.Add(1)
	o.Logger.Error("the log holds a record that cannot be read; it is left out",
		"partition", o.Partition, "kind", what, "sequence", seq, "error", err)
}
