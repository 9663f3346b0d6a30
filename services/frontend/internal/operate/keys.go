package operate

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/outcome"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// The owners of partitions tell of the lines of order keys. An operator's command on a key is an event about its first task: that it is the first is seen
// before, and stays true until it ends (decision 0048).

// UnblockKey gives the task that blocks an order key another attempt (keys.unblock).
func (o *Operator) UnblockKey(c call.Call, req *yardv1.UnblockKeyRequest, answer call.Answer) {
	k, bad := validate.UnblockKey(req, c.Domain, c.Form())
	o.commandKey(c, req, k, bad, answer, func(v *yardv1.Verdict) codec.Message {
		return &yardv1.UnblockKeyResponse{TaskId: v.TaskId, Revision: v.Revision}
	})
}

// SkipKey makes the first task of an order key a dead letter (keys.skip).
func (o *Operator) SkipKey(c call.Call, req *yardv1.SkipKeyRequest, answer call.Answer) {
	k, bad := validate.SkipKey(req, c.Domain, c.Form())
	o.commandKey(c, req, k, bad, answer, func(v *yardv1.Verdict) codec.Message {
		return &yardv1.SkipKeyResponse{TaskId: v.TaskId, CancelRequested: v.CancelRequested}
	})
}

// commandKey asks the log for what is to be done with the first task of an order key.
func (o *Operator) commandKey(c call.Call, req validate.Repeatable, k *validate.KeyCommand, bad error, answer call.Answer, done func(*yardv1.Verdict) codec.Message) {
	o.Run.Ask(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		if k.Named {
			if err := o.mayCommand(ctx, c, k); err != nil {
				return nil, err
			}
		} else {
			line, err := o.Reads.Line(ctx, c.Domain, k.OrderKey)
			if err != nil {
				return nil, err
			}
			if k.Head, err = ids.ParseTaskID(line.GetHead().GetTaskId()); err != nil {
				return nil, fault.New(fault.Internal, "the first task of the order key: %v", err)
			}
		}
		entries := []validate.Outcome{k.Outcome()}
		if err := outcome.Date(c, req, entries); err != nil {
			return nil, err
		}
		verdicts, err := o.Outcomes.Decide(c, entries)
		if err != nil {
			return nil, err
		}
		if v := verdicts[0]; v.Code != outcome.CodeOK {
			refused := fault.New(fault.Code(v.Code), "task %s: %s", v.TaskId, v.Message)
			if v.Final {
				refused.Detail = map[string]string{fault.DetailFinal: "true"}
			}
			return nil, refused
		}
		return done(verdicts[0]), nil
	})
}

// mayCommand refuses what is about a task that waits behind the first one of its order key, or for its time. The first one stays it until it ends, or is put
// off by an update: so this need not be decided in the log. One that has ended is asked for all the same, since a repeat may ask.
func (o *Operator) mayCommand(ctx context.Context, c call.Call, k *validate.KeyCommand) error {
	if o.Tasks.Foreign(k.Head, c.Now) {
		return owners.NoTask(k.Head)
	}
	task, err := o.Tasks.LookUp(ctx, c.Domain, k.Head, time.Time{})
	switch {
	case err != nil:
		return err
	case task == nil:
		return owners.NoTask(k.Head)
	case task.OrderKey == k.OrderKey && (task.AwaitsTurn || task.State == yardv1.TaskState_TASK_STATE_WAITING):
		return fault.At(fault.FailedPrecondition, "/task_id", "task %s is not the first one of the order key %q", k.Head, k.OrderKey)
	}
	return nil
}
