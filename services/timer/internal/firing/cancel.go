package firing

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
)

// ErrTooLarge: the records that a call asks for do not fit into one answer.
var ErrTooLarge = fmt.Errorf("the records of these tasks exceed %d bytes: ask for fewer at a time", CancelBytesMax)

// errReplaced: a newer history owner has fenced the store, or the tombstones could not be made final.
var errReplaced = errors.New("the cancel of these tasks is not final, or their history partition has a newer owner")

// Cancelled is the answer to a cancel.
type Cancelled struct {
	// Records are the encoded records that were taken out, now or before.
	Records [][]byte
	// Fired are the tasks that were fired recently, and where they went.
	Fired []due.Fate
}

// cancelCall is one call on its way through the loop.
type cancelCall struct {
	wanted []due.Wanted
	// Set by the loop, before done is closed.
	err    error
	answer due.Answer
	done   chan struct{}
}

// Cancel takes waiting tasks out. The loop decides the race with firing; a task
// it reports as cancelled will not be fired, no matter which owner serves the partition. Tasks it
// does not know, and those of other domains, are in neither list. Repeated, it
// finds the same records again, until they are purged.
func (o *Owner) Cancel(ctx context.Context, all []due.Wanted) (Cancelled, error) {
	if err := o.catchUp(ctx); err != nil {
		return Cancelled{}, err
	}
	// The records are fetched first: once cancelled they may be purged.
	records, err := o.recordsOf(ctx, all)
	if err != nil {
		return Cancelled{}, err
	}
	call := &cancelCall{wanted: all, done: make(chan struct{})}
	if err := o.ask(ctx, func() { o.cancels = append(o.cancels, call) }); err != nil {
		return Cancelled{}, err
	}
	select {
	case <-call.done:
	case <-o.ended:
		return Cancelled{}, ErrNotServing
	case <-ctx.Done():
		return Cancelled{}, ctx.Err()
	}
	if call.err != nil {
		return Cancelled{}, call.err
	}
	answer := Cancelled{Fired: call.answer.Fired}
	var late []*ref // parked between the two looks
	for _, r := range call.answer.Cancelled {
		if record, ok := records[r.ID]; ok {
			answer.Records = append(answer.Records, record)
			continue
		}
		late = append(late, &ref{seq: r.Seq, index: r.Index, id: r.ID})
	}
	if err := o.fetch(ctx, late, nil); err != nil {
		return Cancelled{}, err
	}
	for _, r := range late {
		answer.Records = append(answer.Records, r.record)
	}
	return answer, nil
}

// Look tells what Cancel would take out, and takes nothing out.
func (o *Owner) Look(ctx context.Context, all []due.Wanted) (Cancelled, error) {
	if err := o.catchUp(ctx); err != nil {
		return Cancelled{}, err
	}
	records, err := o.recordsOf(ctx, all)
	if err != nil {
		return Cancelled{}, err
	}
	var found Cancelled
	for _, w := range all {
		if record, ok := records[w.ID]; ok {
			found.Records = append(found.Records, record)
			delete(records, w.ID)
		}
	}
	err = o.ask(ctx, func() { found.Fired = o.table.Answer(all).Fired })
	return found, err
}

// recordsOf fetches the records of those tasks that are here.
func (o *Owner) recordsOf(ctx context.Context, all []due.Wanted) (map[ids.TaskID][]byte, error) {
	var refs []*ref
	bytes := 0
	err := o.ask(ctx, func() {
		seen := make(map[ids.TaskID]bool, len(all))
		for _, w := range all {
			stay, status := o.table.FindWanted(w)
			if seen[w.ID] || status != due.Waiting && status != due.Cancelled {
				continue
			}
			seen[w.ID] = true
			bytes += stay.Bytes
			refs = append(refs, &ref{seq: stay.Seq, index: stay.Index, id: w.ID})
		}
	})
	if err != nil {
		return nil, err
	}
	if bytes > CancelBytesMax && len(all) > 1 {
		return nil, ErrTooLarge
	}
	if err := o.fetch(ctx, refs, nil); err != nil {
		return nil, err
	}
	records := make(map[ids.TaskID][]byte, len(refs))
	for _, r := range refs {
		records[r.id] = r.record
	}
	return records, nil
}

// cancelAll answers the calls that wait. The order: tombstones are stored, the
// table forgets the tasks, a cursor is written, the callers get their answer. The log refuses
// the cursor if another owner has fired; if it takes it, another owner, which may not
// have read the tombstones, starts again before it fires. One cursor does for all calls.
func (o *Owner) cancelAll(ctx context.Context) error {
	calls := o.cancels
	o.cancels = nil
	if len(calls) == 0 {
		return nil
	}
	var wanted []due.Wanted
	for _, call := range calls {
		wanted = append(wanted, call.wanted...)
	}
	failed := o.tombstone(ctx, o.table.Tombstones(wanted))
	if err := o.fence(ctx); mustEnd(err) {
		return err // the callers learn from the end of this owner
	} else if err != nil {
		failed = errors.Join(failed, err)
	}
	for _, call := range calls {
		if call.answer = o.table.Answer(call.wanted); call.answer.Undone {
			call.err = cmp.Or(failed, errReplaced)
		}
		close(call.done)
	}
	return nil
}

// tombstone voids the tasks of each bucket, as far as that can be stored.
func (o *Owner) tombstone(ctx context.Context, all []due.Tombstones) error {
	errs := make([]error, len(all))
	_ = parallel.Each(ctx, len(all), tombstonesParallel, func(ctx context.Context, i int) error {
		errs[i] = o.tombstoneOne(ctx, all[i])
		return nil // one that fails does not end the others
	})
	before := o.table.Len()
	for i, one := range all {
		if errs[i] != nil {
			continue
		}
		for _, tomb := range one.All {
			o.table.Cancel(tomb.ID)
		}
	}
	o.Gauges.Cancelled(before - o.table.Len())
	return cmp.Or(errs...)
}

// tombstoneOne repeats an append of unknown outcome until it is known: a task
// must not fire after its tombstone was stored. If ctx ends meanwhile this
// owner ends too, and the next one reads what was stored.
func (o *Owner) tombstoneOne(ctx context.Context, one due.Tombstones) error {
	key, data := rand.Text(), batch.Tombstones(one.All, o.LogVersion())
	for wait := backoff.New(retryFirst, retryLast); ; {
		storing, done := context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
		err := o.Pruner.Tombstone(storing, one.Bucket, key, data)
		done()
		if !errors.Is(err, ErrOutcomeUnknown) || !wait.Sleep(ctx) {
			return err
		}
		o.Logger.Warn("the outcome of a cancel is unknown, trying again", "bucket", one.Bucket, "error", err)
	}
}

// fence writes the cursor as it stands where tombstones, also those of others, came after the last one.
func (o *Owner) fence(ctx context.Context) error {
	if !o.table.Unfenced() {
		return nil
	}
	err := o.append(ctx, nil, o.table.Cursor())
	if err == nil {
		o.table.Fenced()
	}
	return err
}
