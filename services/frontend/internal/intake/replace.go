package intake

import (
	"context"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/outcome"
)

// replace changes the task that has the key of open task k into that one, and tells whether task k is decided: history decides, in the order of the log. A try
// of the request that did it before is known by its name, also where the task has run and ended since. A replacement of unknown outcome is decided too, without an outcome.
func (in *Intake) replace(ctx context.Context, pt *part, k int, holder ids.TaskID) (bool, error) {
	if in.Tasks.Foreign(holder, pt.call.Now) {
		return false, fault.New(fault.Internal, "the unique key of task %d is that of %s, which is not of this cluster", pt.open[k].where, holder)
	}
	v, err := in.DecideOne(ctx, pt.call, pt.replacement(k, holder))
	if err != nil {
		if ctx.Err() != nil {
			pt.open[k].asked = holder
		}
		return false, err
	}
	switch code := fault.Code(v.Code); {
	case code == outcome.CodeOK:
		pt.decide(k, holder, yardv1.SubmitOutcome_SUBMIT_OUTCOME_REPLACED)
		return true, nil
	case v.Final: // nor will it be known
		pt.decide(k, holder, yardv1.SubmitOutcome_SUBMIT_OUTCOME_UNSPECIFIED)
		return true, nil
	case code == fault.FailedPrecondition, code == fault.NotFound, code == fault.Stale:
		return false, nil
	default: // what became of it is not known, or it is to be repeated
		pt.open[k].asked = holder
		return false, fault.New(code, "%s", v.Message)
	}
}

// replacement is what changes a task with the key of open task k into that one. The first one that a first try sends to the task is alone.
func (pt *part) replacement(k int, holder ids.TaskID) validate.Outcome {
	entry, open := validate.Replacement(holder, pt.accepted.Records[k]), &pt.open[k]
	u := entry.Event.Update
	u.SinceMs, _ = tries.CopiesSince(pt.Made, pt.call.ServerNow())
	if !pt.Repeats() && !slices.Contains(open.sent, holder) {
		u.SoleUntilMs = pt.Made.Add(tries.FirstTryFor - tries.AheadMax - tries.ClocksApart).UnixMilli()
	}
	open.sent = append(open.sent, holder)
	return entry
}

// untold answers s: history does not know what became of a replacement, nor will a repeat tell.
func (in *Intake) untold(s *submission) {
	in.metrics.unknown.Add(1)
	in.end(s, &fault.Error{
		Code: fault.Unknown, Detail: map[string]string{fault.DetailFinal: "true"},
		Message: "another submit has replaced a task since, and the outcome of this one is unknown: do not repeat it; look at the task, and submit it again as a new request",
	})
}
