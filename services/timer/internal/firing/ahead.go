package firing

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/ahead"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
)

// errMoves: tasks come into memory just now, or leave it, so an answer could miss some. The next one will not.
var errMoves = errors.New("tasks come into memory just now")

// Ahead answers what is due in the time to come. Each answer is of one moment at which no bucket comes into memory.
type Ahead struct{ *Owner }

// Count adds up the waiting tasks that are due in the time to come, and returns how many of the domain wait in all, or of its tasklist.
func (o Ahead) Count(ctx context.Context, s *ahead.Sums) (waiting int, err error) {
	err = o.searches.Run(ctx, s.Domain, func() error {
		return o.unmoved(ctx, func() error {
			near := func(t due.Stay) {
				s.Add(topology.TimerBucket(t.DueMS), ahead.Kind{Domain: t.Group.Domain, Tasklist: t.Group.Tasklist, Type: t.Group.Type}, 1)
			}
			if err := scan(ctx, o.Owner, near, func() {}); err != nil {
				return err
			}
			n, at := 0, s.From
			for more := true; more; {
				var some []farKind
				err := o.ask(ctx, func() {
					counts := o.table.Counts()
					if n = counts.Waiting(s.Domain, s.Tasklist); s.Tasklist != "" {
						n += counts.Others(s.Domain)
					}
					at, more = counts.Far(s.Domain, at, s.Until, func(bucket int64, g *due.Group, tasks int) bool {
						some = append(some, farKind{bucket, ahead.Kind{Domain: g.Domain, Tasklist: g.Tasklist, Type: g.Type}, tasks})
						return false
					})
				})
				if err != nil {
					return err // n may still be set
				}
				more = !addFar(s, some) && more
			}
			waiting = n
			return nil
		})
	})
	return waiting, err
}

// farKind is how many tasks of a kind are due in a bucket that is not near.
type farKind struct {
	bucket int64
	ahead.Kind
	tasks int
}

// addFar adds counts, which are in the order of their buckets, until there is enough. It runs outside of the loop: a minute may have very many types.
func addFar(s *ahead.Sums, all []farKind) (enough bool) {
	for i, one := range all {
		if (i == 0 || one.bucket != all[i-1].bucket) && s.Enough(one.bucket) {
			return true
		}
		s.Add(one.bucket, one.Kind, int64(one.tasks))
	}
	return false
}

// unmoved has do read what waits, and fails if a bucket comes into memory meanwhile, or leaves it.
func (o Ahead) unmoved(ctx context.Context, do func() error) error {
	before, err := o.nearUpTo(ctx)
	if err == nil {
		err = do()
	}
	if err != nil {
		return err
	}
	if after, err := o.nearUpTo(ctx); err != nil || after != before {
		return cmp.Or(err, errMoves)
	}
	return nil
}

func (o Ahead) nearUpTo(ctx context.Context) (int64, error) {
	bucket, ok := int64(0), false
	if err := o.ask(ctx, func() { bucket, ok = o.table.Counts().NearUpTo() }); err != nil {
		return 0, err
	}
	if !ok {
		return 0, errMoves
	}
	return bucket, nil
}

// Compare orders positions.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Bucket, q.Bucket), cmp.Compare(p.Seq, q.Seq), cmp.Compare(p.Index, q.Index))
}

// dueFound is a task in memory, and its position.
type dueFound struct {
	at Position
	due.Found
}

// DueRange bounds a list by due time: from a position on, and before a bucket.
type DueRange struct {
	From  Position
	Until int64
}

// List hands the encoded records of the waiting tasks of a range to visit, with the positions behind them, up to f.Limit of those in memory and f.Limit of
// others, until that has enough, or searchTime is over. The list goes by bucket, and in a bucket as tasks lie in the store; visit gets those in memory first.
// All up to end were visited; with more there may be others behind it, and some of these were visited too.
func (o Ahead) List(ctx context.Context, f Filter, r DueRange, visit func(next Position, record []byte) (enough bool, err error)) (end Position, more bool, err error) {
	err = o.searches.Run(ctx, f.Domain, func() error {
		return o.unmoved(ctx, func() error {
			over := time.Now().Add(searchTime)
			if end, more, err = o.near(ctx, f, r, over, visit); err != nil {
				return err
			}
			s := farSearch{owner: o.Owner, filter: f, next: r.From, until: r.Until, over: over, left: f.Limit}
			if more {
				s.until = min(s.until, end.Bucket+1)
			}
			s.visit = func(record []byte) (bool, error) { return visit(s.next, record) }
			moreFar, err := s.run(ctx)
			if moreFar && (!more || s.next.Compare(end) < 0) {
				end, more = s.next, true
			}
			return err
		})
	})
	return end, more, err
}

// near visits those of a range that are in memory, in order. All up to end were visited.
func (o Ahead) near(ctx context.Context, f Filter, r DueRange, over time.Time, visit func(Position, []byte) (bool, error)) (end Position, more bool, err error) {
	found := due.NewFirsts(f.Limit, func(a, b dueFound) int { return a.at.Compare(b.at) })
	err = scan(ctx, o.Owner, func(s due.Stay) {
		at := Position{topology.TimerBucket(s.DueMS), far.Place{Seq: s.Seq, Index: s.Index}}
		if at.Bucket < r.Until && at.Compare(r.From) >= 0 && f.matches(s) {
			found.Add(dueFound{at, due.Found{Ref: s.Ref, Bytes: s.Bytes}})
		}
	}, found.Trim)
	if err != nil {
		return end, false, err
	}
	first, full := found.All()
	all := make([]due.Found, len(first))
	for i, one := range first {
		all[i] = one.Found
	}
	bodies := newCache(searchCacheBytes)
	for n := 0; n < len(all); {
		part := all[n : n+due.FirstOf(all[n:], searchTasks, searchBytes)]
		refs, err := refsOf(ctx, o.Owner, part, bodies)
		if err != nil {
			return end, false, err
		}
		for i, ref := range refs {
			end = first[n+i].at
			end.Index++
			if ref.record == nil {
				continue // it was fired meanwhile
			}
			enough, err := visit(end, ref.record)
			if err != nil || enough && n+i+1 < len(all) {
				return end, true, err
			}
		}
		if n += len(part); n < len(all) && time.Now().After(over) {
			return end, true, nil
		}
	}
	return end, full, nil
}
