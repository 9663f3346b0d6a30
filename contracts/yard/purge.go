package yard

import (
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
	// purgeStepMax is the most tasks of a step, purgeStepsPerSecond how many steps there are in a second at small rates.
	purgeStepMax, purgeStepsPerSecond = 1000, 4
	// purgeIdle is the pause behind a step that found nothing: tasks on disk are being read.
	purgeIdle = 300 * time.Millisecond
)

// Purge cancels the tasks of a part that do not run, those from before the purge began, and returns what it has done,
// also beside an error. It goes step by step at a rate, until nothing is left, or ctx ends; Purged.Cursor goes on where it stopped, and
// another purge does no harm. Tasks on disk only are found as they are read; UnreadBatches is how many were not.
func (c *Client) Purge(ctx context.Context, p Part, o PurgeOptions) (Purged, error) {
	return purge(ctx, o, func(limit int32, cursor string) (*yardv1.Purged, error) {
		resp, err := call[yardv1.PurgeResponse](ctx, &c.transport, c.subject(p.noun+".purge"), &yardv1.PurgeRequest{
			Name: p.name, Tasklist: o.Tasklist, Type: o.Type, Group: o.Group, States: o.States, OlderThanMs: milliseconds(o.OlderThan), Running: o.Running,
			Preview: o.Preview, Limit: limit, Cursor: cursor, Reason: o.Reason, By: o.By,
		})
		return resp.GetPurged(), err
	})
}

func purge(ctx context.Context, o PurgeOptions, step func(limit int32, cursor string) (*yardv1.Purged, error)) (Purged, error) {
	rate := o.Rate
	if rate <= 0 {
		rate = purgeRate
	}
	limit := int32(min(max(rate/purgeStepsPerSecond, 1), purgeStepMax))
	if o.Preview {
		limit = purgeStepMax
	}
	sum := Purged{Cursor: o.Cursor}
	for {
		began := time.Now()
		did, err := step(limit, sum.Cursor)
		if err != nil {
			return sum, err
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
		if sum.Cursor == "" {
			return sum, nil
		}
		rest := restOf(began, did.GetFound(), rate)
		switch {
		case did.GetFound() == 0:
			rest = purgeIdle
		case o.Preview:
			continue
		}
		select {
		case <-ctx.Done():
			return sum, context.Cause(ctx)
		case <-time.After(rest):
		}
	}
}
