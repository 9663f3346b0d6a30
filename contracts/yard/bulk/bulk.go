// Package bulk cancels, ends or changes the tasks of a domain that match a filter.
//
// Owns: which tasks are taken, in which steps, and how fast. It lists them, and sends a cancel, an end or an update for each one, by id.
//
// It reaches the whole backlog: tasks in memory, tasks in the timer store, and tasks on disk that are not admitted. A command about one
// that is not admitted waits for its admission; about 2500 commands of a domain may wait in each partition, so a larger backlog takes as long as
// it takes to be admitted. Tasks that were created after the call began are left out.
//
// Never does: keep what it has done. After a crash the same call goes on: tasks that have ended or moved do not match any more, and to
// change a task to what it is does no harm.
// On failure: a call returns what it has done beside the error.
//
//	done, err := bulk.Update(ctx, client, yard.Update{Tasklist: "spare"}, bulk.Options{Filter: yard.Filter{Tasklist: "mail"}, Rate: 500})
package bulk

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/operate"
)

// Options say which tasks are taken, and how fast.
type Options struct {
	// Filter selects them. States are some of waiting, queued, ready, backoff and running. Default: all of these but running. Limit is not used.
	Filter yard.Filter
	// OlderThan takes only tasks created at least this long before the call. Default 0: all from before it.
	OlderThan time.Duration
	// Preview counts what matches, and changes nothing.
	Preview bool
	// Rate is how many tasks are taken a second, at most. Default 200; a preview has no rate.
	Rate int
	// Progress is called after each step with the sums so far. Default: none.
	Progress func(Done)
}

// Done is what a call has done.
type Done struct {
	// Found tasks match, each counted once. Changed ones are changed, cancelled or ended, or their worker was asked to stop. Refused ones had ended, or run
	// and do not take the change. Undecided ones could not be decided in time: a repeat of the call takes them.
	Found, Changed, Refused, Undecided int64
	// Sample are the first ones that were found, at most 10.
	Sample []*yard.TaskInfo
}

const (
	rateDefault = 200
	// stepMax is the most tasks of a step, stepsPerSecond how many steps there are in a second at small rates. StepBytesMax bounds what the commands
	// of a step have beside ids: with these they fit into the least message that a server must take (512 KiB).
	stepMax, stepsPerSecond = 100, 4
	stepBytesMax            = 400 << 10
	sampleMax               = 10
	pageTasks               = 1000
	// passPause is the pause between two passes. After quietPasses in a row that found nothing to do the call is over, and after stuckPasses that
	// changed nothing: tasks move between disk, memory and the timer store while they are listed.
	passPause   = 300 * time.Millisecond
	quietPasses = 2
	stuckPasses = 10
)

// Cancel cancels the tasks that match. The reason is for people, at most 1024 bytes; each task's history has it.
func Cancel(ctx context.Context, c *yard.Client, reason string, o Options) (Done, error) {
	return run(ctx, c.Tasks, o, 0, func(tasks []string) ([]*yardv1.Verdict, error) {
		return c.Wire().Cancel(ctx, &yardv1.CancelRequest{TaskIds: tasks, Reason: reason})
	})
}

// End ends the tasks that match by hand, as operate.End does. The ending has no Result.
func End(ctx context.Context, c *yard.Client, e operate.Ending, o Options) (Done, error) {
	if e.Result != nil {
		return Done{}, fault.New(fault.InvalidArgument, "an end of many tasks has no Result")
	}
	return run(ctx, c.Tasks, o, 0, func(tasks []string) ([]*yardv1.Verdict, error) {
		return operate.EndVerdicts(ctx, c, e, tasks...)
	})
}

// Update changes the tasks that match. The update has no TaskID and no IfRevision.
func Update(ctx context.Context, c *yard.Client, u yard.Update, o Options) (Done, error) {
	if u.TaskID != "" || u.IfRevision != 0 {
		return Done{}, fault.New(fault.InvalidArgument, "an update of many tasks has no TaskID and no IfRevision")
	}
	w, err := u.Wire()
	if err != nil {
		return Done{}, err
	}
	return run(ctx, c.Tasks, o, w.SizeVT(), func(tasks []string) ([]*yardv1.Verdict, error) {
		req := &yardv1.UpdateRequest{}
		for _, id := range tasks {
			one := w.CloneVT()
			one.TaskId = id
			req.Tasks = append(req.Tasks, one)
		}
		return c.Wire().Update(ctx, req)
	})
}

// lister lists tasks, as Client.Tasks does.
type lister = func(context.Context, yard.Filter) iter.Seq2[*yard.TaskInfo, error]

// change is a call that is under way.
type change struct {
	Options
	list lister
	// do sends the commands of a step.
	do    func(tasks []string) ([]*yardv1.Verdict, error)
	until time.Time
	// most is how many tasks a step has.
	most int
	// known are the tasks that were found, and whether each is decided.
	known map[string]bool
	step  []string
	began time.Time
	done  Done
}

// run takes all that match. Bytes are what a command takes beside the id of its task.
func run(ctx context.Context, list lister, o Options, bytes int, do func([]string) ([]*yardv1.Verdict, error)) (Done, error) {
	o.Rate = cmp.Or(max(o.Rate, 0), rateDefault)
	most := max(1, min(o.Rate/stepsPerSecond, stepMax, stepBytesMax/max(bytes, 1)))
	c := &change{Options: o, list: list, do: do, most: most, until: time.Now().Add(-o.OlderThan), known: map[string]bool{}}
	for quiet, stuck := 0, 0; quiet < quietPasses && stuck < stuckPasses; {
		changed, known := c.done.Changed, len(c.known)
		if err := c.pass(ctx); err != nil || c.Preview {
			return c.done, err
		}
		quiet, stuck = quiet+1, stuck+1
		if c.done.Undecided > 0 || len(c.known) > known {
			quiet = 0
		}
		if c.done.Changed > changed {
			stuck = 0
		}
		if err := sleep(ctx, passPause); err != nil {
			return c.done, err
		}
	}
	return c.done, nil
}

// pass takes all that match: first those on disk, which come into memory meanwhile.
func (c *change) pass(ctx context.Context) error {
	for _, states := range c.states() {
		f := c.Filter
		f.States, f.Limit = states, pageTasks
		for t, err := range c.list(ctx, f) {
			if err != nil {
				return err
			}
			if err := c.take(ctx, t); err != nil {
				return err
			}
		}
	}
	return c.send(ctx)
}

// states are those of the lists of a pass. Tasks on disk have a list of their own.
func (c *change) states() (lists [][]yard.State) {
	wanted := c.Filter.States
	if len(wanted) == 0 {
		wanted = []yard.State{yard.StateQueued, yard.StateWaiting, yard.StateReady, yard.StateBackoff}
	}
	var rest []yard.State
	for _, s := range wanted {
		if s == yard.StateQueued {
			lists = append(lists, []yard.State{s})
		} else {
			rest = append(rest, s)
		}
	}
	if len(rest) > 0 {
		lists = append(lists, rest)
	}
	return lists
}

// take takes a task that was listed, unless it is decided.
func (c *change) take(ctx context.Context, t *yard.TaskInfo) error {
	if t.CreatedAt.After(c.until) || c.known[t.ID] || slices.Contains(c.step, t.ID) {
		return nil
	}
	if _, seen := c.known[t.ID]; !seen {
		c.known[t.ID] = false
		c.done.Found++
		if len(c.done.Sample) < sampleMax {
			c.done.Sample = append(c.done.Sample, t)
		}
	}
	if c.Preview {
		return nil
	}
	if len(c.step) == 0 {
		c.began = time.Now()
	}
	c.step = append(c.step, t.ID)
	if len(c.step) < c.most {
		return nil
	}
	return c.send(ctx)
}

// send sends the commands of a step, and rests so that the rate is kept.
func (c *change) send(ctx context.Context) error {
	if len(c.step) == 0 {
		return nil
	}
	verdicts, err := c.do(c.step)
	if err != nil {
		return err
	}
	for _, v := range verdicts {
		code := fault.Code(v.Code)
		if code == fault.Unknown || code.Retryable() {
			continue
		}
		if c.known[v.TaskId] = true; v.Code == "OK" {
			c.done.Changed++
		} else {
			c.done.Refused++
		}
	}
	c.done.Undecided = c.done.Found - c.done.Changed - c.done.Refused
	rest := time.Duration(len(c.step))*time.Second/time.Duration(c.Rate) - time.Since(c.began)
	c.step = c.step[:0]
	if c.Progress != nil {
		c.Progress(c.done)
	}
	return sleep(ctx, rest)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
