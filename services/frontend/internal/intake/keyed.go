package intake

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/parallel"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/uniquekey"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"

	core "github.com/yardmaster-io/yardmaster/services/frontend/internal/core/intake"
)

// Tasks with unique keys are each for themselves: each goes to the partition that its key names, in one atomic batch with a message that says that it
// has the key now, which the log takes only if nothing else was said about the key since it was read (decision 0040). This guards a
// repeat too: the key says whose it is. So there is no home partition and no message id; a try is void as others are if the log takes it too
// late, and the key of a task that never was is free after a while.

// divide assigns every task its partition and its id, and makes the parts of s.
func (in *Intake) divide(s *submission) []*part {
	s.in, s.results = make([]int, s.tasks()), make([]*yardv1.SubmitResult, s.tasks())
	open := map[int]*part{}
	var parts []*part
	for i, r := range s.accepted.Records {
		p := keyPartition(r, in.Partitioning)
		s.in[i] = p
		id := s.id(i)
		r.Id = id[:]
		pt := open[p]
		if pt == nil || pt.tasks() == partTasksMax {
			pt = &part{of: s, done: make(chan error, 1)}
			pt.call, pt.partition, pt.refusal = s.call, p, s.refusal
			pt.Terms = core.Terms{Made: s.Made, HasID: s.HasID, Tries: s.Tries, Closed: s.Closed, Conflicts: s.conflicts != nil}
			open[p], parts = pt, append(parts, pt)
		}
		pt.open = append(pt.open, openTask{where: i})
		pt.accepted.Records = append(pt.accepted.Records, r)
	}
	for _, pt := range parts {
		pt.accepted, pt.all = validate.Gather(pt.accepted.Records), pt.tasks()
		pt.Replaces = pt.replaces()
		pt.begin(core.Keyed)
	}
	return parts
}

// storeKeyed stores the tasks of s whose keys are free.
func (in *Intake) storeKeyed(s *submission) {
	s.began = time.Now()
	in.Run.Query(s.call.Domain, s.call.Deadline, in.failed(s), func(ctx context.Context) (codec.Message, error) {
		parts := in.divide(s)
		ends := make([]core.End, len(parts))
		var all sync.WaitGroup
		for _, next := range inTurn(parts) {
			all.Go(func() {
				for i, k := range next {
					if ends[k] = in.run(ctx, parts[k]); ends[k].Kind == core.Stored {
						continue
					}
					for _, later := range next[i+1:] { // what comes after it must not be stored before it
						ends[later] = core.End{Kind: core.NotStored, Why: core.NotTried, Certain: !s.Repeats()}
					}
					return
				}
			})
		}
		all.Wait()
		in.endKeyed(s, parts, ends)
		return nil, nil
	})
}

// inTurn are the places of the parts that may be stored at once: those with order keys go one after the other in each partition.
func inTurn(parts []*part) (all [][]int) {
	at := map[int]int{}
	for i, pt := range parts {
		if k, ok := at[pt.partition]; ok && pt.ordered() {
			all[k] = append(all[k], i)
			continue
		}
		at[pt.partition] = len(all)
		all = append(all, []int{i})
	}
	return all
}

// endKeyed answers s.
func (in *Intake) endKeyed(s *submission, parts []*part, ends []core.End) {
	for k, pt := range parts {
		if ends[k].Kind == core.Stored {
			pt.created()
		}
		ends[k].Partly = pt.tasks() < pt.all
	}
	if slices.ContainsFunc(s.results, func(r *yardv1.SubmitResult) bool {
		return r != nil && r.Outcome == yardv1.SubmitOutcome_SUBMIT_OUTCOME_UNSPECIFIED
	}) && !slices.Contains(s.results, nil) {
		s.counted.resolveEach(parts)
		in.untold(s)
		return
	}
	in.join(s, ends, func(i int) *submission { return &parts[i].submission }, func() {
		s.counted.resolveEach(parts)
		var created []*logv1.Record
		for i, r := range s.results {
			if r.Outcome == yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED {
				created = append(created, s.accepted.Records[i])
			}
		}
		if len(created) > 0 {
			in.metrics.countStored(s.call.Domain, created, time.Since(s.call.Received))
		}
	})
}

// do implements stepper.
func (pt *part) do(ctx context.Context, in *Intake, step core.Step) {
	switch step.Do {
	case core.Search:
		err := pt.decideStored(ctx, in.reads)
		pt.Searched(pt.tasks() == 0, err == nil)
	case core.Count:
		pt.of.admission.Do(func() { pt.of.over = in.admit(pt.of) }) // all parts, or none
		pt.over = pt.of.over
		pt.CountedAs(pt.over != nil)
	case core.Check:
		pt.Checked(pt.check(ctx, in))
	case core.Append:
		if !in.HasRoom(pt.partition) { // what is left is for the events of the tasks that it has
			pt.Appended(core.NoRoom, pt.now())
			return
		}
		pt.date(step.Within)
		pt.failure = in.appender.storePart(ctx, pt, pt.KeysChecked() && pt.batch() == "")
		pt.Appended(outcomeOf(pt.failure, false), pt.now())
	default:
	}
}

// check reads what the log says of the batch and of the keys of a part.
func (pt *part) check(ctx context.Context, in *Intake) core.Checks {
	refused, err := in.reads.refusedBy(ctx, &pt.submission)
	if err == nil {
		err = pt.checkKeys(ctx, in)
	}
	pt.keep()
	if refused != nil {
		pt.refusal = refused
	}
	return core.Checks{Left: pt.tasks(), Closed: refused != nil, Failed: err != nil, NoRoom: errors.Is(err, natslog.ErrFull)}
}

// checkKeys decides about the tasks whose key another one has, and those that are stored already.
func (pt *part) checkKeys(ctx context.Context, in *Intake) error {
	return parallel.Each(ctx, pt.tasks(), askedAtOnce, func(ctx context.Context, k int) error {
		open := &pt.open[k]
		conflict := pt.of.conflicts[open.where]
		return pt.checkKey(ctx, in, k, &uniquekey.Claim{
			Task: ids.TaskID(pt.accepted.Records[k].Id), Asked: open.asked, Batch: pt.batch() != "", Repeats: pt.Repeats(),
			Replaces: conflict == yardv1.OnConflict_ON_CONFLICT_REPLACE, Rejects: conflict == yardv1.OnConflict_ON_CONFLICT_REJECT,
		})
	})
}

// checkKey asks what a claim asks, until it is decided.
func (pt *part) checkKey(ctx context.Context, in *Intake, k int, c *uniquekey.Claim) error {
	for {
		switch ask, of := c.Next(); ask {
		case uniquekey.Replace:
			replaced, err := in.replace(ctx, pt, k, of)
			if err != nil || replaced {
				return err
			}
			pt.open[k].asked = ids.TaskID{}
			c.NotReplaced()
		case uniquekey.Read:
			head, err := in.reads.headOf(ctx, pt.partition, pt.accepted.Records[k])
			if err != nil {
				return err
			}
			c.Head(head, pt.now())
		case uniquekey.Owner:
			resp, err := in.Tasks.HistoryGet(ctx, of.Partition(), &rpcv1.GetTaskRequest{TaskId: of[:], Domain: pt.call.Domain, Brief: true, InMemory: true})
			c.Owned(holder(resp.GetTask()), err == nil, pt.now())
		case uniquekey.Find, uniquekey.FindOwn:
			task, err := in.Tasks.LookUp(ctx, pt.call.Domain, of, time.Time{})
			if err != nil {
				return err
			}
			if ask == uniquekey.FindOwn {
				c.FoundOwn(task != nil)
			} else {
				c.Found(holder(task), pt.now())
			}
		case uniquekey.Write:
			pt.open[k].over = c.Over()
			return nil
		case uniquekey.Created:
			pt.decide(k, of, yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED)
			return nil
		case uniquekey.Rejected:
			pt.decide(k, of, yardv1.SubmitOutcome_SUBMIT_OUTCOME_REJECTED)
			return nil
		case uniquekey.Existing:
			pt.decide(k, of, yardv1.SubmitOutcome_SUBMIT_OUTCOME_EXISTING)
			return nil
		}
	}
}

// holder is what is known of a task that has a key; nil = it is nowhere.
func holder(task *yardv1.Task) uniquekey.Holder {
	return uniquekey.Holder{Exists: task != nil, FinishedAt: task.GetFinishedAtMs(), ForMS: task.GetUniqueForMs()}
}

// decideStored decides about the tasks that an earlier try has stored.
func (pt *part) decideStored(ctx context.Context, l reader) error {
	err := parallel.Each(ctx, pt.tasks(), askedAtOnce, func(ctx context.Context, k int) error {
		id := ids.TaskID(pt.accepted.Records[k].Id)
		task, err := l.tasks.LookUp(ctx, pt.call.Domain, id, time.Time{})
		if task != nil {
			pt.decide(k, id, yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED)
		}
		return err
	})
	pt.keep()
	return err
}
