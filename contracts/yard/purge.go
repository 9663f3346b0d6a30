package yard

import (
	"cmp"
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// PurgeOptions say which tasks a purge cancels, and how fast. The zero value is all that do not run.
type PurgeOptions struct {
	// Tasklist, Type and Group narrow it; the one that the part names already is refused. Default: all.
	Tasklist, Type, Group string
	// States are some of waiting, ready and backoff. Default: all three.
	States []yardv1.TaskState
	// OlderThan takes only tasks created at least this long before the purge began, at most 366 days. Default 0: all from before it.
	OlderThan time.Duration
	// Running asks the workers of running tasks to stop, too.
	Running bool
	// Preview counts what matches, and changes nothing.
	Preview bool
	// Rate is how many tasks are cancelled a second, at most, so that others have room. Default 500; a preview has no rate.
	Rate int
	// Reason and By are for people, at most 800 and 128 bytes; each task's history has them.
	Reason, By string
	// Cursor goes on with a purge that was given up, with the same options (Purged.Cursor). Default: a purge begins.
	Cursor string
	// Progress is called after each step with the sums so far. Default: none.
	Progress func(Purged)
}

// Purged is what a purge has done.
type Purged struct {
	// Found tasks match, step by step: one that was left undecided is counted again. Cancelled ones are, the workers of
	// CancelRequested ones were asked to stop, Ended ones had ended, and of Undecided ones the log did not say what became of them.
	Found, Cancelled, CancelRequested, Ended, Undecided int64
	// UnreadBatches are log messages on disk that were not searched at the end, of all tasklists.
	UnreadBatches int64
	// Cursor is where it goes on; empty: it is over.
	Cursor string
}

const (
	purgeRate = 500
	// stepMax is the most tasks of a step, namedMax of one that names them, stepsPerSecond how many steps there are in a second at small rates.
	stepMax, namedMax, stepsPerSecond = 1000, 100, 4
	// purgeIdle is the pause behind a step that found nothing: tasks on disk are being read.
	purgeIdle = 300 * time.Millisecond
)

// Purge cancels the tasks of a part that do not run, those from before the purge began, and returns what it has done,
// also beside an error. It goes step by step at a rate, until nothing is left, or ctx ends; Purged.Cursor goes on where it stopped, and
// another purge does no harm. Tasks on disk only are found as they are read; UnreadBatches is how many were not.
func (c *Client) Purge(ctx context.Context, p Part, o PurgeOptions) (Purged, error) {
	return purge(ctx, o, func(limit int32, cursor string) (*yardv1.Purged, error) {
		resp, err := call[yardv1.PurgeResponse](ctx, &c.transport, c.subject(p.verb("purge")), &yardv1.PurgeRequest{
			Name: p.name, Tasklist: o.Tasklist, Type: o.Type, Group: o.Group, States: o.States, OlderThanMs: milliseconds(o.OlderThan), Running: o.Running,
			Preview: o.Preview, Limit: limit, Cursor: cursor, Reason: o.Reason, By: o.By,
		})
		return resp.GetPurged(), err
	})
}

func purge(ctx context.Context, o PurgeOptions, step func(limit int32, cursor string) (*yardv1.Purged, error)) (Purged, error) {
	sum := Purged{Cursor: o.Cursor}
	p := steps{rate: cmp.Or(max(o.Rate, 0), purgeRate), most: stepMax, preview: o.Preview, idle: purgeIdle}
	err := p.run(ctx, sum.Cursor, nil, func(limit int32, cursor string, _ []string) (int64, string, error) {
		did, err := step(limit, cursor)
		if err != nil {
			return 0, "", err
		}
		sum.Found += did.GetFound()
		sum.Cancelled += did.GetCancelled()
		sum.CancelRequested += did.GetCancelRequested()
		sum.Ended += did.GetEnded()
		sum.Undecided += did.GetUndecided()
		sum.UnreadBatches, sum.Cursor = did.GetUnreadBatches(), did.GetNextCursor()
		if o.Progress != nil {
			o.Progress(sum)
		}
		return did.GetFound(), sum.Cursor, nil
	})
	return sum, err
}

// steps are how a purge or a redrive goes, one after the other.
type steps struct {
	// rate is the most tasks a second, most the most tasks of a step. A preview has no rate.
	rate, most int
	preview    bool
	// idle is the pause behind a step that found nothing; 0: as behind any other.
	idle time.Duration
}

// run takes steps until nothing is left, or ctx ends. A step is for its tasks, or, without any, for as many as the limit from the cursor on. It returns
// how many it found, and the cursor of the next one.
func (p steps) run(ctx context.Context, cursor string, tasks []string, step func(limit int32, cursor string, tasks []string) (found int64, next string, err error)) error {
	limit := min(max(p.rate/stepsPerSecond, 1), p.most)
	if p.preview {
		limit = stepMax
	}
	for {
		began, n := time.Now(), min(len(tasks), limit, namedMax)
		found, next, err := step(int32(limit), cursor, tasks[:n])
		if err != nil {
			return err
		}
		if cursor, tasks = next, tasks[n:]; cursor == "" && len(tasks) == 0 {
			return nil
		}
		rest := restOf(began, found, p.rate)
		switch {
		case found == 0 && p.idle > 0:
			rest = p.idle
		case p.preview:
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(rest):
		}
	}
}
