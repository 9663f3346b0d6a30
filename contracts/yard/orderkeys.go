package yard

import (
	"context"
	"iter"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// OrderKeyInfo is the line of an order key: its tasks that have not ended.
type OrderKeyInfo struct {
	Key string
	// Head is the first task of the key. Its state says what the key waits for; Head.Blocked: it waits for an operator.
	Head *TaskInfo
	// Waiting is how many tasks wait behind it, as far as they are in the engine's memory.
	Waiting int
	// Since is when Head came into its state. Reason is why it blocks the key, or its last failure, for people.
	Since  time.Time
	Reason string
}

func orderKeyOf(k *yardv1.OrderKey) OrderKeyInfo {
	return OrderKeyInfo{k.GetOrderKey(), infoOf(k.GetHead()), int(k.GetWaiting()), instant(k.GetSinceMs()), k.GetReason()}
}

// KeyFilter picks order keys. The zero value picks all.
type KeyFilter struct {
	// Blocked: only those whose first task blocks them.
	Blocked bool
	// Waiting: only those that are blocked, or in which a task waits behind the first one.
	Waiting bool
}

// OrderKeys yields the order keys of the domain that have unfinished tasks in the engine's memory, those whose first task is in its state for longest at first.
// It asks for them page by page, so a key that goes on meanwhile may be missing, or come twice.
func (c *Client) OrderKeys(ctx context.Context, f KeyFilter) iter.Seq2[OrderKeyInfo, error] {
	return pages(func(cursor string) ([]OrderKeyInfo, string, error) {
		resp, err := c.Wire().ListKeys(ctx, &yardv1.ListKeysRequest{Blocked: f.Blocked, Waiting: f.Waiting, Cursor: cursor})
		return each(resp.GetKeys(), orderKeyOf), resp.GetNextCursor(), err
	})
}

// OrderKey returns one order key, or NOT_FOUND.
func (c *Client) OrderKey(ctx context.Context, key string) (OrderKeyInfo, error) {
	k, err := c.Wire().GetKey(ctx, key)
	return orderKeyOf(k), err
}

// KeyOptions say what is to be done with the first task of an order key.
type KeyOptions struct {
	// TaskID is that task's; any other is refused with FAILED_PRECONDITION. Default: the one that is the first now.
	TaskID string
	// Retry, of UnblockKey: fields that are set replace those of the task's policy, and lists replace lists.
	Retry *RetryPolicy
	// CancelRunning, of SkipKey: if the task runs, its worker is asked to stop, and the task is cancelled.
	CancelRunning bool
	// Reason and By are for people, at most 800 and 128 bytes; the task's history has them.
	Reason, By string
}

// UnblockKey gives the task that blocks an order key one more attempt at once, and returns its id. FAILED_PRECONDITION: it does not block the key. Retries
// are safe: it is done once.
func (c *Client) UnblockKey(ctx context.Context, key string, o KeyOptions) (taskID string, err error) {
	head, err := c.headOf(ctx, key, o)
	if err != nil {
		return "", err
	}
	return head, c.counted(ctx, func(ctx context.Context, id string, tries int32) error {
		return once[yardv1.UnblockKeyResponse](ctx, c, "keys.unblock", &yardv1.UnblockKeyRequest{
			OrderKey: key, TaskId: head, Retry: o.Retry.wire(), Reason: o.Reason, By: o.By, RequestId: id, Tries: tries,
		})
	})
}

// SkipKey makes the first task of an order key a dead letter, which can be redriven, so that the key goes on with the next one; it returns the task's id.
// FAILED_PRECONDITION: the task runs, and o.CancelRunning is not set. Retries are safe: they do not skip the next one.
func (c *Client) SkipKey(ctx context.Context, key string, o KeyOptions) (taskID string, err error) {
	head, err := c.headOf(ctx, key, o)
	if err != nil {
		return "", err
	}
	return head, c.counted(ctx, func(ctx context.Context, id string, tries int32) error {
		return once[yardv1.SkipKeyResponse](ctx, c, "keys.skip", &yardv1.SkipKeyRequest{
			OrderKey: key, TaskId: head, CancelRunning: o.CancelRunning, Reason: o.Reason, By: o.By, RequestId: id, Tries: tries,
		})
	})
}

// headOf is the task that is to be the first of a key. It is named in the request, so that a repeat does not meet the next one.
func (c *Client) headOf(ctx context.Context, key string, o KeyOptions) (string, error) {
	if o.TaskID != "" {
		return o.TaskID, nil
	}
	k, err := c.Wire().GetKey(ctx, key)
	return k.GetHead().GetTaskId(), err
}

// ListKeys returns one page of order keys.
func (w Wire) ListKeys(ctx context.Context, req *yardv1.ListKeysRequest) (*yardv1.ListKeysResponse, error) {
	return call[yardv1.ListKeysResponse](ctx, &w.c.transport, w.c.subject("keys.list"), req)
}

// GetKey returns one order key.
func (w Wire) GetKey(ctx context.Context, key string) (*yardv1.OrderKey, error) {
	resp, err := call[yardv1.GetKeyResponse](ctx, &w.c.transport, w.c.subject("keys.get"), &yardv1.GetKeyRequest{OrderKey: key})
	return resp.GetKey(), err
}
