package intake

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/shared/batchclose"
	"github.com/yardmaster-io/yardmaster/shared/parallel"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/uniquekey"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// reader reads what the log has of tasks, and asks the owners for them.
type reader struct {
	log        HistoryLog
	tasks      owners.Tasks
	partitions int
}

// refusedBy is why the log refuses the tasks of s for good, nil if it does not: their batch is closed in their partition.
func (l reader) refusedBy(ctx context.Context, s *submission) (refused, err error) {
	if s.batch() == "" {
		return nil, nil
	}
	closed, err := batchclose.Closed(ctx, l.log, s.closeKey())
	if err != nil || !closed {
		return nil, err
	}
	return batchRefusal(s.batch(), &logv1.BatchHome{ClosedAtMs: 1}), nil
}

// batchRefusal is why a batch takes no tasks, or nil.
func batchRefusal(id string, home *logv1.BatchHome) error {
	const path = "/tasks/0/batch_id"
	switch {
	case home == nil:
		return fault.At(fault.NotFound, path, "there is no batch %q: make it with batches.create", id)
	case home.EndedAtMs != 0:
		return fault.At(fault.FailedPrecondition, path, "the batch %q is over", id)
	case home.ClosedAtMs != 0:
		return fault.At(fault.FailedPrecondition, path, "the batch %q is closed", id)
	}
	return nil
}

// holds tells whether message seq of its partition holds s, and was taken in time. One that the log has forgotten
// was read, and the owners know.
func (l reader) holds(ctx context.Context, s *submission, seq uint64) (bool, error) {
	m, err := l.log.Message(ctx, s.partition, seq)
	if err != nil {
		return false, err
	}
	id := s.id(0)
	if m == nil {
		task, err := l.tasks.LookUp(ctx, s.call.Domain, id, time.Time{})
		return task != nil, err
	}
	var b logv1.Batch
	if err := b.UnmarshalVT(m.Data); err != nil {
		return false, nil // another's, and not readable: the owner sees to it
	}
	for _, r := range b.Tasks {
		if string(r.Id) == string(id[:]) {
			return r.WithinMs == 0 || m.Time.UnixMilli() <= id.Time().UnixMilli()+r.WithinMs, nil
		}
	}
	return false, nil
}

// find asks the owners of all partitions that s may be in for its first task: it is stored whole, and placed there. Without an error what
// is not found was not in the log when find began.
func (l reader) find(ctx context.Context, s *submission) (found bool, err error) {
	n := l.partitions
	if s.pinned {
		n = 1
	}
	var away atomic.Pointer[error]
	var at atomic.Int64
	err = parallel.Each(ctx, n, askedAtOnce, func(ctx context.Context, i int) error {
		p := (s.home + i) % l.partitions
		task, err := l.tasks.LookUp(ctx, s.call.Domain, ids.NewTaskID(s.Made, p, mix(s.seed, 0)), time.Time{})
		if task != nil {
			at.Store(int64(p))
			return errFound
		}
		if err != nil { // another one may have it
			away.Store(&err)
		}
		return nil
	})
	if found = err != nil; found {
		s.place(int(at.Load()))
	} else if e := away.Load(); e != nil {
		return false, *e
	}
	return found, nil
}

// errFound ends a search.
var errFound = errors.New("it is found")

// headOf reads what the log says about the key of a task.
func (l reader) headOf(ctx context.Context, p int, r *logv1.Record) (uniquekey.Head, error) {
	m, err := l.log.LastFor(ctx, p, uniqueSubject(p, r))
	if err != nil || m == nil {
		return uniquekey.Head{}, err
	}
	var said logv1.UniqueKey
	if err := said.UnmarshalVT(m.Data); err != nil {
		return uniquekey.Head{}, fault.New(fault.Internal, "message %d of partition %d does not say who has a unique key: %v", m.Seq, p, err)
	}
	if err := logversion.Check(said.LogVersion); err != nil {
		return uniquekey.Head{}, fault.New(fault.Internal, "message %d of partition %d: %v", m.Seq, p, err)
	}
	id, err := ids.TaskIDFromBytes(said.TaskId)
	if err != nil {
		return uniquekey.Head{}, fault.New(fault.Internal, "message %d of partition %d: %v", m.Seq, p, err)
	}
	return uniquekey.Head{Seq: m.Seq, Task: id, FreeAt: said.FreeAtMs, At: m.Time, Within: time.Duration(said.WithinMs) * time.Millisecond}, nil
}
