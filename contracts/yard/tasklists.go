package yard

import (
	"context"
	"iter"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Tasklist is the settings of a tasklist. One without any is used like every other.
type Tasklist struct {
	// Name is [A-Za-z0-9_-]{1,64}; required.
	Name string
	// Description is for people; at most 1024 bytes.
	Description string
	// Priority is that of tasks that are submitted to it and name none, 1 (most urgent) to 5. Default 3.
	Priority int
	// MaxConcurrency bounds the attempts of its tasks that run at once, on any number of nodes, 1..1000000. Default 0 =
	// no limit.
	MaxConcurrency int
	// MaxConcurrencyPerGroup bounds the attempts of its tasks of each group (Task.Group) that run at once, on any number of nodes,
	// 1..1000000; a group may have its own number (Group.MaxConcurrency). Tasks without a group are not counted. Default 0 = no limit.
	MaxConcurrencyPerGroup int
	// Rate is how many attempts of its tasks start in a time. Default: any number.
	Rate Rate
	// MaxQueued refuses submits with RESOURCE_EXHAUSTED while about so many of its tasks are due and neither run nor have ended,
	// 1..100000000. Default 0 = no cap.
	MaxQueued int
	// MaxQueuedPerGroup does the same for the tasks of each group (Task.Group), 1..100000000; tasks without a group are not counted. Both may be
	// set. Default 0 = no cap.
	MaxQueuedPerGroup int
	// Partitions is over how many partitions it is spread, 1..64, so that several nodes serve it; tasks of different partitions start
	// in about the order in which they became ready. Default 0 = one.
	Partitions int
	// PartitionsMax has the engine itself set their number, between Partitions and this, 2..64, by how many tasks become ready in a second.
	// Default 0 = it is fixed.
	PartitionsMax int
	// StrictPriorities has the most urgent priority always start first, however long others wait. Default false: priorities take turns
	// by weight, each twice as often as the next less urgent one, and one that is alone has every turn.
	StrictPriorities bool
	// PartitionsNow is over how many partitions it is spread now, at least 1. Only in the answer of GetTasklist.
	PartitionsNow int
	// Pause is there while it is paused. Only in the answers of GetTasklist and Tasklists; PutTasklist does not change it.
	Pause *Pause
	// Drain is Pause for a drain.
	Drain *Pause
	// Revision changes with every put. PutTasklist replaces this one only, or any if it is 0.
	Revision int64
}

// ListedTasklist is a tasklist with settings, with unfinished tasks, paused or drained, and how many tasks it has: those on disk only, not
// yet read, are not counted. Without settings its Revision is 0.
type ListedTasklist struct {
	Tasklist
	// Ready tasks wait for a worker, running ones have one, those in backoff are about to be tried again; Waiting
	// counts delayed tasks and long retries.
	Ready, Running, Backoff, Waiting int64
}

// PutTasklist sets or changes the settings of a tasklist and returns them as stored. They hold within a
// second; tasks accepted before keep their priority. STALE: another revision than l's is stored.
func (c *Client) PutTasklist(ctx context.Context, l Tasklist) (Tasklist, error) {
	resp, err := call[yardv1.PutTasklistResponse](ctx, &c.transport, c.subject("tasklists.put"), &yardv1.PutTasklistRequest{Tasklist: l.Wire()})
	return tasklistOf(resp.GetTasklist()), err
}

// GetTasklist returns the settings of a tasklist and whether it is paused or drained, or NOT_FOUND if it has no settings and is
// neither. Without settings its Revision is 0. DescribeTasklist returns its counts.
func (c *Client) GetTasklist(ctx context.Context, name string) (Tasklist, error) {
	resp, err := call[yardv1.GetTasklistResponse](ctx, &c.transport, c.subject("tasklists.get"), &yardv1.GetTasklistRequest{Name: name})
	if err != nil {
		return Tasklist{}, err
	}
	l := tasklistOf(resp.Tasklist)
	l.Pause, l.Drain, l.PartitionsNow = maybePaused(resp.Pause), maybePaused(resp.Drain), max(1, l.Partitions, int(resp.Partitions))
	return l, nil
}

// Tasklists yields all tasklists of the domain that have settings or unfinished tasks, are paused or drained, by name, and asks for them page
// by page as Tasks does.
func (c *Client) Tasklists(ctx context.Context) iter.Seq2[ListedTasklist, error] {
	return pages(func(cursor string) ([]ListedTasklist, string, error) {
		resp, err := call[yardv1.ListTasklistsResponse](ctx, &c.transport, c.subject("tasklists.list"), &yardv1.ListTasklistsRequest{Cursor: cursor})
		return each(resp.GetTasklists(), listedTasklistOf), resp.GetNextCursor(), err
	})
}

// DeleteTasklist deletes the settings of a tasklist, and returns them as they were: only the given
// revision (STALE if another one is stored), or any if that is 0. No task is deleted, and later ones have the default
// priority. NOT_FOUND: there are none; so is answered, too, if a first try deleted them and its answer was lost.
func (c *Client) DeleteTasklist(ctx context.Context, name string, revision int64) (Tasklist, error) {
	resp, err := call[yardv1.DeleteTasklistResponse](ctx, &c.transport, c.subject("tasklists.delete"), &yardv1.DeleteTasklistRequest{Name: name, Revision: revision})
	return tasklistOf(resp.GetTasklist()), err
}

// Wire is the settings as the API writes them.
func (l Tasklist) Wire() *yardv1.Tasklist {
	return &yardv1.Tasklist{
		Name: l.Name, Description: l.Description, Priority: int32Of(l.Priority), MaxConcurrency: int32Of(l.MaxConcurrency), MaxQueued: int32Of(l.MaxQueued), MaxQueuedPerGroup: int32Of(l.MaxQueuedPerGroup),
		MaxConcurrencyPerGroup: int32Of(l.MaxConcurrencyPerGroup), Rate: l.Rate.wire(), Partitions: int32Of(l.Partitions), PartitionsMax: int32Of(l.PartitionsMax), StrictPriorities: l.StrictPriorities, Revision: l.Revision,
	}
}

func tasklistOf(w *yardv1.Tasklist) Tasklist {
	return Tasklist{
		Name: w.GetName(), Description: w.GetDescription(), Priority: int(w.GetPriority()),
		MaxConcurrency: int(w.GetMaxConcurrency()), MaxQueued: int(w.GetMaxQueued()), MaxQueuedPerGroup: int(w.GetMaxQueuedPerGroup()), Rate: rateOf(w.GetRate()),
		MaxConcurrencyPerGroup: int(w.GetMaxConcurrencyPerGroup()), Partitions: int(w.GetPartitions()), PartitionsMax: int(w.GetPartitionsMax()), StrictPriorities: w.GetStrictPriorities(), Revision: w.GetRevision(),
	}
}

func listedTasklistOf(w *yardv1.ListedTasklist) ListedTasklist {
	l := ListedTasklist{Tasklist: tasklistOf(w.GetSettings()), Ready: w.GetReady(), Running: w.GetRunning(), Backoff: w.GetBackoff(), Waiting: w.GetWaiting()}
	l.Name, l.Pause, l.Drain = w.GetName(), maybePaused(w.GetPause()), maybePaused(w.GetDrain())
	return l
}
