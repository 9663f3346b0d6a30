package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// load is one run.
type load struct {
	target   *target
	tasks    int
	progress io.Writer
	// brief: another run follows at once. Polls wait for a short while only, and end by themselves:
	// the engine learns that one was given up when it has tasks for it, and grants them again.
	brief bool
	// domains of an open loop, in turn. Default: the one domain.
	domains []string
	// polled sees the tasks of each poll before they are completed; nil = no one does.
	polled func([]*yardv1.PolledTask)

	accepted  tally
	completed tally
	lost      atomic.Int64 // outcomes that came too late: their tasks run again
	batches   atomic.Int64 // polls that brought tasks
	last      atomic.Int64 // Unix ns of the last accepted completion
	over      atomic.Bool  // no more polls
	p99s      []float64    // of an open loop, by second, from the submit call to the handler, µs
}

// tally gathers task ids.
type tally struct {
	mu  sync.Mutex
	ids []string
	n   atomic.Int64
}

func (t *tally) add(ids []string) {
	t.mu.Lock()
	t.ids = append(t.ids, ids...)
	t.mu.Unlock()
	t.n.Add(int64(len(ids)))
}

// drain runs W1, W1s, W2, W2s, W8 or W8s: producers and workers together, from the first submit to
// the last accepted completion. Where workers begin later, as in W5 too, to the last answer of a submit.
func (l *load) drain(ctx context.Context, s shape) (r report.Result, err error) {
	submitters, err := l.target.clients(s.domains)
	if err != nil {
		return r, err
	}
	workers, err := l.target.clients(s.domains)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var polling sync.WaitGroup
	if !s.ahead {
		l.poll(ctx, cancel, &polling, workers)
		if err := l.pollsWait(ctx, workers); err != nil {
			cancel(err)
			polling.Wait()
			return r, err
		}
	}
	stored, err := l.target.stored(ctx)
	if err != nil {
		return r, err
	}
	before, err := l.target.read(ctx)
	if err != nil {
		return r, err
	}
	producing := l.producers(ctx, cancel, s, submitters)
	began := before.at
	if s.ahead {
		producing.Wait()
		if r, err = l.target.since(ctx, before, l.tasks, time.Now()); err == nil {
			r.Backlog, err = l.backlog(ctx, stored)
		}
		if err != nil {
			return r, err
		}
		began = time.Now()
		l.poll(ctx, cancel, &polling, workers)
	}
	l.await(ctx, cancel)
	producing.Wait()
	if !s.ahead {
		r, err = l.target.since(ctx, before, l.tasks, time.Unix(0, l.last.Load()))
	}
	failed := context.Cause(ctx)
	l.over.Store(true)
	if !l.brief {
		cancel(errDone) // ends the polls
	}
	polling.Wait()
	if failed != nil {
		return report.Result{}, failed
	}
	if r.Backlog != nil {
		r.Backlog.Drained(l.tasks, time.Unix(0, l.last.Load()).Sub(began))
	}
	r.Polls, r.LateOutcomes = int(l.batches.Load()), int(l.lost.Load())
	return r, errors.Join(err, l.proof())
}

var errDone = errors.New("all tasks are completed")

// connections per side; a connection's reader is one goroutine on each end.
const connections = 2

// poll starts the workers: a loop for each client, and as many as there are to be at least.
func (l *load) poll(ctx context.Context, cancel context.CancelCauseFunc, polling *sync.WaitGroup, workers []*yard.Client) {
	for i := range max(l.target.Polls, len(workers)) {
		polling.Go(func() {
			if err := l.work(ctx, workers[i%len(workers)]); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
}

// pollsPatience bounds how long polls may take to arrive.
const pollsPatience = time.Minute

// pollsWait returns when the polls have arrived, where they are so many that their arrival would be measured.
func (l *load) pollsWait(ctx context.Context, workers []*yard.Client) error {
	if l.brief || l.target.Polls <= pollLoops || len(workers) > l.target.Polls {
		return nil
	}
	return waitFor(ctx, pollsPatience, 50*time.Millisecond, func() (bool, string, error) {
		d, err := describe(ctx, workers[0])
		// A poll may be between two waits.
		return int(d.GetWaitingPolls()) >= l.target.Polls*9/10, fmt.Sprintf("of %d polls, bounded by matching's polls_max, %d wait", l.target.Polls, d.GetWaitingPolls()), err
	})
}

func describe(ctx context.Context, c *yard.Client) (*yardv1.DescribeTasklistResponse, error) {
	d, err := c.Wire().DescribeTasklist(ctx, tasklist)
	if err != nil {
		return nil, fmt.Errorf("describe tasklist %s: %w", tasklist, err)
	}
	return d, nil
}

// producers starts them.
func (l *load) producers(ctx context.Context, cancel context.CancelCauseFunc, s shape, clients []*yard.Client) *sync.WaitGroup {
	producing, next := new(sync.WaitGroup), new(atomic.Int64)
	for range s.producers {
		producing.Go(func() {
			if err := l.produce(ctx, clients, next, s); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	return producing
}

// produce submits requests until all tasks are handed out. Clients take turns.
func (l *load) produce(ctx context.Context, clients []*yard.Client, next *atomic.Int64, s shape) error {
	for {
		from := next.Add(int64(s.request)) - int64(s.request)
		n := min(int64(s.request), int64(l.tasks)-from)
		if n <= 0 {
			return nil
		}
		tasks := l.target.some(int(from), int(n))
		c := clients[int(from)/s.request%len(clients)]
		var ids []string
		var err error
		if s.together {
			ids = make([]string, 1)
			ids[0], err = c.Submit(ctx, tasks[0])
		} else {
			ids, err = c.SubmitMany(ctx, tasks) // a request of its own
		}
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		l.accepted.add(ids)
	}
}

// filler is the payload of all tasks: the engine does not look into it.
var filler = slices.Repeat([]byte{'x'}, payloadBytes)

// typeName is the name of the i-th type.
func typeName(i int) string { return "bench." + strconv.Itoa(i) }

func (t *target) task(i int) yard.Task {
	task := yard.Task{Type: typeName(i % t.Types), Tasklist: tasklist, Payload: filler, Priority: priorities[i%len(priorities)]}
	if t.Groups > 0 {
		task.Group = "group-" + strconv.Itoa(i%t.Groups)
	}
	if t.OrderKeys > 0 {
		task.OrderKey = "order-" + strconv.Itoa(i%t.OrderKeys)
	}
	if t.Unique {
		task.Unique = &yard.Unique{Key: rand.Text(), For: time.Hour}
	}
	return task
}

// some are n tasks, from that one on.
func (t *target) some(from, n int) []yard.Task {
	tasks := make([]yard.Task, n)
	for i := range tasks {
		tasks[i] = t.task(from + i)
	}
	return tasks
}

// work polls and completes until all is over, or ctx ends.
func (l *load) work(ctx context.Context, c *yard.Client) error {
	poll := &yardv1.PollRequest{Tasklist: tasklist, MaxTasks: pollTasks, WaitMs: pollWait.Milliseconds(), Worker: "bench"}
	if l.brief {
		poll.WaitMs = pollWaitBrief.Milliseconds()
	}
	for ctx.Err() == nil && !l.over.Load() {
		tasks, err := c.Wire().Poll(ctx, poll)
		switch {
		case ctx.Err() != nil && len(tasks) == 0:
			return nil
		case err != nil && fault.CodeOf(err).Retryable():
			backoff.Sleep(ctx, 10*time.Millisecond) // no subscriber, or too many: not the hot path
			continue
		case err != nil:
			return fmt.Errorf("poll: %w", err)
		case len(tasks) == 0:
			continue
		}
		l.batches.Add(1)
		if l.polled != nil {
			l.polled(tasks)
		}
		if err := l.complete(ctx, c, tasks); err != nil {
			return err
		}
	}
	return nil
}

// complete reports tasks until each has a verdict that is final.
func (l *load) complete(ctx context.Context, c *yard.Client, tasks []*yardv1.PolledTask) error {
	left := make([]*yardv1.Completion, len(tasks))
	for i, t := range tasks {
		left[i] = &yardv1.Completion{TaskId: t.TaskId, Token: t.Token}
	}
	for len(left) > 0 {
		verdicts, err := c.Wire().Complete(ctx, left)
		if err != nil {
			return fmt.Errorf("complete: %w", err)
		}
		done := make([]string, 0, len(left))
		var again []*yardv1.Completion
		for i, v := range verdicts {
			switch fault.Code(v.Code) {
			case "OK":
				done = append(done, left[i].TaskId)
			case fault.Unknown:
				again = append(again, left[i])
			case fault.Stale:
				l.lost.Add(1)
			default:
				return fmt.Errorf("complete task %s: %s: %s", v.TaskId, v.Code, v.Message)
			}
		}
		l.last.Store(time.Now().UnixNano()) // before the count, which ends the run
		l.completed.add(done)
		left = again
	}
	return nil
}

// await returns when all tasks are completed, and ends a run that stands still.
func (l *load) await(ctx context.Context, cancel context.CancelCauseFunc) {
	moved, seen, told := time.Now(), int64(0), time.Now()
	for {
		n := l.completed.n.Load()
		if n >= int64(l.tasks) {
			return
		}
		now := time.Now()
		if n != seen {
			moved, seen = now, n
		}
		if now.Sub(moved) > stallAfter {
			cancel(fmt.Errorf("nothing moved for %v: %d of %d tasks accepted, %d completed", stallAfter, l.accepted.n.Load(), l.tasks, n))
			return
		}
		if l.progress != nil && now.Sub(told) > time.Second {
			told = now
			fmt.Fprintf(l.progress, "   %d accepted, %d completed\n", l.accepted.n.Load(), n)
		}
		if !backoff.Sleep(ctx, time.Millisecond) {
			return
		}
	}
}

// prove compares what was accepted with what was completed, task by task.
func prove(tasks int, accepted, completed []string) error {
	if len(accepted) != tasks {
		return fmt.Errorf("%d tasks were accepted of %d", len(accepted), tasks)
	}
	open := make(map[string]bool, len(accepted))
	for _, id := range accepted {
		if open[id] {
			return fmt.Errorf("task id %s was given twice", id)
		}
		open[id] = true
	}
	for _, id := range completed {
		waiting, known := open[id]
		switch {
		case !known:
			return fmt.Errorf("task %s was completed but never accepted", id)
		case !waiting:
			return fmt.Errorf("task %s was completed twice", id)
		}
		open[id] = false
	}
	if len(completed) != len(accepted) {
		return fmt.Errorf("%d tasks were accepted, %d completed", len(accepted), len(completed))
	}
	return nil
}

func (l *load) proof() error { return prove(l.tasks, l.accepted.ids, l.completed.ids) }
