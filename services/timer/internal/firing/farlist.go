package firing

import (
	"context"
	"errors"
	"time"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
)

// Position is where a list of the tasks goes on that are not in memory: by bucket, and in a bucket as they lie in the store. The zero Position is the
// beginning.
type Position struct {
	Bucket int64
	far.Place
}

// before reports whether a record lies before p.
func (p Position) before(bucket int64, at far.Place) bool {
	return bucket == p.Bucket && (at.Seq < p.Seq || at.Seq == p.Seq && at.Index < p.Index)
}

// errEnough ends the reading of a bucket.
var errEnough = errors.New("enough")

// ListFar hands the encoded records of tasks that are not in memory to visit, those of the nearest minute first, until that has enough, it has read
// f.Limit, or searchTime is over; at the least one. It returns where to go on; more tells whether there may be others.
func (o *Owner) ListFar(ctx context.Context, f Filter, from Position, visit func(record []byte) (enough bool, err error)) (next Position, more bool, err error) {
	err = o.searches.Run(ctx, f.Domain, func() error {
		s := farSearch{owner: o, filter: f, next: from, over: time.Now().Add(searchTime), left: f.Limit, visit: visit}
		more, err = s.run(ctx)
		next = s.next
		return err
	})
	return next, more, err
}

// farSearch is one page of such a list.
type farSearch struct {
	owner  *Owner
	filter Filter
	next   Position
	// until is the first bucket behind the list; 0 = it goes to the end.
	until int64
	over  time.Time
	left  int
	visit func(record []byte) (enough bool, err error)
}

func (s *farSearch) run(ctx context.Context) (more bool, err error) {
	for {
		var bucket int64
		var found, more bool
		upTo := uint64(0)
		err := s.owner.ask(ctx, func() {
			bucket, found, more = s.owner.table.Counts().FarBucket(s.filter.Domain, s.filter.Tasklist, s.next.Bucket)
			upTo = s.owner.readTo
		})
		if err != nil || !more || s.until > 0 && bucket >= s.until {
			return false, err
		}
		if bucket != s.next.Bucket {
			s.next = Position{Bucket: bucket, Place: far.Place{Seq: 1}}
		}
		switch {
		case !found && time.Now().After(s.over):
			return true, nil
		case !found:
			continue
		}
		err = s.owner.Store.ReadBuckets(ctx, []int64{bucket}, max(1, s.next.Seq), upTo, func(m Stored) error { return s.message(ctx, m) })
		if errors.Is(err, errEnough) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		s.next = Position{Bucket: bucket + 1}
	}
}

// message takes the tasks of a message that wait and are wanted.
func (s *farSearch) message(ctx context.Context, m Stored) error {
	body, index, err := Decode(m)
	if err != nil {
		return nil // it is in the quarantine
	}
	var wanted []far.Place
	err = s.owner.ask(ctx, func() {
		for i := range index.Tasks {
			task, at := &index.Tasks[i], far.Place{Seq: m.Seq, Index: uint32(i)}
			if !s.next.before(m.Bucket, at) && s.filter.matches(due.Stay{Group: task.Group, Ref: due.Ref{ID: task.ID}}) && s.owner.table.Far().Has(task.ID, at) {
				wanted = append(wanted, at)
			}
		}
	})
	if err != nil {
		return err
	}
	for _, at := range wanted {
		s.next, s.left = Position{m.Bucket, far.Place{Seq: at.Seq, Index: at.Index + 1}}, s.left-1
		enough, err := s.visit(body.Record(at.Index))
		if err != nil {
			return err
		}
		if enough || s.left <= 0 {
			return errEnough
		}
	}
	s.next = Position{m.Bucket, far.Place{Seq: m.Seq + 1}}
	if time.Now().After(s.over) {
		return errEnough
	}
	return nil
}
