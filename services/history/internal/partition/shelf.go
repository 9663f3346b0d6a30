package partition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// pageReads is how many pages a takeover reads at a time.
const pageReads = 8

// shelve writes a page, the n-th of this owner, and then the event that says so. A page is one message: of more, the last is written, which is the end of
// the line. What the log refuses stays in memory.
func (w writers) shelve(n uint64, messages []proposed) {
	stored := replica.Stored{Kind: replica.JobShelve}
	page := messages[len(messages)-1]
	for _, m := range messages[:len(messages)-1] {
		stored.Left = append(stored.Left, m.proposals...)
	}
	err := w.writePage(n, page.data)
	switch {
	case errors.Is(err, ErrRefused):
		w.Logger.Warn("the log does not accept a page of the shelf; its tasks stay in memory", "partition", w.Partition, "tasks", len(page.proposals), "error", err)
		stored.Refused = page.proposals
	case err != nil:
		return
	}
	w.report(stored)
}

func (w writers) writePage(n uint64, page []byte) error {
	var seq uint64
	err := w.persist(w.work, writeShelf, func(ctx context.Context) (err error) {
		seq, err = w.Shelf.Write(ctx, w.epoch, n, page)
		return err
	})
	if err != nil {
		return err
	}
	event := encode(&logv1.EventBatch{LogVersion: w.version(), Events: []*logv1.Event{{Kind: logv1.EventKind_EVENT_KIND_SHELVED, Page: seq}}})
	return w.persist(w.work, writeEvents, func(ctx context.Context) error { return w.Log.Append(ctx, event) })
}

// readPage reads a page, however often that fails; nil = it is deleted. It returns an error if it cannot be decoded, or ctx has ended.
func (w writers) readPage(ctx context.Context, dec *record.Decoder, seq uint64) (page *replica.Page, err error) {
	var data []byte
	err = w.persist(ctx, "read of the shelf", func(ctx context.Context) (err error) {
		data, err = w.Shelf.Read(ctx, seq)
		return err
	})
	if err != nil || data == nil {
		return nil, err
	}
	if page, err = dec.Page(seq, data); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return page, nil
}

// needPage reads a page that must be there.
func (w writers) needPage(ctx context.Context, seq uint64) (*replica.Page, error) {
	page, err := w.readPage(ctx, record.NewDecoder(), seq)
	if err == nil && page == nil {
		err = fmt.Errorf("%w: page %d of the shelf is gone, with the tasks that are on it; restore all stores of this partition together", ErrUnreadable, seq)
	}
	return page, err
}

// readPageInto gives an event that says that a page is written what that has.
func (r *readers) readPageInto(ctx context.Context, dec *record.Decoder, events *replica.Events) error {
	page, err := r.readPage(ctx, dec, events.Page)
	if page != nil {
		events.OnPage = page.Tasks
	}
	return err
}

// giveBack reads a page for the replica. If it is gone, and the lease of this owner is over, an owner that came after it has deleted it.
func (o *Owner) giveBack(seq uint64) {
	page, err := o.writers.needPage(o.work, seq)
	o.post(o.work, func() {
		switch {
		case errors.Is(err, ErrUnreadable) && !o.core.LeaseHolds(o.now().Mono):
			o.fatal = ErrTakenOver
		case err != nil:
			o.fatal = err
		default:
			o.step(page)
		}
	})
}

// takePages gives the replica of a takeover the pages that its checkpoint names, the newest first. It keeps the lease meanwhile.
func (o *Owner) takePages(ctx context.Context, all []replica.PageRef) error {
	for len(all) > 0 {
		some := all[max(0, len(all)-pageReads):]
		all = all[:len(all)-len(some)]
		pages, errs := make([]*replica.Page, len(some)), make([]error, len(some))
		var reads sync.WaitGroup
		for i, p := range some {
			reads.Go(func() { pages[i], errs[i] = o.writers.needPage(ctx, p.Seq) })
		}
		reads.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		for _, page := range slices.Backward(pages) {
			o.step(page)
		}
		if err := o.keepLease(); err != nil {
			return err
		}
	}
	return nil
}

// takeWantedPages gives the replica the pages that what it has read names.
func (o *Owner) takeWantedPages(ctx context.Context) error {
	for {
		wanted := o.core.WantedPages()
		if len(wanted) == 0 {
			return nil
		}
		page, err := o.writers.needPage(ctx, wanted[0])
		if err != nil {
			return err
		}
		o.step(page)
		if err := o.keepLease(); err != nil {
			return err
		}
	}
}

// findOnPages looks for a task on pages of the shelf.
func (b *base) findOnPages(ctx context.Context, domain string, id ids.TaskID, pages []replica.ShelfPage) (*logv1.Record, error) {
	if len(pages) == 0 {
		return nil, nil
	}
	leave, err := b.onShelf.enter(ctx, domain)
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, p := range pages {
		all, err := b.recordsOf(ctx, p.Seq)
		if err != nil {
			return nil, err
		}
		for _, r := range all {
			if ids.TaskID(r.Id) == id {
				return r, nil
			}
		}
	}
	return nil, nil
}

// recordsOf are the tasks on a page.
func (b *base) recordsOf(ctx context.Context, seq uint64) (all []*logv1.Record, err error) {
	data, err := b.Shelf.Read(ctx, seq)
	if err != nil || data == nil {
		return nil, err
	}
	var page logv1.EventBatch
	if err := page.UnmarshalVT(data); err != nil {
		return nil, fmt.Errorf("page %d of the shelf: %w", seq, err)
	}
	for _, e := range page.Events {
		if e.Carried != nil {
			all = append(all, e.Carried)
		}
	}
	return all, nil
}

// listPages returns the newest tasks that match of pages, whose newest come first: at least those that are among the first limit beside what is
// known, which is sorted.
func (o *Owner) listPages(ctx context.Context, req *rpcv1.ListTasksRequest, pages []replica.ShelfPage, limit int, wanted func(*taskstate.Task) bool, known []*yardv1.Task) ([]*yardv1.Task, error) {
	before, err := ids.ParseTaskID(req.GetFilter().GetCursor())
	pages = slices.DeleteFunc(pages, func(p replica.ShelfPage) bool { return err == nil && bytes.Compare(p.Lowest[:], before[:]) >= 0 })
	if len(pages) == 0 {
		return nil, nil
	}
	leave, err := o.onShelf.enter(ctx, req.Domain)
	if err != nil {
		return nil, fault.New(fault.ResourceExhausted, "%v", err)
	}
	defer leave()
	newest := func(a, b *yardv1.Task) int { return strings.Compare(b.TaskId, a.TaskId) }
	var found []*yardv1.Task
	dec := record.NewDecoder()
	for _, p := range pages {
		both := append(slices.Clone(known), found...)
		slices.SortFunc(both, newest)
		if len(both) >= limit && both[limit-1].TaskId > p.Highest.String() {
			break
		}
		all, err := o.recordsOf(ctx, p.Seq)
		if err != nil {
			return nil, fault.New(fault.Unavailable, "read the shelf: %v", err)
		}
		for _, r := range all {
			if e, err := dec.Entry(r); err == nil && wanted(&e.Task) {
				found = append(found, record.Public(&e.Task, true))
			}
		}
		slices.SortFunc(found, newest)
		found = found[:min(len(found), limit)]
	}
	return found, nil
}

// keepLease lets checkpoints be saved while a takeover reads something else than the log.
func (o *Owner) keepLease() error {
	o.step(o.tick())
	o.save()
	for {
		select {
		case c := <-o.calls:
			c.do()
		default:
			return o.fatal
		}
	}
}
