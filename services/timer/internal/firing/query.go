package firing

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
)

// Filter chooses waiting tasks. Empty fields match all.
type Filter struct {
	Domain, Tasklist, Type string
	// First and Retry choose tasks that wait for their first attempt, and for another one.
	First, Retry bool
	// Before chooses tasks with smaller ids, which are older; zero = all.
	Before ids.TaskID
	// Limit is how many are wanted.
	Limit int
}

func (f Filter) matches(s due.Stay) bool {
	g := s.Group
	return g.Domain == f.Domain && (f.Before == ids.TaskID{} || bytes.Compare(s.ID[:], f.Before[:]) < 0) && (f.Tasklist == "" || g.Tasklist == f.Tasklist) &&
		(f.Type == "" || g.Type == f.Type) && (g.Retry && f.Retry || !g.Retry && f.First)
}

// Located tells where a task is. All zero: it is not known here.
type Located struct {
	// Record is encoded, of a waiting task.
	Record []byte
	// Fired: its record is in the history log, at LogSeq; 0 = the place is not known.
	Fired  bool
	LogSeq uint64
}

// Locate tells where a task is, to a caller of a domain, empty = a service of ours.
// An owner that was overtaken may name as waiting what another one has fired since. It has read the
// store to its end, so it names no earlier stay than the last. That is enough for history: the verdicts on
// earlier stays do not depend on whether that one has been fired.
func (o *Owner) Locate(ctx context.Context, id ids.TaskID, domain string) (Located, error) {
	if err := o.catchUp(ctx); err != nil {
		return Located{}, err
	}
	for range locateTries {
		var stay due.Stay
		var status due.Status
		err := o.ask(ctx, func() { stay, status = o.table.Find(id, domain) })
		if err != nil {
			return Located{}, err
		}
		if status != due.Waiting {
			return Located{Fired: status == due.Fired, LogSeq: stay.LogSeq}, nil
		}
		want := &ref{seq: stay.Seq, index: stay.Index, id: id}
		if err := o.fetchHere(ctx, []*ref{want}); err != nil || want.record != nil {
			return Located{Record: want.record}, err
		}
		// Gone between the two looks.
	}
	return Located{}, nil
}

// fetchHere is fetch for readers: records that went away meanwhile are no failure.
func (o *Owner) fetchHere(ctx context.Context, refs []*ref) error {
	err := o.fetch(ctx, refs, nil)
	if lost := (*lostError)(nil); errors.As(err, &lost) {
		return nil
	}
	return err
}

// Waiting counts the waiting tasks of a tasklist, or of a domain.
func (o *Owner) Waiting(ctx context.Context, domain, tasklist string) (int, error) {
	n := 0
	if err := o.ask(ctx, func() { n = o.table.Waiting(domain, tasklist) }); err != nil {
		return 0, err
	}
	return n, nil
}

// Tasklists counts the waiting tasks of up to limit tasklists of a domain behind one name, sorted by name.
func (o *Owner) Tasklists(ctx context.Context, domain, after string, limit int) ([]due.Count, error) {
	var all []due.Count
	if err := o.ask(ctx, func() { all = o.table.Tasklists(domain, after, limit) }); err != nil {
		return nil, err
	}
	return all, nil
}

// List returns the encoded records of waiting tasks, the newest first, and whether there may be
// more. The index is visited in slices, so that firing goes on meanwhile.
func (o *Owner) List(ctx context.Context, f Filter) (records [][]byte, more bool, err error) {
	var found []due.Ref
	newestFirst := func(a, b due.Ref) int { return bytes.Compare(b.ID[:], a.ID[:]) }
	keep := func() {
		slices.SortFunc(found, newestFirst)
		found = slices.CompactFunc(found, func(a, b due.Ref) bool { return a.ID == b.ID })
		found = found[:min(len(found), f.Limit)]
	}
	for from, next := uint32(0), true; next; {
		err := o.ask(ctx, func() {
			from, next = o.table.Scan(from, scanSlots, func(s due.Stay) {
				if !f.matches(s) {
					return
				}
				if found = append(found, s.Ref); len(found) >= 2*f.Limit+1000 {
					keep()
				}
			})
		})
		if err != nil {
			return nil, false, err
		}
	}
	keep()
	refs := make([]*ref, len(found))
	for i, r := range found {
		refs[i] = &ref{seq: r.Seq, index: r.Index, id: r.ID}
	}
	if err := o.fetchHere(ctx, refs); err != nil {
		return nil, false, err
	}
	for _, r := range refs {
		if r.record != nil {
			records = append(records, r.record)
		}
	}
	return records, len(found) == f.Limit, nil
}
