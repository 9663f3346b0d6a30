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
	"github.com/yardmaster-io/yardmaster/shared/parallel"
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
			body = c.take(refs[0].seq, n)
		}
		if body == nil {
			missing = append(missing, refs[:n])
		} else {
			lost.refs = append(lost.refs, cut(body, refs[:n])...)
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

func (o *Owner) fetchMissing(ctx context.Context, missing [][]*ref, c *cache, lost *lostError) error {
	ctx, stop := context.WithTimeout(ctx, appendTimeout)
	defer stop()
	var mu sync.Mutex // of the cache, and of lost
	err := parallel.Each(ctx, len(missing), o.Config.FetchParallel, func(ctx context.Context, i int) error {
		refs := missing[i]
		body, err := fetchOne(ctx, o.Store, refs[0].seq)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, ErrGone):
			lost.refs = append(lost.refs, refs...)
			return nil
		case err != nil:
			return err
		}
		lost.refs = append(lost.refs, cut(body, refs)...)
		if c != nil {
			c.put(refs[0].seq, body, body.Records()-len(refs))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("fetch waiting tasks: %w", err)
	}
	return nil
}

func fetchOne(ctx context.Context, store Store, seq uint64) (*batch.Message, error) {
	data, err := store.Get(ctx, seq)
	if err != nil {
		return nil, err
	}
	return batch.Split(data)
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
