package owners

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// clockSkewMax is how far in the future a task's id may be dated: the server's clock
// may have been set back since.
const clockSkewMax = 24 * time.Hour

// How soon a task is searched for again that is waited for and is not where the
// owner of its partition could wait with us: in the timer store, or unread.
const searchFirst, searchLast = 2 * time.Millisecond, 500 * time.Millisecond

// Tasks finds tasks wherever they are.
type Tasks struct {
	Owners
	// Partitions is how many partitions history has.
	Partitions int
}

// Foreign reports whether id, however well formed, names no task of this cluster: it is zero, its
// partition does not exist, or it was made further in the future than clocks differ.
// Such an id reaches neither the log nor an owner, which may rely on its time.
func (o Tasks) Foreign(id ids.TaskID, now time.Time) bool {
	return id.IsZero() || id.Partition() >= o.Partitions || id.Time().After(now.Add(clockSkewMax))
}

// NoTask refuses what is asked of a task that does not exist.
func NoTask(id ids.TaskID) error { return fault.New(fault.NotFound, "there is no task %s", id) }

// LookUp finds a task wherever it is, or returns nil. With until it lets history wait for its end. History looks into the archive itself; it is
// asked twice, since a task may have gone from the timer store into history between the two questions. So it is for one that is dead: the
// archive has that end of a task that was redriven.
func (o Tasks) LookUp(ctx context.Context, domain string, id ids.TaskID, until time.Time) (*yardv1.Task, error) {
	found, err := o.Find(ctx, domain, id, until)
	return found.GetTask(), err
}

// Find is LookUp with all that the owner says.
func (o Tasks) Find(ctx context.Context, domain string, id ids.TaskID, until time.Time) (dead *rpcv1.GetTaskResponse, err error) {
	for _, ask := range []func(context.Context, int, *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error){
		o.HistoryGet, o.TimerGet, o.HistoryGet,
	} {
		resp, err := Retry(ctx, until, func(ctx context.Context) (*rpcv1.GetTaskResponse, error) {
			req := &rpcv1.GetTaskRequest{TaskId: id[:], Domain: domain}
			if !until.IsZero() {
				req.WaitMs = max(time.Until(until).Milliseconds(), 0)
			}
			return ask(ctx, id.Partition(), req)
		})
		switch {
		case err != nil:
			return nil, err
		case resp.Task == nil:
		case resp.Task.State != yardv1.TaskState_TASK_STATE_DEAD:
			return resp, nil
		default: // it may have been redriven, and be on its way back
			dead = resp
		}
	}
	return dead, nil
}

// Finished waits until the task is finished, or until the wait ends; then it
// returns the task as it was last seen.
func (o Tasks) Finished(ctx context.Context, domain string, id ids.TaskID, seen *yardv1.Task, until time.Time) (*yardv1.Task, error) {
	for delay := backoff.New(searchFirst, searchLast); !seen.State.Finished() && time.Now().Before(until); {
		task, err := o.LookUp(ctx, domain, id, until)
		switch {
		case err != nil && time.Now().Before(until):
			return nil, err
		case err != nil:
			return seen, nil
		case task != nil:
			seen = task
		}
		if !seen.State.Finished() { // not in history's hands yet, or on its way
			backoff.Sleep(ctx, min(delay.Next(), time.Until(until)))
		}
	}
	return seen, nil
}
