package yardtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// lastLook bounds the question what is left after a run that failed.
const lastLook = 10 * time.Second

// unfinished are the states of tasks that are not over.
var unfinished = []yard.State{yard.StateWaiting, yard.StateQueued, yard.StateReady, yard.StateRunning, yard.StateBackoff}

// RunToIdle runs workers until there is nothing to do: no task of the domain is ready or runs, and none that waits is due.
// Tasks that are delayed or back off stay. Tasks that handlers submit are run too. Then it drains the workers and returns.
//
// It is an error where ctx ends first, which says which tasks are left (such as those of a tasklist without a worker), and
// where a worker ends with one.
func (e *Engine) RunToIdle(ctx context.Context, workers ...*yard.Worker) error {
	return e.run(ctx, workers, 0, isDue)
}

// RunFor runs workers for d, and then like RunToIdle: so it runs what becomes due meanwhile, such as delayed tasks, retries and the runs of schedules.
// In FakeTime it takes as long as that work.
func (e *Engine) RunFor(ctx context.Context, d time.Duration, workers ...*yard.Worker) error {
	return e.run(ctx, workers, d, isDue)
}

func isDue(task *yard.TaskInfo) bool {
	switch task.State {
	case yard.StateWaiting, yard.StateBackoff:
		return !task.DueAt.After(time.Now())
	}
	return true
}

// RunToEnd runs workers until every task of the domain is completed, dead, cancelled or expired, and so it waits for delays and
// backoff, in real time. Otherwise it is like RunToIdle.
func (e *Engine) RunToEnd(ctx context.Context, workers ...*yard.Worker) error {
	return e.run(ctx, workers, 0, func(*yard.TaskInfo) bool { return true })
}

// run runs workers for d, and on until no unfinished task is one to wait for.
func (e *Engine) run(ctx context.Context, workers []*yard.Worker, d time.Duration, waitFor func(*yard.TaskInfo) bool) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(workers))
	for _, w := range workers {
		go func() {
			err := w.Run(running)
			stop() // without one of them the others may wait forever
			ended <- err
		}()
	}
	backoff.Sleep(running, d)
	err := e.await(running, waitFor)
	stop()
	var failed []error
	for range workers {
		failed = append(failed, <-ended)
	}
	if err = errors.Join(append(failed, err)...); err == nil {
		return nil
	}
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	if left, lost := e.left(looking, waitFor); lost == nil && len(left) > 0 {
		return fmt.Errorf("domain %s has unfinished tasks (%s): %w", e.Domain(), describe(left), err)
	}
	return err
}

// await returns when there is nothing to wait for, or with an error that matches ctx's.
//
// A task that moves between two parts of the engine may be missing in one list, and one that goes to the timer store and
// comes back at once in two. It is in the next one, made when all that was in the log is read, so three lists in a row
// have to be empty.
func (e *Engine) await(ctx context.Context, waitFor func(*yard.TaskInfo) bool) error {
	for empty, looks := 0, 0; ; looks++ {
		left, err := e.left(ctx, waitFor)
		if err != nil {
			return err
		}
		next := e.host.caughtUp
		if empty++; len(left) > 0 {
			empty, next = 0, func(ctx context.Context) error { return e.host.pause(ctx, looks, untilDue(left)) }
		}
		if empty == 3 {
			return nil
		}
		if err := next(ctx); err != nil {
			return err
		}
	}
}

// untilDue is for how long all tasks wait for their time. A task that is submitted meanwhile is run, and counts afterwards.
func untilDue(tasks []*yard.TaskInfo) time.Duration {
	first := tasks[0].DueAt
	for _, task := range tasks {
		if task.State != yard.StateWaiting && task.State != yard.StateBackoff {
			return 0
		}
		if task.DueAt.Before(first) {
			first = task.DueAt
		}
	}
	return time.Until(first)
}

// left lists the unfinished tasks to wait for.
func (e *Engine) left(ctx context.Context, waitFor func(*yard.TaskInfo) bool) (left []*yard.TaskInfo, err error) {
	for task, err := range e.Client.Tasks(ctx, yard.Filter{States: unfinished, Limit: pageMax}) {
		if err != nil {
			return nil, err
		}
		if waitFor(task) {
			left = append(left, task)
		}
	}
	return left, nil
}

// describe counts tasks by state, type and tasklist.
func describe(tasks []*yard.TaskInfo) string {
	counts := map[string]int{}
	for _, task := range tasks {
		counts[fmt.Sprintf("%s %s on %s", task.State, task.Type, task.Tasklist)]++
	}
	var parts []string
	for what, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
