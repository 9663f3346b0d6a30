package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/parallel"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/uniquekey"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// Tasks with unique keys are each for themselves: each goes to the partition that its key names, in one atomic batch with a message that says that it
// has the key now, which the log takes only if nothing else was said about the key since it was read (decision 0040). This guards a
// repeat too: the key says whose it is. So there is no home partition and no message id; a try is void as others are where the log takes it too
// late, and the key of a task that never was is given away after a while.

// part is what a request has in one partition, as one write of the log: as a submission it has the tasks that are still open.
type part struct {
	submission
	// of is the request, and open are those of its tasks of which nothing is decided, in the order of accepted.Records.
	of   *submission
	open []openTask
	// lane and seq are the message that its tasks are in; 0 = none so far.
	lane ids.Lane
	seq  uint64
	// certain: no try of ours may have been stored. fenced: what is not stored of it never will be. checked: its keys were free a moment ago.
	certain, fenced, checked bool
	// done takes how a group commit went.
	done chan error
}

// openTask is one of which nothing is decided.
type openTask struct {
	// where is its place in the request.
	where int
	// over is the last message about its key that it was checked by.
	over uint64
	// asked is the task that it was to replace where history has not said whether it did; zero: none. sent are those that a replacement was sent to.
	asked ids.TaskID
	sent  []ids.TaskID
}

// partTasksMax bounds the tasks with unique keys of one part, and of one atomic batch: each is a message more.
const partTasksMax = 400

func (s *submission) unique() bool { return s.accepted.Records[0].Unique != nil }

// conflicts are what the tasks of a request ask for where their key is taken, by task; nil = nothing but the task that has it.
func conflicts(tasks []*yardv1.NewTask) map[int]yardv1.OnConflict {
	var all map[int]yardv1.OnConflict
	for i, t := range tasks {
		if t.OnConflict != yardv1.OnConflict_ON_CONFLICT_EXISTING {
			if all == nil {
				all = map[int]yardv1.OnConflict{}
			}
			all[i] = t.OnConflict
		}
	}
	return all
}

// decide notes what became of an open task, by its place in the part. Each has its own place, so parts and tasks may be decided at once.
func (pt *part) decide(k int, id ids.TaskID, outcome yardv1.SubmitOutcome) {
	pt.of.results[pt.open[k].where] = &yardv1.SubmitResult{TaskId: id.String(), Outcome: outcome}
}

// created notes that all open tasks are stored.
func (pt *part) created() {
	for k, r := range pt.accepted.Records {
		pt.decide(k, ids.TaskID(r.Id), yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED)
	}
}

// keep leaves only those open that are not decided.
func (pt *part) keep() {
	n := 0
	for k, one := range pt.open {
		if pt.of.results[one.where] == nil {
			pt.open[n], pt.accepted.Records[n] = one, pt.accepted.Records[k]
			n++
		}
	}
	pt.open, pt.accepted.Records = pt.open[:n], pt.accepted.Records[:n]
	if n > 0 {
		pt.accepted = validate.Gather(pt.accepted.Records)
	}
}

// eachOnce returns what stores the tasks of s whose keys are free. Its error refuses s; on success s has been answered.
func (s *submission) eachOnce(g *Gateway) work {
	return func(ctx context.Context) (codec.Message, error) {
		began := time.Now()
		parts := s.divide(g)
		if s.repeats() {
			if err := g.decideStored(ctx, parts); err != nil {
				g.unknown(s) // a try may have been stored
				return nil, nil
			}
		}
		if slices.Contains(s.results, nil) {
			switch {
			case s.closed:
				s.refuseRest(s.refusal, func() { g.storedEach(s, parts, began) })
				return nil, nil
			case s.refusal != nil && s.decided(): // a try of the others may be under way
				g.unknown(s)
				return nil, nil
			case s.refusal != nil:
				return nil, s.refusal
			}
			if err := g.admit(s); err != nil {
				g.metrics.submitsRefused.full(err)
				return nil, err
			}
		}
		var mu sync.Mutex
		var errs []error
		var all sync.WaitGroup
		for _, next := range inTurn(parts) {
			all.Go(func() {
				for _, pt := range next {
					if err := g.storeEach(ctx, pt); err != nil {
						mu.Lock()
						errs = append(errs, err)
						mu.Unlock()
						return // what comes after it must not be stored before it
					}
				}
			})
		}
		all.Wait()
		g.endEach(s, parts, errors.Join(errs...), began)
		return nil, nil
	}
}

// inTurn are the parts that may be stored at once: those with order keys go one after the other in each partition.
func inTurn(parts []*part) (all [][]*part) {
	at := map[int]int{}
	for _, pt := range parts {
		if pt.tasks() == 0 { // all of it was stored before
			continue
		}
		if k, ok := at[pt.partition]; ok && pt.ordered() {
			all[k] = append(all[k], pt)
			continue
		}
		at[pt.partition] = len(all)
		all = append(all, []*part{pt})
	}
	return all
}

// endEach answers s.
func (g *Gateway) endEach(s *submission, parts []*part, failed error, began time.Time) {
	if failed == nil {
		if slices.ContainsFunc(s.results, func(r *yardv1.SubmitResult) bool { return r.Outcome == yardv1.SubmitOutcome_SUBMIT_OUTCOME_UNSPECIFIED }) {
			s.held.resolveEach(parts)
			g.untold(s)
			return
		}
		g.storedEach(s, parts, began)
		return
	}
	never := !slices.ContainsFunc(parts, func(pt *part) bool {
		return !pt.fenced && slices.ContainsFunc(pt.open, func(one openTask) bool { return s.results[one.where] == nil })
	})
	var refused *fault.Error
	if never && errors.As(failed, &refused) {
		s.refuseRest(refused, func() { g.storedEach(s, parts, began) })
		return
	}
	certain := !s.repeats() && !s.decided()
	for _, pt := range parts {
		certain = certain && pt.certain
	}
	switch {
	case !certain:
		g.unknown(s)
	case errors.Is(failed, natslog.ErrFull):
		g.refuseStorageFull(s)
	case errors.As(failed, &refused):
		s.refuse(refused)
	default:
		s.unavailable("no partition of the log took it in time")
	}
}

// storedEach answers s: what became of each task is known.
func (g *Gateway) storedEach(s *submission, parts []*part, began time.Time) {
	acked := time.Now()
	s.held.resolveEach(parts)
	var created []*logv1.Record
	for i, r := range s.results {
		if r.Outcome == yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED {
			created = append(created, s.accepted.Records[i])
		}
	}
	if len(created) > 0 {
		g.metrics.accepted(s.call.Domain, created, acked.Sub(s.call.Received))
	}
	g.answerSubmit(s, began, acked)
}

// keyPartition is where a task with a unique key goes: with the others of its order key, or with its own.
func keyPartition(r *logv1.Record, n topology.Partitioning) int {
	if r.Order != nil {
		return topology.OrderKeyPartition(r.Domain, r.Order.Key, n)
	}
	return topology.UniqueKeyPartition(r.Domain, r.Unique.Key, n)
}

// uniqueSubject is where the log says which task has the unique key of one. With an order key it counts among the tasks of that.
func uniqueSubject(p int, r *logv1.Record) string {
	return topology.UniqueKey(p, r.Domain, topology.UniqueWithin(r.Order.GetKey(), r.Unique.Key))
}

// divide gives every task its partition and its id, and makes the parts of s.
func (s *submission) divide(g *Gateway) []*part {
	s.in, s.results = make([]int, s.tasks()), make([]*yardv1.SubmitResult, s.tasks())
	open := map[int]*part{}
	var parts []*part
	for i, r := range s.accepted.Records {
		p := keyPartition(r, g.Partitioning)
		s.in[i] = p
		id := s.id(i)
		r.Id = id[:]
		pt := open[p]
		if pt == nil || pt.tasks() == partTasksMax {
			pt = &part{of: s, certain: true, done: make(chan error, 1)}
			pt.call, pt.at, pt.hasID, pt.tries, pt.partition = s.call, s.at, s.hasID, s.tries, p
			open[p], parts = pt, append(parts, pt)
		}
		pt.open = append(pt.open, openTask{where: i})
		pt.accepted.Records = append(pt.accepted.Records, r)
	}
	for _, pt := range parts {
		pt.accepted = validate.Gather(pt.accepted.Records)
	}
	return parts
}

// decideStored decides about the tasks that an earlier try has stored.
func (g *Gateway) decideStored(ctx context.Context, parts []*part) error {
	for _, pt := range parts {
		err := parallel.Each(ctx, pt.tasks(), askedAtOnce, func(ctx context.Context, k int) error {
			id := ids.TaskID(pt.accepted.Records[k].Id)
			task, err := g.lookUp(ctx, pt.call.Domain, id, time.Time{})
			if task != nil {
				pt.decide(k, id, yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED)
			}
			return err
		})
		if err != nil {
			return err
		}
		pt.keep()
	}
	return nil
}

// storeEach decides about all tasks of a part, or returns why it has not.
func (g *Gateway) storeEach(ctx context.Context, pt *part) error {
	check := false
	for delay := backoff.New(resolveFirst, resolveLast); pt.tasks() > 0; {
		if check {
			refused, err := pt.refusedBy(ctx, g.History)
			if err == nil {
				err = g.checkKeys(ctx, pt)
			}
			pt.keep()
			switch {
			case err == nil && refused != nil && pt.tasks() > 0:
				pt.fenced, pt.certain = true, true
				return refused
			case err != nil && ctx.Err() != nil:
				pt.certain = false
				return err
			case errors.Is(err, natslog.ErrFull): // a replacement has a payload
				return err
			case err != nil:
				pt.certain = pt.certain && pt.of.conflicts == nil // a task may have been replaced
				delay.Sleep(ctx)
				continue
			case pt.tasks() == 0:
				return nil
			}
		}
		if !g.appender.hasRoom(pt.partition) { // what is left is for the events of the tasks that it has
			if check {
				return natslog.ErrFull
			}
			check = true // tasks that have their keys are answered all the same
			continue
		}
		if why := pt.late(); why != "" {
			if pt.repeats() && !pt.replaces() {
				return pt.endTries(ctx, g)
			}
			return errors.New(why)
		}
		pt.checked = check
		err := g.appender.storePart(ctx, pt, check && pt.batch() == "")
		switch {
		case err == nil && pt.inTime():
			pt.created()
			return nil
		case err == nil: // it is void if the log took it too late, which its owner knows
			pt.certain, check = false, true
		case errors.Is(err, natslog.ErrWrongLast):
			if check = true; pt.batch() != "" { // a cluster refuses it also for what is on its way
				backoff.Sleep(ctx, inTransit())
			}
			continue
		case errors.Is(err, natslog.ErrFull), errors.As(err, new(*fault.Error)):
			return err
		case !errors.Is(err, natslog.ErrNotStored):
			pt.certain, check = false, true
		}
		delay.Sleep(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// checkKeys decides about the tasks whose key another one has, and those that are stored already.
func (g *Gateway) checkKeys(ctx context.Context, pt *part) error {
	return parallel.Each(ctx, pt.tasks(), askedAtOnce, func(ctx context.Context, k int) error {
		r := pt.accepted.Records[k]
		if asked := pt.open[k].asked; !asked.IsZero() { // it may have been replaced, and have ended since
			replaced, err := g.replace(ctx, pt, k, asked)
			if err != nil || replaced {
				return err
			}
			pt.open[k].asked = ids.TaskID{}
		}
		head, err := g.headOf(ctx, pt.partition, r)
		if err != nil {
			return err
		}
		own := ids.TaskID(r.Id)
		word := uniquekey.Check(head, own, pt.call.now())
		exists := word == uniquekey.Taken && !pt.freed(ctx, g, head)
		if word == uniquekey.Own || word == uniquekey.Unsure {
			task, err := g.lookUp(ctx, pt.call.Domain, head.Task, time.Time{})
			if err != nil {
				return err
			}
			exists = task != nil
			if word == uniquekey.Unsure {
				exists = uniquekey.Has(uniquekey.Holder{Exists: task != nil, FinishedAt: task.GetFinishedAtMs(), ForMS: task.GetUniqueForMs()}, pt.call.now())
			}
		}
		replaces := pt.of.conflicts[pt.open[k].where] == yardv1.OnConflict_ON_CONFLICT_REPLACE
		if pt.batch() != "" && head.Seq != 0 && word != uniquekey.Own && (!exists || replaces) { // a try may have had the key before the one that the head names
			task, err := g.lookUp(ctx, pt.call.Domain, own, time.Time{})
			if err != nil {
				return err
			}
			if task != nil {
				pt.decide(k, own, yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED)
				return nil
			}
		}
		if replaces && head.Seq != 0 && word != uniquekey.Own && (exists || pt.repeats()) {
			replaced, err := g.replace(ctx, pt, k, head.Task)
			if err != nil || replaced {
				return err
			}
		}
		switch {
		case !exists:
			pt.open[k].over = head.Seq
		case word == uniquekey.Own:
			pt.decide(k, own, yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED)
		case pt.of.conflicts[pt.open[k].where] == yardv1.OnConflict_ON_CONFLICT_REJECT:
			pt.decide(k, head.Task, yardv1.SubmitOutcome_SUBMIT_OUTCOME_REJECTED)
		default:
			pt.decide(k, head.Task, yardv1.SubmitOutcome_SUBMIT_OUTCOME_EXISTING)
		}
		return nil
	})
}

// freed tells whether the task that has a key has ended, before the log says so: its owner does. Where it does not answer, the key is taken.
func (pt *part) freed(ctx context.Context, g *Gateway, head uniquekey.Head) bool {
	if head.FreeAt != 0 {
		return false
	}
	req := &rpcv1.GetTaskRequest{TaskId: head.Task[:], Domain: pt.call.Domain, Brief: true, InMemory: true}
	resp, err := g.Owners.HistoryGet(ctx, head.Task.Partition(), req)
	task := resp.GetTask()
	return err == nil && uniquekey.Frees(uniquekey.Holder{Exists: task != nil, FinishedAt: task.GetFinishedAtMs(), ForMS: task.GetUniqueForMs()}, pt.call.now())
}

// headOf reads what the log says about the key of a task.
func (g *Gateway) headOf(ctx context.Context, p int, r *logv1.Record) (uniquekey.Head, error) {
	m, err := g.History.LastFor(ctx, p, uniqueSubject(p, r))
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
