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
	queue   []replica.Search
	running int
}

// add queues searches and begins as many as may run.
func (s *searches) add(o *Owner, all []replica.Search) {
	s.queue = append(s.queue, all...)
	for len(s.queue) > 0 && s.running < searchesMax {
		n := min(len(s.queue), searchIDsMax)
		job := s.queue[:n:n]
		if s.queue = s.queue[n:]; len(s.queue) == 0 {
			s.queue = nil
		}
		s.running++
		levels := o.core.ReadLevels()
		go func() {
			found, ok := o.search(o.work, job, levels)
			if !ok {
				return // the owner has ended
			}
			o.post(o.work, func() {
				s.running--
				for _, f := range found {
					o.step(f)
				}
			})
		}()
	}
}

// search asks the timer store, then the archive, then what is not read yet. The order
// matters: a task moves from the first to the last, and the ends of the lanes are
// those of after the timer's answer.
func (o *Owner) search(ctx context.Context, job []replica.Search, levels [ids.Lanes]uint64) (found []*replica.Found, ok bool) {
	var cancels []replica.Search
	wanted := make([]ids.TaskID, len(job))
	for i, s := range job {
		wanted[i] = s.ID
		if s.Cancel {
			cancels = append(cancels, s)
		}
	}
	var taken []*logv1.Record
	fired := map[ids.TaskID]uint64{}
	var archived []*logv1.Record
	var ends [Sources]uint64
	err := o.persist(ctx, "cancel in the timer store", func(ctx context.Context) (err error) {
		taken, fired, err = o.cancelWaiting(ctx, cancels)
		return err
	})
	if err == nil {
		err = o.persist(ctx, "search of tasks", func(ctx context.Context) (err error) {
			if _, ends, err = o.Log.Ends(ctx); err == nil {
				archived, err = o.Reader.Archived(ctx, wanted)
			}
			return err
		})
	}
	if err != nil {
		return nil, false
	}
	byID := make(map[ids.TaskID]*logv1.Record, len(taken))
	for _, r := range taken {
		byID[ids.TaskID(r.Id)] = r
	}
	dec := record.NewDecoder()
	entry := func(r *logv1.Record) *replica.Entry {
		if r == nil {
			return nil
		}
		e, err := dec.Entry(r)
		if err != nil {
			o.Logger.Error("another store returned a broken record", "partition", o.Partition, "error", err)
			return nil
		}
		return e
	}
	for i, s := range job {
		f := &replica.Found{Search: s, Archived: entry(archived[i]), Ends: [ids.Lanes]uint64(ends[:])}
		if r := byID[s.ID]; s.Cancel && r != nil && (s.Domain == "" || s.Domain == r.Domain) {
			f.Taken = entry(r)
		}
		if f.Taken == nil && f.Archived == nil {
			waiting, unread := o.elsewhere(ctx, s, fired[s.ID], levels)
			f.Waiting, f.Unread = entry(waiting), entry(unread)
		}
		found = append(found, f)
	}
	return found, true
}

// elsewhere looks for one task that is neither archived nor was taken from the timer store. What it
// does not find may still come: the replica waits for the lanes.
func (o *Owner) elsewhere(ctx context.Context, s replica.Search, firedAt uint64, levels [ids.Lanes]uint64) (waiting, unread *logv1.Record) {
	if !s.Cancel {
		if waiting, _, err := o.Timer.Locate(ctx, s.ID); err == nil && waiting != nil {
			return waiting, nil
		}
		return nil, nil
	}
	unread, err := o.Reader.Unread(ctx, s.ID, firedAt, levels)
	if err != nil {
		o.Logger.Debug("search of an unread task", "partition", o.Partition, "task_id", s.ID.String(), "error", err)
	}
	return nil, unread
}

// cancelWaiting takes tasks out of the timer store, in parts if their records do not
// fit into one answer.
func (o *Owner) cancelWaiting(ctx context.Context, wanted []replica.Search) ([]*logv1.Record, map[ids.TaskID]uint64, error) {
	if len(wanted) == 0 {
		return nil, nil, nil
	}
	taken, fired, err := o.Timer.Cancel(ctx, wanted)
	if fault.CodeOf(err) != fault.InvalidArgument || len(wanted) == 1 {
		return taken, fired, err
	}
	half := len(wanted) / 2
	taken, fired, err = o.cancelWaiting(ctx, wanted[:half])
	if err != nil {
		return nil, nil, err
	}
	more, moreFired, err := o.cancelWaiting(ctx, wanted[half:])
	for id, seq := range moreFired {
		if fired == nil {
			fired = map[ids.TaskID]uint64{}
		}
		fired[id] = seq
	}
	return append(taken, more...), fired, err
}
