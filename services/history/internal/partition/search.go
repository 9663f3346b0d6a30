package partition

import (
	"context"
	"math"

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
	// searchShare is how many of them are of one domain before it is the next one's turn.
	searchShare = 50
)

// searches look for tasks in the other stores, off the loop. Their state is the loop's. Domains
// take turns: one that asks for a hundred thousand tasks which are nowhere must not hold up
// the cancel of another's.
type searches struct {
	writers
	waiting map[string][]replica.Search
	turns   []string // the domains of waiting
	running int
}

// add queues searches and begins as many as may run.
func (s *searches) add(levels [ids.Lanes]uint64, all []replica.Search) {
	for _, one := range all {
		if len(s.waiting[one.Domain]) == 0 {
			s.turns = append(s.turns, one.Domain)
		}
		s.waiting[one.Domain] = append(s.waiting[one.Domain], one)
	}
	for len(s.turns) > 0 && s.running < searchesMax {
		job := s.next()
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

// next takes the searches of one job.
func (s *searches) next() (job []replica.Search) {
	for len(s.turns) > 0 && len(job) < searchIDsMax {
		domain := s.turns[0]
		s.turns = s.turns[1:]
		all := s.waiting[domain]
		n := min(len(all), searchShare, searchIDsMax-len(job))
		job = append(job, all[:n]...)
		if n < len(all) {
			s.waiting[domain] = all[n:]
			s.turns = append(s.turns, domain)
		} else {
			delete(s.waiting, domain)
		}
	}
	return job
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
	if f.Taken != nil || f.Archived != nil {
		return true
	}
	hint := a.fired[f.ID]
	if !f.Cancel {
		waiting, fired, ok := w.locate(ctx, f.ID)
		if !ok {
			return false
		}
		f.Waiting, hint = entry(waiting), fired
	}
	levels, some := unreadBehind(levels, a.ends)
	if !some {
		return true
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

// unreadBehind are the read levels, but without end for the lanes that are read to where they
// end: nothing is looked for there. Some tells whether there is any other. To look for a task
// costs as much as the log is long since its creation, and most that are asked for are nowhere.
func unreadBehind(levels [ids.Lanes]uint64, ends [Sources]uint64) (behind [ids.Lanes]uint64, some bool) {
	for lane, level := range levels {
		if behind[lane] = level; ends[lane] <= level {
			behind[lane] = math.MaxUint64
		} else {
			some = true
		}
	}
	return behind, some
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
