package partition

import (
	"context"
	"errors"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/fair"
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
	// stageCommand has the timer fire a task that waits there, then asks the archive, and the log if neither has it. The
	// order matters: a task moves from the first to the last, and the ends of the lanes are those of after the timer's
	// answer.
	stageCommand stage = iota
	// stageArchive looks for tasks that outcomes name; most have ended.
	stageArchive
	// stageAway looks in the timer store and in the log for those that have not.
	stageAway
	stages
)

func firstStage(s replica.Search) stage {
	if s.Command {
		return stageCommand
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

func newSearches(w writers) searches {
	s := searches{writers: w}
	for at := range s.stages {
		s.stages[at].queue.Turns = w.Weight
	}
	return s
}

// add queues searches and begins as many as may run.
func (s *searches) add(levels replica.Levels, all []replica.Search) {
	for _, one := range all {
		s.enqueue(firstStage(one), &sought{replica.Found{Search: one}, levels})
	}
	s.begin()
}

func (s *searches) enqueue(at stage, f *sought) {
	s.stages[at].queue.Add(f.Domain, f, 1)
}

func (s *searches) begin() {
	for at := range stages {
		q := &s.stages[at]
		for q.queue.Len() > 0 && q.running < searchJobsMax {
			job := q.queue.Cut(searchIDsMax)
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
	case stageCommand:
		return nil, w.askForCommands(ctx, job, dec)
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

// askForCommands notes where the tasks of commands are. A task that it does not find may still come: the replica waits
// for the lanes.
func (w writers) askForCommands(ctx context.Context, job []*sought, dec searchDecoder) error {
	// A letter is deleted once its task is back in the timer store, so it is read before that; and it is there before the archive knows the end, so those without
	// one are looked for once more behind that. Else an owner that was overtaken would refuse what the next one has carried out.
	if err := w.askLetters(ctx, job, dec); err != nil {
		return err
	}
	wanted := make([]replica.Search, len(job))
	for i, f := range job {
		wanted[i] = f.Search
	}
	var early Early
	err := w.persist(ctx, "fire tasks early", func(ctx context.Context) (err error) {
		early, err = w.Timer.FireEarly(ctx, wanted)
		return err
	})
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
		f.Coming = early.Coming[f.ID]
		hint, fired := early.Fired[f.ID]
		dead := f.Archived != nil && f.Archived.State == taskstate.Dead
		if f.Coming || f.Archived != nil && !dead {
			continue
		}
		levels, some := f.levels.Behind(f.Ends)
		if f.Unsure = some && dead; !some || dead && !fired {
			continue // without the timer's hint the log is searched where the task was submitted
		}
		unread, at, err := w.Reader.Unread(ctx, f.Search, hint, levels)
		if err != nil {
			w.Logger.Debug("the search for an unread task failed", "partition", w.Partition, "task_id", f.ID.String(), "error", err)
		}
		dec.unread(f, unread, at)
	}
	return nil
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
		f.Archived = dec.taskOf(archived[i])
	}
	return nil
}

// askLetters notes the dead letters that redrives bring back, where they are not known.
func (w writers) askLetters(ctx context.Context, job []*sought, dec searchDecoder) error {
	var wanted []replica.Search
	var of []*sought
	for _, f := range job {
		if f.Redrive && f.DeadLetter == nil {
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
				of[i].DeadLetter, of[i].DeadLetterSeq = dec.taskOf(l.Record), l.Seq
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
	if f.Waiting = dec.taskOf(waiting); f.Waiting != nil || f.Archived != nil && fired == 0 {
		return nil
	}
	var unread *logv1.Record
	var at ids.Position
	err = w.persist(ctx, "search of the log", func(ctx context.Context) (err error) {
		unread, at, err = w.Reader.Unread(ctx, f.Search, fired, f.levels)
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

func (d searchDecoder) taskOf(r *logv1.Record) *taskstate.Task {
	if r == nil {
		return nil
	}
	e, err := d.Decoder.Entry(r)
	if err != nil {
		id, _ := ids.TaskIDFromBytes(r.Id) // a broken record may have none
		d.Logger.Error("another store returned a broken record", "partition", d.Partition, "task_id", id.String(), "error", err)
		return nil
	}
	return &e.Task
}

func (d searchDecoder) unread(f *sought, r *logv1.Record, at ids.Position) {
	if f.Unread = d.taskOf(r); f.Unread != nil {
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
