package yard

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// PeekOptions say how much PeekTasklist shows. The zero value is the next 10 tasks.
type PeekOptions struct {
	// Type and Group are those of the tasks. Default: all.
	Type, Group string
	// Limit is how many tasks to show, 1..100. Default 10.
	Limit int
	// Cursor is that of the answer before. Default: from the first.
	Cursor string
}

// Peek is what starts next.
type Peek struct {
	// Tasks are in the order in which they are to start.
	Tasks []PeekedTask
	// Cursor is where the next page begins; empty: there are no more in memory.
	Cursor string
	// UnreadBatches are log messages on disk, of all tasklists: there may be more tasks in them.
	UnreadBatches int64
}

// PeekedTask is a ready task, without payload and events.
type PeekedTask struct {
	*TaskInfo
	// ReadyFor is for how long it has been ready.
	ReadyFor time.Duration
}

// PeekTasklist returns the ready tasks of a tasklist in the order in which they are to start, by priority, then the one that is ready for
// longest, and takes none. The turns of less urgent priorities (Tasklist.StrictPriorities) are not seen. Only tasks in memory are seen. Limits and pauses may hold up a task that others overtake.
func (c *Client) PeekTasklist(ctx context.Context, name string, o PeekOptions) (Peek, error) {
	req := &yardv1.PeekTasklistRequest{Name: name, Type: o.Type, Group: o.Group, Limit: int32Of(o.Limit), Cursor: o.Cursor}
	resp, err := c.Wire().PeekTasklist(ctx, req)
	return Peek{Tasks: each(resp.GetTasks(), peekedOf), Cursor: resp.GetNextCursor(), UnreadBatches: resp.GetUnreadBatches()}, err
}

func peekedOf(w *yardv1.PeekedTask) PeekedTask {
	return PeekedTask{TaskInfo: infoOf(w.GetTask()), ReadyFor: time.Duration(w.GetReadyForMs()) * time.Millisecond}
}
