package firing

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
)

// lostError says which records are certainly not in the store.
type lostError struct{ refs []*ref }

func (e *lostError) Error() string {
	return fmt.Sprintf("%d records are no longer in the timer store", len(e.refs))
}

// fetch fills in the records of refs, each message asked for once. Cache may be
// nil. It fails with a *lostError where the store works and lacks some of them.
func (o *Owner) fetch(ctx context.Context, refs []*ref, c *cache) error {
	refs = slices.Clone(refs)
	slices.SortFunc(refs, func(a, b *ref) int { return cmp.Compare(a.seq, b.seq) })
	var missing [][]*ref // by message
	var lost lostError
	for len(refs) > 0 {
		n := 1
		for n < len(refs) && refs[n].seq == refs[0].seq {
			n++
		}
		var body *batch.Message
		if c != nil {
			body = c.get(refs[0].seq)
		}
		if body == nil {
			missing = append(missing, refs[:n])
		} else if lost.refs = append(lost.refs, cut(body, refs[:n])...); n == body.Records() {
			c.forget(refs[0].seq)
		}
		refs = refs[n:]
	}
	if len(missing) > 0 {
		if err := o.fetchMissing(ctx, missing, c, &lost); err != nil {
			return err
		}
	}
	if len(lost.refs) > 0 {
		return &lost
	}
	return nil
}

// ref names a record that is wanted, and takes it.
type ref struct {
	seq    uint64
	index  uint32
	id     ids.TaskID
	record []byte
}

// fetched is what became of the refs of one message.
type fetched struct {
	refs []*ref
	body *batch.Message
	err  error
}

func (o *Owner) fetchMissing(ctx context.Context, missing [][]*ref, c *cache, lost *lostError) error {
	ctx, stop := context.WithTimeout(ctx, appendTimeout)
	defer stop()
	work, results := make(chan []*ref), make(chan fetched)
	var workers sync.WaitGroup
	for range min(o.Config.FetchParallel, len(missing)) {
		workers.Go(func() {
			for refs := range work {
				results <- o.fetchOne(ctx, refs)
			}
		})
	}
	go func() {
		for _, refs := range missing {
			work <- refs
		}
		close(work)
		workers.Wait()
		close(results)
	}()
	var failed error
	for r := range results { // to the end: the workers must not be left behind
		switch {
		case errors.Is(r.err, ErrGone):
			lost.refs = append(lost.refs, r.refs...)
		case r.err != nil:
			failed = r.err
			stop()
		default:
			lost.refs = append(lost.refs, cut(r.body, r.refs)...)
			if c != nil && len(r.refs) < r.body.Records() {
				c.put(r.refs[0].seq, r.body)
			}
		}
	}
	if failed != nil {
		return fmt.Errorf("fetch waiting tasks: %w", failed)
	}
	return nil
}

func (o *Owner) fetchOne(ctx context.Context, refs []*ref) fetched {
	data, err := o.Store.Get(ctx, refs[0].seq)
	if err != nil {
		return fetched{refs: refs, err: err}
	}
	body, err := batch.Split(data)
	return fetched{refs: refs, body: body, err: err}
}

// cut copies the records out of their message, so that one small record does not
// keep a large message in memory. It returns those that are not in it.
func cut(body *batch.Message, refs []*ref) (lost []*ref) {
	for _, r := range refs {
		record := body.Record(r.index)
		if record == nil || !bytes.Contains(record, r.id[:]) {
			lost = append(lost, r)
			continue
		}
		r.record = bytes.Clone(record)
	}
	return lost
}
