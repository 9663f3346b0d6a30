package firing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// fire stores the next chunk of due tasks, if there is one, or now and then a cursor without tasks, so that the next owner need not read much before it
// fires. It ends with an error only where this owner must end.
func (o *Owner) fire(ctx context.Context) (fired bool, err error) {
	if time.Now().Before(o.retryAt) {
		return false, nil
	}
	if o.StorageFull != nil && o.StorageFull() != "" { // what is due waits here, where it has its room already
		o.retryAt = time.Now().Add(fullPause)
		return false, nil
	}
	chunk, ok := o.table.NextChunk(o.Now().UnixMilli(), o.limits)
	if !ok {
		if chunk.Cursor = (due.Rest{Table: o.table}).Renew(); chunk.Cursor.EarlyFrom < o.table.Cursor().EarlyFrom+renewAfter {
			return false, nil
		}
	}
	all, err := o.encode(ctx, chunk)
	if err != nil {
		o.table.Abort()
		return false, o.recoverRecords(ctx, err)
	}
	err = o.append(ctx, all, chunk.Cursor)
	switch {
	case err == nil:
	case mustEnd(err):
		return false, err
	default:
		o.table.Abort()
		o.backOff("due tasks could not be stored, trying again", err)
		return false, nil
	}
	now := o.Now()
	o.table.Commit(now.UnixMilli(), o.cursorSeq)
	o.retry.Reset()
	o.reportFired(chunk, now)
	return true, nil
}

// reportFired tells how late the tasks of a chunk were, those of one due time together, and how many were early.
func (o *Owner) reportFired(chunk due.Chunk, now time.Time) {
	for _, m := range chunk.Messages {
		if m.Lane == ids.LaneLater {
			o.Gauges.Early(len(m.Records))
		}
		for from := 0; from < len(m.DueMS); {
			to := from + 1
			for to < len(m.DueMS) && m.DueMS[to] == m.DueMS[from] {
				to++
			}
			o.Gauges.Fired(to-from, now.Sub(time.UnixMilli(m.DueMS[from])))
			from = to
		}
	}
}

// mustEnd tells errors of append after which this owner cannot go on.
func mustEnd(err error) bool {
	return errors.Is(err, ErrOvertaken) || errors.Is(err, ErrOutcomeUnknown) || unknownVersion(err)
}

// encode fetches the records of a chunk and makes its messages. They carry the
// newest log version of those that were read, where that is newer than what this
// node knows the cluster to write: a copied record is of the format that it was.
func (o *Owner) encode(ctx context.Context, chunk due.Chunk) ([]Submit, error) {
	refs := make([]*ref, 0, chunk.Tasks)
	room := make([]ref, chunk.Tasks)
	for _, m := range chunk.Messages {
		for _, r := range m.Records {
			room[len(refs)] = ref{seq: r.Seq, index: r.Index, id: r.ID}
			refs = append(refs, &room[len(refs)])
		}
	}
	if err := o.fetch(ctx, refs, o.cache); err != nil {
		return nil, err
	}
	version := max(o.LogVersion(), o.versionRead)
	all := make([]Submit, len(chunk.Messages))
	for i, m := range chunk.Messages {
		records := make([][]byte, len(m.Records))
		for i, r := range refs[:len(m.Records)] {
			records[i] = r.record
		}
		refs = refs[len(m.Records):]
		all[i] = Submit{Domain: m.Domain, Tasklist: m.Tasklist, Lane: m.Lane, Data: batch.Join(records, version)}
	}
	return all, nil
}

// recoverRecords follows a failed fetch. Records that are gone have been fired by another
// owner, perhaps early while this one loaded, or somebody emptied the store; then
// they are lost, and the others must not wait for them.
func (o *Owner) recoverRecords(ctx context.Context, err error) error {
	var lost *lostError
	if !errors.As(err, &lost) {
		o.backOff("due tasks could not be fetched, trying again", err)
		return nil
	}
	_, seq, err := o.readCursor(ctx)
	if err != nil {
		return err
	}
	if seq != o.cursorSeq {
		return fmt.Errorf("the records of due tasks are gone: %w", ErrOvertaken)
	}
	for _, r := range lost.refs {
		o.table.Lose(r.id)
		o.Logger.Error("a waiting task is no longer in the timer store: it was fired early while this owner loaded, or the store has lost it", "task_id", r.id.String(), "sequence", r.seq)
	}
	return nil
}

// append stores messages and cursor behind the last cursor, and finds out
// whether they were stored. An error that mustEnd does not know says that they
// were not; ErrOutcomeUnknown comes only when ctx has ended.
func (o *Owner) append(ctx context.Context, all []Submit, c due.Cursor) error {
	for wait := backoff.New(retryFirst, retryLast); ; {
		// Not ctx: who leaves finishes what is under way.
		storing, done := context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
		began := time.Now()
		seq, err := o.Log.Append(storing, all, c, o.cursorSeq)
		done()
		switch {
		case err == nil:
			o.Gauges.Appended(time.Since(began))
			o.committed(seq)
			return nil
		case !errors.Is(err, ErrOvertaken) && !errors.Is(err, ErrOutcomeUnknown):
			return err
		}
		// A refusal too may be due to a first try of ours that was stored.
		last, lastSeq, readErr := o.readCursor(ctx)
		if readErr != nil {
			return readErr
		}
		switch due.OutcomeOf(c, o.cursorSeq, last, lastSeq) {
		case due.Stored:
			o.committed(lastSeq)
			return nil
		case due.Overtaken:
			return fmt.Errorf("the cursor is at %d, not %d: %w", lastSeq, o.cursorSeq, ErrOvertaken)
		}
		o.Logger.Warn("the outcome of storing due tasks was unknown, storing them again", "error", err)
		if !wait.Sleep(ctx) {
			return fmt.Errorf("ended meanwhile: %w", ErrOutcomeUnknown)
		}
	}
}

func (o *Owner) committed(seq uint64) {
	o.cursorSeq = seq
	o.cursors++
}

// readCursor asks until it has an answer, or ctx ends.
func (o *Owner) readCursor(ctx context.Context) (due.Cursor, uint64, error) {
	for wait := backoff.New(retryFirst, retryLast); ; {
		asking, done := context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
		c, seq, err := o.Log.Cursor(asking)
		done()
		if err == nil {
			return c, seq, nil
		}
		if unknownVersion(err) {
			return due.Cursor{}, 0, err
		}
		o.Logger.Warn("the firing cursor cannot be read, trying again", "error", err)
		if !wait.Sleep(ctx) {
			return due.Cursor{}, 0, fmt.Errorf("read the firing cursor: %w: %w", ErrOutcomeUnknown, err)
		}
	}
}

// backOff puts off the next chunk.
func (o *Owner) backOff(what string, err error) {
	delay := o.retry.Next()
	o.retryAt = time.Now().Add(delay)
	o.Logger.Warn(what, "retry_in", delay, "error", err)
}
