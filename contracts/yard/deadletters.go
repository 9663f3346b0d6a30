package yard

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// DeadLetterFilter picks dead letters: tasks that used up their attempts. The zero value picks all of the domain.
type DeadLetterFilter struct {
	// Tasklist, Type and Group are those of the tasks, ErrorType is that of their last failure. Default: all.
	Tasklist, Type, Group, ErrorType string
	// Since and Until pick those that ended then or later, and before. Default: all.
	Since, Until time.Time
}

// Wire is f as it travels.
func (f DeadLetterFilter) Wire() *yardv1.DeadLetterFilter {
	w := &yardv1.DeadLetterFilter{Tasklist: f.Tasklist, Type: f.Type, Group: f.Group, ErrorType: f.ErrorType}
	if !f.Since.IsZero() {
		w.SinceMs = f.Since.UnixMilli()
	}
	if !f.Until.IsZero() {
		w.UntilMs = f.Until.UnixMilli()
	}
	return w
}

// ListDeadLetters yields the dead letters that match, without payloads and events, those that ended first at first. It asks for them page by page, as Tasks does.
func (c *Client) ListDeadLetters(ctx context.Context, f DeadLetterFilter) iter.Seq2[*TaskInfo, error] {
	return pages(func(cursor string) ([]*TaskInfo, string, error) {
		resp, err := c.Wire().ListDeadLetters(ctx, &yardv1.ListDeadLettersRequest{Filter: f.Wire(), Cursor: cursor})
		return each(resp.GetTasks(), infoOf), resp.GetNextCursor(), err
	})
}

// DeadLetterCount is how many dead letters have a type, an error type and a period in common.
type DeadLetterCount struct {
	Type, ErrorType string
	// Period is when the period begins in which they ended; the zero time if periods were not asked for.
	Period time.Time
	// Letters is how many they are; the first of them ended at First, the last at Last.
	Letters     int64
	First, Last time.Time
}

// CountDeadLetters counts the dead letters that match by type and error type, and by the period in which they ended, at least a second long; 0 = not by time. It
// reads all of them, step by step.
func (c *Client) CountDeadLetters(ctx context.Context, f DeadLetterFilter, period time.Duration) ([]DeadLetterCount, error) {
	type kind struct {
		typ, errType string
		at           int64
	}
	var all []DeadLetterCount
	known := map[kind]int{}
	for cursor := ""; ; {
		resp, err := c.Wire().CountDeadLetters(ctx, &yardv1.CountDeadLettersRequest{Filter: f.Wire(), PeriodMs: milliseconds(period), Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, n := range resp.Counts {
			one := DeadLetterCount{n.Type, n.ErrorType, instant(n.PeriodAtMs), n.Letters, instant(n.FirstAtMs), instant(n.LastAtMs)}
			k := kind{n.Type, n.ErrorType, n.PeriodAtMs}
			i, ok := known[k]
			if !ok {
				known[k] = len(all)
				all = append(all, one)
				continue
			}
			sum := &all[i]
			sum.Letters += one.Letters
			if one.First.Before(sum.First) {
				sum.First = one.First
			}
			if one.Last.After(sum.Last) {
				sum.Last = one.Last
			}
		}
		if cursor = resp.NextCursor; cursor == "" {
			return all, nil
		}
	}
}

// GetDeadLetter returns a dead letter, whole, or NOT_FOUND.
func (c *Client) GetDeadLetter(ctx context.Context, taskID string) (*TaskInfo, error) {
	task, err := c.Wire().GetDeadLetter(ctx, taskID)
	return infoOf(task), err
}

// RedriveOptions say which dead letters come back, and how fast.
type RedriveOptions struct {
	// TaskIDs are those of the tasks. Default: all that match Filter.
	TaskIDs []string
	Filter  DeadLetterFilter
	// Preview counts what matches, and changes nothing.
	Preview bool
	// Rate is how many tasks come back a second, at most, so that others have room. Default 200; a preview has no rate.
	Rate int
	// Retry: fields that are set replace those of the tasks' policies from now on, and lists replace lists.
	Retry *RetryPolicy
	// Tasklist is where the tasks move to. Default: each stays in its own.
	Tasklist string
	// Reason and By are for people, at most 800 and 128 bytes; each task's history has them.
	Reason, By string
	// Cursor goes on with a redrive by filter that was given up, with the same options (Redriven.Cursor). Default: it begins.
	Cursor string
	// Progress is called after each step with the sums so far. Default: none.
	Progress func(Redriven)
}

// Redriven is what a redrive has done.
type Redriven struct {
	// Found letters match. Redriven tasks are back; Refused ones were no dead letters any more, and of Undecided ones the log did not say what became of them.
	Found, Redriven, Refused, Undecided int64
	// Cursor is where it goes on; empty: it is over.
	Cursor string
}

const redriveRate = 200

// Redrive brings dead letters back: the same tasks, with their ids and histories, whose failures count from 0 again. It goes step by step at a rate, until all that
// match are back, or ctx ends, and returns what it has done, also beside an error. A task that becomes a dead letter after it began stays. A letter comes back
// once, however many redrive it at the same time. A task does not take its unique key again, and its times (StartWithin, FinishWithin) begin again.
func (c *Client) Redrive(ctx context.Context, o RedriveOptions) (Redriven, error) {
	sum := Redriven{Cursor: o.Cursor}
	p := steps{rate: cmp.Or(max(o.Rate, 0), redriveRate), most: namedMax, preview: o.Preview}
	err := p.run(ctx, o.Cursor, o.TaskIDs, func(limit int32, cursor string, tasks []string) (int64, string, error) {
		req := &yardv1.RedriveRequest{TaskIds: tasks, Preview: o.Preview, Retry: o.Retry.wire(), Tasklist: o.Tasklist, Reason: o.Reason, By: o.By, RequestId: ids.NewRequestID(time.Now()).String()}
		if len(tasks) == 0 {
			req.Filter, req.Limit, req.Cursor = o.Filter.Wire(), limit, cursor
		}
		did, err := c.redriveStep(ctx, req)
		if err != nil {
			return 0, "", err
		}
		sum.Found += did.Found
		sum.Redriven += did.Redriven
		sum.Refused += did.Refused
		sum.Undecided += did.Undecided
		sum.Cursor = did.NextCursor
		if o.Progress != nil {
			o.Progress(sum)
		}
		return did.Found, did.NextCursor, nil
	})
	return sum, err
}

// redriveStep sends a step until the log has decided all of it, or ctx ends: the same request changes nothing twice.
func (c *Client) redriveStep(ctx context.Context, req *yardv1.RedriveRequest) (*yardv1.RedriveResponse, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	if len(req.TaskIds) == 0 {
		return c.Wire().Redrive(ctx, req)
	}
	for try := 0; ; try++ {
		did, err := c.Wire().Redrive(ctx, req)
		if err != nil || did.Undecided == 0 || !pause(ctx, backoff(try, 0)) {
			return did, err
		}
	}
}

// PurgeDeadLettersOptions say which dead letters are deleted, and how fast.
type PurgeDeadLettersOptions struct {
	// TaskIDs are those of the tasks. Default: all that match Filter.
	TaskIDs []string
	Filter  DeadLetterFilter
	// Preview counts what matches, and changes nothing.
	Preview bool
	// Rate is how many letters are deleted a second, at most. Default 500; a preview has no rate.
	Rate int
	// Reason and By are for people, in the engine's log, at most 800 and 128 bytes.
	Reason, By string
	// Cursor goes on with a purge by filter that was given up (PurgedDeadLetters.Cursor). Default: it begins.
	Cursor string
	// Progress is called after each step with the sums so far. Default: none.
	Progress func(PurgedDeadLetters)
}

// PurgedDeadLetters is what a purge of dead letters has done.
type PurgedDeadLetters struct {
	// Found letters match, Purged ones are deleted.
	Found, Purged int64
	// Cursor is where it goes on; empty: it is over.
	Cursor string
}

// PurgeDeadLetters deletes dead letters: their tasks stay ended, and cannot be redriven any more. It goes step by step as Redrive does.
func (c *Client) PurgeDeadLetters(ctx context.Context, o PurgeDeadLettersOptions) (PurgedDeadLetters, error) {
	sum := PurgedDeadLetters{Cursor: o.Cursor}
	p := steps{rate: cmp.Or(max(o.Rate, 0), purgeRate), most: stepMax, preview: o.Preview}
	err := p.run(ctx, o.Cursor, o.TaskIDs, func(limit int32, cursor string, tasks []string) (int64, string, error) {
		req := &yardv1.PurgeDeadLettersRequest{TaskIds: tasks, Preview: o.Preview, Reason: o.Reason, By: o.By}
		if len(tasks) == 0 {
			req.Filter, req.Limit, req.Cursor = o.Filter.Wire(), limit, cursor
		}
		did, err := c.Wire().PurgeDeadLetters(ctx, req)
		if err != nil {
			return 0, "", err
		}
		sum.Found += did.Found
		sum.Purged += did.Purged
		sum.Cursor = did.NextCursor
		if o.Progress != nil {
			o.Progress(sum)
		}
		return did.Found, did.NextCursor, nil
	})
	return sum, err
}

// ListDeadLetters returns one page of dead letters.
func (w Wire) ListDeadLetters(ctx context.Context, req *yardv1.ListDeadLettersRequest) (*yardv1.ListDeadLettersResponse, error) {
	return call[yardv1.ListDeadLettersResponse](ctx, &w.c.transport, w.c.subject("deadletters.list"), req)
}

// CountDeadLetters counts the dead letters of one step.
func (w Wire) CountDeadLetters(ctx context.Context, req *yardv1.CountDeadLettersRequest) (*yardv1.CountDeadLettersResponse, error) {
	return call[yardv1.CountDeadLettersResponse](ctx, &w.c.transport, w.c.subject("deadletters.count"), req)
}

// GetDeadLetter returns a dead letter, whole, or NOT_FOUND.
func (w Wire) GetDeadLetter(ctx context.Context, taskID string) (*yardv1.Task, error) {
	resp, err := call[yardv1.GetDeadLetterResponse](ctx, &w.c.transport, w.c.subject("deadletters.get"), &yardv1.GetDeadLetterRequest{TaskId: taskID})
	return resp.GetTask(), err
}

// Redrive carries out one step, or what it names. With a request_id it may be repeated.
func (w Wire) Redrive(ctx context.Context, req *yardv1.RedriveRequest) (*yardv1.RedriveResponse, error) {
	return call[yardv1.RedriveResponse](ctx, &w.c.transport, w.c.subject("deadletters.redrive"), req)
}

// PurgeDeadLetters carries out one step, or what it names.
func (w Wire) PurgeDeadLetters(ctx context.Context, req *yardv1.PurgeDeadLettersRequest) (*yardv1.PurgeDeadLettersResponse, error) {
	return call[yardv1.PurgeDeadLettersResponse](ctx, &w.c.transport, w.c.subject("deadletters.purge"), req)
}
