package partition

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

const (
	// searchesMax is how many searches may be under way, searchIDsMax how many tasks one
	// looks for: those of a turn are looked for together.
	searchesMax  = 4
	searchIDsMax = 500
)

// searches look for tasks in the other stores, off the loop. Their state is the loop's.
type searches struct {
	writers
	queue   []replica.Search
	running int
}

// add queues searches and begins as many as may run.
func (s *searches) add(levels [ids.Lanes]uint64, all []replica.Search) {
	s.queue = append(s.queue, all...)
	for len(s.queue) > 0 && s.running < searchesMax {
		n := min(len(s.queue), searchIDsMax)
		job := s.queue[:n:n]
		if s.queue = s.queue[n:]; len(s.queue) == 0 {
			s.queue = nil
		}
		s.running++
		go func() {
			found, ok := s.search(s.work, job, levels)
			if !ok {
				return // the owner has ended
			}
			s.post(s.work, func() {
				s.running--
				for _, f := range found {
					s.give(f)
				}
			})
		}()
	}
}

// search asks the timer store, then the archive, then what is not read yet. The order
// matters: a task moves from the first to the last, and the ends of the lanes are
// those of after the timer's answer.
func (w writers) search(ctx context.Context, job []replica.Search, levels [ids.Lanes]uint64) (found []*replica.Found, ok bool) {
	var cancels []replica.Search
	wanted := make([]ids.TaskID, len(job))
	for i, s := range job {
		wanted[i] = s.ID
		if s.Cancel {
			cancels = append(cancels, s)
		}
	}
	var answers answers
	err := w.persist(ctx, "cancel in the timer store", func(ctx context.Context) (err error) {
		answers.taken, answers.fired, err = w.cancelWaiting(ctx, cancels)
		return err
	})
	if err == nil {
		err = w.persist(ctx, "search of tasks", func(ctx context.Context) (err error) {
			if _, answers.ends, err = w.Log.Ends(ctx); err == nil {
				answers.archived, err = w.Reader.Archived(ctx, wanted)
			}
			return err
		})
	}
	if err != nil {
		return nil, false
	}
	dec := record.NewDecoder()
	for i, s := range job {
		f := &replica.Found{Search: s, Ends: [ids.Lanes]uint64(answers.ends[:])}
		// Without an id only the ends are asked for.
		if !s.ID.IsZero() && !w.fill(ctx, f, dec, &answers, i, levels) {
			return nil, false
		}
		found = append(found, f)
	}
	return found, true
}

// answers are what the stores said of a job.
type answers struct {
	taken    []*logv1.Record
	fired    map[ids.TaskID]uint64
	archived []*logv1.Record
	ends     [Sources]uint64
}

// fill notes where the task of the i-th search is. What a command does not find may still come:
// the replica waits for the lanes. It returns false if the owner has ended.
func (w writers) fill(ctx context.Context, f *replica.Found, dec *record.Decoder, a *answers, i int, levels [ids.Lanes]uint64) bool {
	entry := func(r *logv1.Record) *replica.Entry {
		if r == nil {
			return nil
		}
		e, err := dec.Entry(r)
		if err != nil {
			w.Logger.Error("another store returned a broken record", "partition", w.Partition, "error", err)
			return nil
		}
		return e
	}
	f.Archived = entry(a.archived[i])
	for _, r := range a.taken {
		if f.Cancel && ids.TaskID(r.Id) == f.ID && (f.Domain == "" || f.Domain == r.Domain) {
			f.Taken = entry(r)
		}
	}
	hint, fired := a.fired[f.ID]
	if f.Archived != nil || f.Taken != nil && !fired { // what was taken may have been fired before
		return true
	}
	if !f.Cancel {
		waiting, fired, ok := w.locate(ctx, f.ID)
		if !ok {
			return false
		}
		f.Waiting, hint = entry(waiting), fired
	}
	unread, at, err := w.Reader.Unread(ctx, f.ID, hint, levels)
	if err != nil {
		w.Logger.Debug("search of an unread task", "partition", w.Partition, "task_id", f.ID.String(), "error", err)
	}
	if f.Unread = entry(unread); f.Unread != nil {
		f.Unread.Before, f.Unread.Position = f.Unread.Position, at
	}
	return true
}

// locate asks the timer until it answers: without its answer an outcome that came true
// would be NOT_FOUND. What it cannot read it does not have. It returns false if the owner has ended.
func (w writers) locate(ctx context.Context, id ids.TaskID) (waiting *logv1.Record, fired uint64, ok bool) {
	err := w.persist(ctx, "search in the timer store", func(ctx context.Context) (err error) {
		waiting, fired, err = w.Timer.Locate(ctx, id)
		if code := fault.CodeOf(err); code == fault.Internal || code == fault.InvalidArgument {
			w.Logger.Error("the timer cannot look for a task", "partition", w.Partition, "task_id", id.String(), "error", err)
			return nil
		}
		return err
	})
	return waiting, fired, err == nil
}

// cancelWaiting takes tasks out of the timer store, in parts if their records do not
// fit into one answer.
func (w writers) cancelWaiting(ctx context.Context, wanted []replica.Search) ([]*logv1.Record, map[ids.TaskID]uint64, error) {
	if len(wanted) == 0 {
		return nil, nil, nil
	}
	taken, fired, err := w.Timer.Cancel(ctx, wanted)
	if fault.CodeOf(err) != fault.InvalidArgument || len(wanted) == 1 {
		return taken, fired, err
	}
	half := len(wanted) / 2
	taken, fired, err = w.cancelWaiting(ctx, wanted[:half])
	if err != nil {
		return nil, nil, err
	}
	more, moreFired, err := w.cancelWaiting(ctx, wanted[half:])
	for id, seq := range moreFired {
		if fired == nil {
			fired = map[ids.TaskID]uint64{}
		}
		fired[id] = seq
	}
	return append(taken, more...), fired, err
}
