package yard

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// BatchState is the state of a batch.
type BatchState string

// The states. Later versions of the engine may have more.
const (
	// BatchOpen: tasks can be added.
	BatchOpen BatchState = "open"
	// BatchClosed: it takes no more tasks, and some have not ended.
	BatchClosed BatchState = "closed"
	// BatchCompleted: it is closed, and all its tasks have ended, however they ended. Its callback is submitted.
	BatchCompleted BatchState = "completed"
	// BatchExpired: it was not completed in time. Its callback never comes; its tasks go on.
	BatchExpired BatchState = "expired"
)

// Over reports whether s is a last state.
func (s BatchState) Over() bool { return s == BatchCompleted || s == BatchExpired }

// Batch is a set of tasks of the domain, in any tasklists. It is over when all of them have ended. The type is a name and a client: several
// programs may use one batch.
type Batch struct {
	ID string
	c  *Client
}

// BatchInfo describes a batch. A time that is not known is the zero one.
type BatchInfo struct {
	ID    string
	State BatchState
	// Tasks is the number of its tasks, Active that of its tasks that have not ended; a task that has just ended may count as active for a moment. The
	// other numbers are those of tasks that ended so. A dead task that is redriven counts as dead until it has ended again. Lists have these numbers
	// only for batches that are over.
	Tasks, Active, Completed, Dead, Cancelled, Expired int64
	// CreatedAt, ClosedAt and EndedAt are when it was made, took no more tasks, and was over. ExpiresAt is when it expires unless it is completed.
	CreatedAt, ClosedAt, EndedAt, ExpiresAt time.Time
	// Keep is for how long it can be asked for once it is over.
	Keep time.Duration
	// CancelRequested: the rest of it was cancelled.
	CancelRequested bool
	// CallbackType and CallbackTasklist are those of its callback, CallbackID is that one's task id once it is submitted; "" = none.
	CallbackType, CallbackTasklist, CallbackID string

	wire *yardv1.Batch
}

// BatchOptions say what a batch is. The zero value is a batch without a callback.
type BatchOptions struct {
	// Callback is submitted once, when the batch is completed. Besides its own headers it has yard-batch-id, and yard-batch-tasks, -completed, -dead, -cancelled
	// and -expired, which are counts. Unique, OrderKey, Delay, RunAt and Batch do not go with it. Default: none.
	Callback *Task
	// Expires is after which time it expires unless it is completed, 1 min to 30 days. Default: 30 days.
	Expires time.Duration
	// Keep is for how long it can be asked for once it is over, 1 min to 30 days. Default: a day.
	Keep time.Duration
}

// NewBatch makes a batch, named by 1..128 bytes of UTF-8. Repeated with the same options it changes nothing; ALREADY_EXISTS: there is one of this name with
// others.
//
//	batch, err := client.NewBatch(ctx, "import-2025-11-21", yard.BatchOptions{Callback: &yard.Task{Type: "import.done", Tasklist: "imports"}})
//	ids, err := batch.Add(ctx, tasks)
//	info, err := batch.Close(ctx)
func (c *Client) NewBatch(ctx context.Context, id string, o BatchOptions) (*Batch, error) {
	req := &yardv1.CreateBatchRequest{BatchId: id, ExpiresInMs: milliseconds(o.Expires), KeepMs: milliseconds(o.Keep)}
	if o.Callback != nil {
		req.Callback = &yardv1.NewTask{}
		if err := o.Callback.fill(req.Callback); err != nil {
			return nil, fillFault("/callback", err)
		}
	}
	if _, err := c.Wire().CreateBatch(ctx, req); err != nil {
		return nil, err
	}
	return c.Batch(id), nil
}

// Batch is a batch that exists. Nothing is asked.
func (c *Client) Batch(id string) *Batch { return &Batch{ID: id, c: c} }

// Add submits tasks into the batch, as SubmitMany does; whatever their Batch is.
func (b *Batch) Add(ctx context.Context, tasks []Task) ([]string, error) {
	own := make([]Task, len(tasks))
	for i, t := range tasks {
		t.Batch = b.ID
		own[i] = t
	}
	return b.c.SubmitMany(ctx, own)
}

// Close says that the batch has all its tasks: it completes when they have ended, at once if there are none. Once it returns no error, the batch takes no more.
// A repeat changes nothing.
func (b *Batch) Close(ctx context.Context) (*BatchInfo, error) {
	resp, err := call[yardv1.CloseBatchResponse](ctx, &b.c.transport, b.c.subject("batches.close"), &yardv1.CloseBatchRequest{BatchId: b.ID})
	return batchOf(resp.GetBatch()), err
}

// Info returns the batch, or NOT_FOUND.
func (b *Batch) Info(ctx context.Context) (*BatchInfo, error) {
	resp, err := call[yardv1.GetBatchResponse](ctx, &b.c.transport, b.c.subject("batches.get"), &yardv1.GetBatchRequest{BatchId: b.ID})
	return batchOf(resp.GetBatch()), err
}

// Wait waits until the batch is over, or ctx ends: then it returns what is known beside the error.
func (b *Batch) Wait(ctx context.Context) (*BatchInfo, error) {
	var last *BatchInfo
	for try := 0; ; try++ {
		wait := getWait
		if deadline, ok := ctx.Deadline(); ok {
			wait = max(min(wait, time.Until(deadline)-waitSlack), time.Millisecond)
		}
		resp, err := callOnce[yardv1.WaitBatchResponse](ctx, &b.c.transport, b.c.subject("batches.wait"), &yardv1.WaitBatchRequest{BatchId: b.ID, WaitMs: milliseconds(wait)})
		rest := batchPause
		if err == nil {
			if last = batchOf(resp.GetBatch()); last.State.Over() {
				return last, nil
			}
			try = -1
		} else {
			e := fault.From(err)
			if again := e.Code.Retryable() || e.Code == fault.Unknown; !again || b.c.nc.IsClosed() {
				return last, ended(ctx, err)
			}
			rest = backoff(try, e.RetryAfter)
		}
		if !pause(ctx, rest) { // ctx has ended, or its deadline is nearer than the next request
			return last, cmp.Or(ended(ctx, err), context.Cause(ctx), context.DeadlineExceeded)
		}
	}
}

// waitSlack is left of a caller's time for the answer to come, batchPause is what lies between two requests.
const waitSlack, batchPause = 100 * time.Millisecond, 10 * time.Millisecond

// Cancel closes the batch and cancels those of its tasks that have not ended; running ones go on, unless o says Running. It goes step by step, as
// Purge does. Of o, Tasklist, Type, Group, States, OlderThan and Preview do not matter.
func (b *Batch) Cancel(ctx context.Context, o PurgeOptions) (Purged, error) {
	o.Preview = false
	return purge(ctx, o, func(limit int32, cursor string) (*yardv1.Purged, error) {
		resp, err := call[yardv1.CancelBatchResponse](ctx, &b.c.transport, b.c.subject("batches.cancel"), &yardv1.CancelBatchRequest{
			BatchId: b.ID, Running: o.Running, Limit: limit, Cursor: cursor, Reason: o.Reason, By: o.By,
		})
		return resp.GetPurged(), err
	})
}

// Batches yields the batches of the domain in some states, without them all, in no particular order. It asks for them page by page, as Tasks does.
func (c *Client) Batches(ctx context.Context, states ...BatchState) iter.Seq2[*BatchInfo, error] {
	wanted := each(states, numberOf[yardv1.BatchState])
	return pages(func(cursor string) ([]*BatchInfo, string, error) {
		req := &yardv1.ListBatchesRequest{States: wanted, Cursor: cursor}
		resp, err := call[yardv1.ListBatchesResponse](ctx, &c.transport, c.subject("batches.list"), req)
		return each(resp.GetBatches(), batchOf), resp.GetNextCursor(), err
	})
}

func batchOf(b *yardv1.Batch) *BatchInfo {
	if b == nil {
		return nil
	}
	return &BatchInfo{
		wire: b, ID: b.BatchId, State: BatchState(b.State.Name()),
		Tasks: b.Tasks, Active: b.Active, Completed: b.Completed, Dead: b.Dead, Cancelled: b.Cancelled, Expired: b.Expired,
		CreatedAt: instant(b.CreatedAtMs), ClosedAt: instant(b.ClosedAtMs), EndedAt: instant(b.EndedAtMs), ExpiresAt: instant(b.ExpiresAtMs),
		Keep: time.Duration(b.KeepMs) * time.Millisecond, CancelRequested: b.CancelRequested,
		CallbackType: b.CallbackType, CallbackTasklist: b.CallbackTasklist, CallbackID: b.CallbackTaskId,
	}
}

// Wire is b as it travels.
func (b *BatchInfo) Wire() *yardv1.Batch { return b.wire }

// CreateBatch makes a batch, or returns the one that is there with the same contents.
func (w Wire) CreateBatch(ctx context.Context, req *yardv1.CreateBatchRequest) (*yardv1.Batch, error) {
	resp, err := call[yardv1.CreateBatchResponse](ctx, &w.c.transport, w.c.subject("batches.create"), req)
	return resp.GetBatch(), err
}
