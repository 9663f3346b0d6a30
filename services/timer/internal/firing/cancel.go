package firing

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
)

// ErrTooLarge: the records that a call asks for do not fit into one answer.
var ErrTooLarge = fmt.Errorf("the records of these tasks exceed %d bytes: ask for fewer at a time", CancelBytesMax)

// Cancelled is the answer to a cancel.
type Cancelled struct {
	// Records are the encoded records that were taken out, now or before.
	Records [][]byte
	// Fired are the tasks that were fired lately.
	Fired []ids.TaskID
}

// cancelCall is one call on its way through the loop.
type cancelCall struct {
	ids []ids.TaskID
	// Set by the loop, before done is closed.
	err       error
	cancelled []due.Ref
	fired     []ids.TaskID
	done      chan struct{}
}

// Cancel takes waiting tasks out. The loop decides the race with firing; a task
// it reports as cancelled will not be fired, whoever owns the partition. Tasks it
// does not know are in neither list. Repeated, it finds the same records again,
// until they are purged.
func (o *Owner) Cancel(ctx context.Context, all []ids.TaskID) (Cancelled, error) {
	if err := o.catchUp(ctx); err != nil {
		return Cancelled{}, err
	}
	// The records are fetched first: once cancelled they may be purged.
	records, err := o.recordsOf(ctx, all)
	if err != nil {
		return Cancelled{}, err
	}
	call := &cancelCall{ids: all, done: make(chan struct{})}
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
	answer := Cancelled{Fired: call.fired}
	var late []*ref // parked between the two looks
	for _, r := range call.cancelled {
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

// recordsOf fetches the records of those tasks that are here.
func (o *Owner) recordsOf(ctx context.Context, all []ids.TaskID) (map[ids.TaskID][]byte, error) {
	var refs []*ref
	bytes := 0
	err := o.ask(ctx, func() {
		seen := make(map[ids.TaskID]bool, len(all))
		for _, id := range all {
			stay, status := o.table.Find(id)
			if seen[id] || status != due.Waiting && status != due.Cancelled {
				continue
			}
			seen[id] = true
			bytes += stay.Bytes
			refs = append(refs, &ref{seq: stay.Seq, index: stay.Index, id: id})
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
// table forgets the tasks, a cursor is written, the callers are told. The cursor
// is what makes another owner, which may not have read the tombstones, start
// anew before it fires.
func (o *Owner) cancelAll(ctx context.Context) error {
	calls := o.cancels
	o.cancels = nil
	if len(calls) == 0 {
		return nil
	}
	buckets := map[int64][]ids.TaskID{}
	for _, call := range calls {
		for _, id := range call.ids {
			if stay, status := o.table.Find(id); status == due.Waiting {
				buckets[stay.Bucket] = append(buckets[stay.Bucket], id)
			}
		}
	}
	failed := o.tombstone(ctx, buckets)
	if err := o.fence(ctx); mustEnd(err) {
		return err // the callers learn from the end of this owner
	} else if err != nil {
		failed = errors.Join(failed, err)
	}
	for _, call := range calls {
		o.answer(call, failed)
	}
	return nil
}

// tombstone voids the tasks of each bucket, as far as that can be stored.
func (o *Owner) tombstone(ctx context.Context, buckets map[int64][]ids.TaskID) error {
	var mu sync.Mutex
	var failed error
	var stored []ids.TaskID
	var writers sync.WaitGroup
	slots := make(chan struct{}, tombstonesParallel)
	for bucket, all := range buckets {
		slots <- struct{}{}
		writers.Go(func() {
			err := o.tombstoneOne(ctx, bucket, all)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			} else {
				stored = append(stored, all...)
			}
			<-slots
		})
	}
	writers.Wait()
	nowMS := time.Now().UnixMilli()
	before := o.table.Len()
	for _, id := range stored {
		o.table.Cancel(id, nowMS)
		o.unfenced = true
	}
	o.Gauges.Cancelled(before - o.table.Len())
	return failed
}

// tombstoneOne repeats an append of unknown outcome until it is known: a task
// must not fire after its tombstone was stored. If ctx ends meanwhile this
// owner ends too, and the next one reads what was stored.
func (o *Owner) tombstoneOne(ctx context.Context, bucket int64, all []ids.TaskID) error {
	key, data := rand.Text(), batch.Tombstones(all, o.LogVersion())
	for wait := retryFirst; ; wait = min(2*wait, retryLast) {
		storing, done := context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
		err := o.Pruner.Tombstone(storing, bucket, key, data)
		done()
		if !errors.Is(err, ErrOutcomeUnknown) || !sleep(ctx, wait) {
			return err
		}
		o.Logger.Warn("the outcome of a cancel is unknown, trying again", "bucket", bucket, "error", err)
	}
}

// fence writes the cursor as it stands where tombstones came after the last one.
func (o *Owner) fence(ctx context.Context) error {
	if !o.unfenced {
		return nil
	}
	return o.append(ctx, nil, o.table.Cursor())
}

func (o *Owner) answer(call *cancelCall, failed error) {
	seen := make(map[ids.TaskID]bool, len(call.ids))
	for _, id := range call.ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		switch stay, status := o.table.Find(id); status {
		case due.Waiting:
			call.err = failed
		case due.Cancelled:
			call.cancelled = append(call.cancelled, stay.Ref)
		case due.Fired:
			call.fired = append(call.fired, id)
		}
	}
	if o.unfenced && len(call.cancelled) > 0 {
		call.err = failed
	}
	close(call.done)
}
