package operate

import (
	"context"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/outcome"
)

// A purge is a list whose tasks are cancelled: what a step does depends on its cursor only, and the log decides of each
// task. It goes from the newest task to the oldest, from the moment when it began, in passes (core/purge).

// Purge cancels tasks of a tasklist, a type or a group that do not run (tasklists.purge, types.purge, groups.purge).
func (o *Operator) Purge(k validate.Kind) func(call.Call, *yardv1.PurgeRequest, call.Answer) {
	return func(c call.Call, req *yardv1.PurgeRequest, answer call.Answer) {
		p, bad := k.Purge(req, c.Now)
		o.Run.Ask(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
			done, err := o.PurgeStep(ctx, c, p)
			if err != nil {
				return nil, err
			}
			if n := done.Cancelled + done.CancelRequested; n > 0 { // steps that cancel nothing cost no line: a domain could fill the log with them
				o.Log.Info("tasks were purged", "domain", c.Domain, "tasklist", p.Filter.Tasklist, "type", p.Filter.Type, "group", p.Filter.Group, "reason", p.Reason, "tasks", n)
			}
			return &yardv1.PurgeResponse{Purged: done}, nil
		})
	}
}

// PurgeStep cancels a page of tasks, or counts it.
func (o *Operator) PurgeStep(ctx context.Context, c call.Call, p validate.Purge) (*yardv1.Purged, error) {
	unread := int64(0)
	var err error
	if p.Begins { // before the list: what is read between the two shows in neither
		if unread, err = o.Reads.Unread(ctx, c.Domain, p.Filter.Tasklist); err != nil {
			return nil, err
		}
		p.Unread(unread)
	}
	page, next, err := o.Reads.Page(ctx, c, p.Filter)
	if err != nil {
		return nil, err
	}
	page = slices.DeleteFunc(page, func(t *yardv1.Task) bool { return t.TaskId >= p.Before.String() }) // the last pages have tasks of any age
	done := &yardv1.Purged{Found: int64(len(page))}
	if !p.Preview && len(page) > 0 {
		if err := o.cancelPage(c, p, page, done); err != nil {
			return nil, err
		}
	}
	p.Took(done.Cancelled, done.Undecided)
	if done.NextCursor = p.Next(next, p.Preview); next != "" {
		return done, nil
	}
	if done.UnreadBatches = unread; !p.Begins {
		done.UnreadBatches, err = o.Reads.Unread(ctx, c.Domain, p.Filter.Tasklist)
	}
	return done, err
}

// cancelPage cancels tasks as tasks.cancel does, and counts what became of them.
func (o *Operator) cancelPage(c call.Call, p validate.Purge, page []*yardv1.Task, done *yardv1.Purged) error {
	req := &yardv1.CancelRequest{Reason: p.Reason}
	for _, t := range page {
		req.TaskIds = append(req.TaskIds, t.TaskId)
	}
	entries, err := validate.Cancel(req, c.Domain)
	if err != nil {
		return err
	}
	verdicts, err := o.Outcomes.Decide(c, entries)
	if err != nil {
		return err
	}
	for _, v := range verdicts {
		switch {
		case v.Code == outcome.CodeOK && v.CancelRequested:
			done.CancelRequested++
		case v.Code == outcome.CodeOK:
			done.Cancelled++
		case v.Code == string(fault.NotFound), v.Code == string(fault.Stale):
			done.Ended++
		default:
			done.Undecided++
		}
	}
	return nil
}
