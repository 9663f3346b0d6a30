package partition

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/fair"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

const (
	// searchJobsMax is how many jobs of a stage may be under way, searchIDsMax how many tasks one looks for: those of a
	// turn are looked for together.
	searchJobsMax = 2
	searchIDsMax  = 500
)

// stage is what a search asks for next. Each has jobs of its own: where one store is silent, those that need another go
// on.
type stage int

const (
	// stageCancel takes a task out of the timer store; if it is not there, the archive and the log are asked. The order
	// matters: a task moves from the first to the last, and the ends of the lanes are those of after the timer's
	// answer.
	stageCancel stage = iota
	// stageArchive looks for tasks that outcomes name; most have ended.
	stageArchive
	// stageAway looks in the timer store and in the log for those that have not.
	stageAway
	stages
)

func firstStage(s replica.Search) stage {
	if s.Cancel {
		return stageCancel
	}
	return stageArchive
}

// sought is a search under way.
type sought struct {
	replica.Found
	// levels are the read levels as of when it began: what was read later may have ended after the archive was asked.
	levels replica.Levels
}

// searches look for tasks in the other stores, off the loop. Their state is the loop's.
type searches struct {
	writers
	stages [stages]struct {
		queue   fair.Queue[*sought]
		running int
	}
}

// add queues searches and begins as many as may run.
func (s *searches) add(levels replica.Levels, all []replica.Search) {
	for _, one := range all {
		s.enqueue(firstStage(one), &sought{replica.Found{Search: one}, levels})
	}
	s.begin()
}

func (s *searches) enqueue(at stage, f *sought) {
	s.stages[at].queue.Add(f.Domain, f)
}

func (s *searches) begin() {
	for at := range stages {
		q := &s.stages[at]
		for !q.queue.Empty() && q.running < searchJobsMax {
			job := q.queue.Take(searchIDsMax)
			q.running++
			go func() {
				away, err := s.ask(s.work, at, job)
				if err != nil {
					return // the owner has ended
				}
				s.post(s.work, func() { s.asked(at, job, away) })
			}()
		}
	}
}

// asked hands over what a job has found. Away is what has to be looked for further.
func (s *searches) asked(at stage, job, away []*sought) {
	s.stages[at].running--
	for _, f := range job {
		if slices.Contains(away, f) {
			s.enqueue(stageAway, f)
		} else {
			s.give(&f.Found)
		}
	}
	s.begin()
}

// ask carries out one job of a stage. It returns an error only if the owner has ended.
func (w writers) ask(ctx context.Context, at stage, job []*sought) (away []*sought, err error) {
	dec := searchDecoder{w, record.NewDecoder()}
	switch at {
	case stageCancel:
		return nil, w.askForCancels(ctx, job, dec)
	case stageArchive:
		if err := w.askArchive(ctx, job, dec, nil); err != nil {
			return nil, err
		}
		for _, f := range job {
			if f.Archived == nil || f.Archived.State == taskstate.Dead { // it may have come back
				away = append(away, f)
			}
		}
		return away, nil
	default:
		for _, f := range job {
			if err := w.askAway(ctx, f, dec); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}

// askForCancels notes where the tasks of cancels are. A task that it does not find may still come: the replica waits
// for the lanes.
func (w writers) askForCancels(ctx context.Context, job []*sought, dec searchDecoder) error {
	var wanted, looked []replica.Search
	for _, f := range job {
		if f.Update && !f.Take {
			looked = append(looked, f.Search)
		} else {
			wanted = append(wanted, f.Search)
		}
	}
	// A letter is deleted once its task is back in the timer store, so it is read before that; and it is there before the archive knows the end, so those without
	// one are looked for once more behind that. Else an owner that was overtaken would refuse what the next one has carried out.
	if err := w.askLetters(ctx, job, dec); err != nil {
		return err
	}
	found, fired, err := w.askTimer(ctx, "look into the timer store", looked, w.Timer.Look)
	if err != nil {
		return err
	}
	// A task that is parked from now on is not taken out, should a call come late: it may be what this one was for, parked again.
	var upTo uint64
	err = w.persist(ctx, "look at the end of the timer store", func(ctx context.Context) (err error) {
		upTo, err = w.TimerStore.Last(ctx)
		return err
	})
	if err != nil {
		return err
	}
	take := func(ctx context.Context, part []replica.Search) ([]*logv1.Record, map[ids.TaskID]uint64, error) {
		return w.Timer.Cancel(ctx, part, upTo, w.epoch)
	}
	taken, firedNow, err := w.askTimer(ctx, "cancel in the timer store", wanted, take)
	found = append(found, taken...)
	maps.Copy(fired, firedNow)
	if err == nil {
		err = w.askArchive(ctx, job, dec, w.askEnds)
	}
	if err == nil {
		err = w.askLetters(ctx, job, dec)
	}
	if err != nil {
		return err
	}
	for _, f := range job {
		r := recordOf(found, &f.Search)
		if f.Update && !f.Take {
			f.Waiting = dec.entry(r)
		} else {
			f.Taken = dec.entry(r)
		}
		hint, wasFired := fired[f.ID]
		dead := f.Archived != nil && f.Archived.State == taskstate.Dead
		if r != nil && !wasFired || f.Archived != nil && !dead {
			continue // what was taken may have been fired before, and what was dead may have come back
		}
		levels, some := f.levels.Behind(f.Ends)
		if f.Unsure = some && dead; !some || dead && !wasFired {
			continue // without the timer's hint the log is searched where the task was submitted
		}
		unread, at, err := w.Reader.Unread(ctx, f.ID, hint, levels)
		if err != nil {
			w.Logger.Debug("the search for an unread task failed", "partition", w.Partition, "task_id", f.ID.String(), "error", err)
		}
		dec.unread(f, unread, at)
	}
	return nil
}

// recordOf is the record that a search has found, if it is for the caller; nil = none.
func recordOf(all []*logv1.Record, s *replica.Search) *logv1.Record {
	for _, r := range all {
		if ids.TaskID(r.Id) == s.ID && (s.Domain == "" || s.Domain == r.Domain) {
			return r
		}
	}
	return nil
}

// timerCall asks the timer for some tasks.
type timerCall func(context.Context, []replica.Search) (found []*logv1.Record, fired map[ids.TaskID]uint64, err error)

// askTimer asks the timer until it answers.
func (w writers) askTimer(ctx context.Context, what string, wanted []replica.Search, ask timerCall) (found []*logv1.Record, fired map[ids.TaskID]uint64, err error) {
	fired = map[ids.TaskID]uint64{}
	if len(wanted) == 0 {
		return nil, fired, nil
	}
	err = w.persist(ctx, what, func(ctx context.Context) (err error) {
		clear(fired)
		found, err = inParts(ctx, wanted, fired, ask)
		return err
	})
	return found, fired, err
}

// askEnds notes the ends of the lanes.
func (w writers) askEnds(ctx context.Context, job []*sought) error {
	_, ends, err := w.Log.Ends(ctx)
	for _, f := range job {
		f.Ends = [ids.Lanes]uint64(ends[:])
	}
	return err
}

// askArchive notes which tasks have ended, after what comes before it.
func (w writers) askArchive(ctx context.Context, job []*sought, dec searchDecoder, before func(context.Context, []*sought) error) error {
	wanted := make([]replica.Search, len(job))
	for i, f := range job {
		wanted[i] = f.Search
	}
	var archived []*logv1.Record
	err := w.persist(ctx, "search of tasks", func(ctx context.Context) (err error) {
		if before != nil {
			err = before(ctx, job)
		}
		if err == nil {
			archived, err = w.Reader.Archived(ctx, wanted)
		}
		return err
	})
	if err != nil {
		return err
	}
	for i, f := range job {
		f.Archived = dec.entry(archived[i])
	}
	return nil
}

// askLetters notes the dead letters that redrives bring back, where they are not known.
func (w writers) askLetters(ctx context.Context, job []*sought, dec searchDecoder) error {
	var wanted []replica.Search
	var of []*sought
	for _, f := range job {
		if f.Redrive && f.Letter == nil {
			wanted, of = append(wanted, f.Search), append(of, f)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return w.persist(ctx, "search of dead letters", func(ctx context.Context) error {
		letters, err := w.Reader.Letters(ctx, wanted)
		for i, l := range letters {
			if l != nil {
				of[i].Letter, of[i].LetterSeq = dec.entry(l.Record), l.Seq
			}
		}
		return err
	})
}

// askAway notes where a task is that an outcome names and the archive does not have. Whether it was looked for
// everywhere decides about the outcome, so what fails is tried again.
func (w writers) askAway(ctx context.Context, f *sought, dec searchDecoder) error {
	waiting, fired, err := w.locate(ctx, f.ID)
	if err != nil {
		return err
	}
	if f.Waiting = dec.entry(waiting); f.Waiting != nil || f.Archived != nil && fired == 0 {
		return nil
	}
	var unread *logv1.Record
	var at ids.Position
	err = w.persist(ctx, "search of the log", func(ctx context.Context) (err error) {
		unread, at, err = w.Reader.Unread(ctx, f.ID, fired, f.levels)
		if errors.Is(err, ErrSearchTooLong) {
			f.Unsure, err = true, nil
		}
		return err
	})
	dec.unread(f, unread, at)
	return err
}

// searchDecoder decodes what other stores return.
type searchDecoder struct {
	writers
	*record.Decoder
}

func (d searchDecoder) entry(r *logv1.Record) *replica.Entry {
	if r == nil {
		return nil
	}
	e, err := d.Decoder.Entry(r)
	if err != nil {
		d.Logger.Error("another store returned a broken record", "partition", d.Partition, "error", err)
		return nil
	}
	return e
}

func (d searchDecoder) unread(f *sought, r *logv1.Record, at ids.Position) {
	if f.Unread = d.entry(r); f.Unread != nil {
		f.Unread.Before, f.Unread.Position = f.Unread.Position, at
	}
}

// locate asks the timer until it answers: without its answer an outcome that was applied would be NOT_FOUND. An
// unreadable message has no task.
func (w writers) locate(ctx context.Context, id ids.TaskID) (waiting *logv1.Record, fired uint64, err error) {
	err = w.persist(ctx, "search in the timer store", func(ctx context.Context) (err error) {
		waiting, fired, err = w.Timer.Locate(ctx, id)
		if code := fault.CodeOf(err); code == fault.Internal || code == fault.InvalidArgument {
			w.Logger.Error("the timer cannot search for a task", "partition", w.Partition, "task_id", id.String(), "error", err)
			return nil
		}
		return err
	})
	return waiting, fired, err
}

// inParts asks the timer for tasks, in parts if their records do not fit into one answer. It adds those that were fired to fired.
func inParts(ctx context.Context, wanted []replica.Search, fired map[ids.TaskID]uint64, ask timerCall) ([]*logv1.Record, error) {
	found, more, err := ask(ctx, wanted)
	maps.Copy(fired, more)
	if fault.CodeOf(err) != fault.InvalidArgument || len(wanted) == 1 {
		return found, err
	}
	half := len(wanted) / 2
	if found, err = inParts(ctx, wanted[:half], fired, ask); err != nil {
		return nil, err
	}
	rest, err := inParts(ctx, wanted[half:], fired, ask)
	return append(found, rest...), err
}
