package firing

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// Filter chooses waiting tasks. Empty fields match all.
type Filter struct {
	Domain, Tasklist, Type string
	// First and Retry choose tasks that wait for their first attempt, and for another one.
	First, Retry bool
	// Before chooses tasks with smaller ids, which are older; zero = all.
	Before ids.TaskID
	// Limit is how many are looked at, at most.
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
	// LogSeq is where its record is in the history log, if it was fired recently; 0 = it was not, or the place is not known.
	LogSeq uint64
}

// Locate tells where a task is, to a caller of a domain, empty = a service of ours.
// An owner that was overtaken may name as waiting what another one has fired since. It has read the
// store to its end, so it names no earlier stay than the last. This is enough for history: the verdicts on
// earlier stays do not depend on whether that one has been fired.
func (o *Owner) Locate(ctx context.Context, id ids.TaskID, domain string) (at Located, err error) {
	err = o.locates.Run(ctx, domain, func() error {
		found, err := o.locate(ctx, id, domain)
		at = found
		return err
	})
	return at, err
}

func (o *Owner) locate(ctx context.Context, id ids.TaskID, domain string) (Located, error) {
	if err := o.catchUp(ctx); err != nil {
		return Located{}, err
	}
	for tries, wait := 0, backoff.New(catchUpFirst, catchUpWait); tries < locateTries; tries++ {
		var stay due.Stay
		var status due.Status
		err := o.ask(ctx, func() { stay, status = o.table.Find(id, domain) })
		if err != nil {
			return Located{}, err
		}
		if status == due.Loading {
			if !wait.Sleep(ctx) {
				return Located{}, ctx.Err()
			}
			tries--
			continue
		}
		if status != due.Waiting {
			record, err := farReader{o}.locate(ctx, id, domain)
			if err != nil || record != nil {
				return Located{Record: record}, err
			}
			before := status
			if err := o.ask(ctx, func() { stay, status = o.table.Find(id, domain) }); err != nil {
				return Located{}, err
			}
			if status == before {
				return Located{LogSeq: stay.LogSeq}, nil
			}
			continue // it came near meanwhile
		}
		want := &ref{seq: stay.Seq, index: stay.Index, id: id}
		if err := o.fetchHere(ctx, []*ref{want}, nil); err != nil || want.record != nil {
			return Located{Record: want.record}, err
		}
		// Gone between the two looks.
	}
	return Located{}, nil
}

// fetchHere is fetch for readers: records that went away meanwhile are no failure.
func (o *Owner) fetchHere(ctx context.Context, refs []*ref, bodies *cache) error {
	err := o.fetch(ctx, refs, bodies)
	if lost := (*lostError)(nil); errors.As(err, &lost) {
		return nil
	}
	return err
}

// Waiting counts the waiting tasks of a tasklist, or of a domain.
func (o *Owner) Waiting(ctx context.Context, domain, tasklist string) (int, error) {
	n := 0
	if err := o.ask(ctx, func() { n = o.table.Counts().Waiting(domain, tasklist) }); err != nil {
		return 0, err // n may still be set
	}
	return n, nil
}

// Domains is what waits of some domains, without those of which nothing does.
func (o *Owner) Domains(ctx context.Context, names iter.Seq[string]) (map[string]due.Total, error) {
	var all map[string]due.Total
	err := o.ask(ctx, func() { all = o.table.Counts().Domains(names) })
	if err != nil {
		return nil, err // all may still be set
	}
	return all, nil
}

// OfDomains is what waits of each domain, those without a waiting task left out.
func OfDomains(ctx context.Context, o *Owner) ([]due.OfDomain, error) {
	var all []due.OfDomain
	err := o.ask(ctx, func() { all = o.table.Counts().OfDomains() })
	if err != nil {
		return nil, err // all may still be set
	}
	return all, nil
}

// Tasklists counts the waiting tasks of up to limit tasklists of a domain behind one name, sorted by name.
func (o *Owner) Tasklists(ctx context.Context, domain, after string, limit int) (all []due.Count, err error) {
	err = o.searches.Run(ctx, domain, func() error {
		var counted []due.Count
		if err := o.ask(ctx, func() { counted = o.table.Counts().Tasklists(domain, after, limit) }); err != nil {
			return err
		}
		all = counted
		return nil
	})
	return all, err
}

// List hands the encoded records of waiting tasks to visit, the newest first, until that has enough, or searchTime is over; at the
// least some. All from the newest down to end were looked at, and with more there may be older ones.
func (o *Owner) List(ctx context.Context, f Filter, visit func(records [][]byte) (enough bool, err error)) (end ids.TaskID, more bool, err error) {
	err = o.searches.Run(ctx, f.Domain, func() error {
		over := time.Now().Add(searchTime)
		all, full, err := o.newest(ctx, f)
		if err != nil {
			return err
		}
		bodies := newCache(searchCacheBytes)
		enough := false
		for len(all) > 0 && !enough && (end == ids.TaskID{} || time.Now().Before(over)) {
			part := all[:due.FirstOf(all, searchTasks, searchBytes)]
			records, err := o.stored(ctx, part, bodies)
			if err != nil {
				return err
			}
			if enough, err = visit(records); err != nil {
				return err
			}
			all, end = all[len(part):], part[len(part)-1].ID
		}
		more = full || len(all) > 0
		return nil
	})
	return end, more, err
}

// newest finds the newest f.Limit tasks; full reports whether there may be others.
func (o *Owner) newest(ctx context.Context, f Filter) (all []due.Found, full bool, err error) {
	found := due.NewFirsts(f.Limit, due.Newest)
	err = scan(ctx, o, func(s due.Stay) {
		if f.matches(s) {
			found.Add(due.Found{Ref: s.Ref, Bytes: s.Bytes})
		}
	}, found.Trim)
	if err != nil {
		return nil, false, err
	}
	all, full = found.All()
	return all, full, nil
}

// scan visits the tasks in memory in slices, so that firing goes on meanwhile. Between two of them it calls between, outside of the loop.
func scan(ctx context.Context, o *Owner, visit func(due.Stay), between func()) error {
	below := uint32(0)
	if err := o.ask(ctx, func() { below = o.table.Slots() }); err != nil {
		return err
	}
	for below > 0 {
		if err := o.ask(ctx, func() { below = o.table.Scan(below, scanSlots, visit) }); err != nil {
			return err
		}
		between()
	}
	return nil
}

// stored are the records of all that are still stored.
func (o *Owner) stored(ctx context.Context, all []due.Found, bodies *cache) (records [][]byte, err error) {
	refs, err := refsOf(ctx, o, all, bodies)
	for _, r := range refs {
		if r.record != nil {
			records = append(records, r.record)
		}
	}
	return records, err
}

// refsOf are all of them, with the records of those that are still stored.
func refsOf(ctx context.Context, o *Owner, all []due.Found, bodies *cache) ([]*ref, error) {
	refs := make([]*ref, len(all))
	for i, r := range all {
		refs[i] = &ref{seq: r.Seq, index: r.Index, id: r.ID}
	}
	return refs, o.fetchHere(ctx, refs, bodies)
}
