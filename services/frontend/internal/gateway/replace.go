package gateway

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// replace changes the task that has the key of open task k into that one, and tells whether task k is decided: history decides, in the order of the log. A try
// of the request that did it before is known by its name, also where the task has run and ended since. A replacement of unknown outcome is decided too, without an outcome.
func (g *Gateway) replace(ctx context.Context, pt *part, k int, holder ids.TaskID) (bool, error) {
	answered := make(chan *yardv1.Verdict, 1)
	entry := pt.replacement(k, holder)
	r := &outcomeRequest{
		g: g, call: pt.call, verdicts: []*yardv1.Verdict{{TaskId: holder.String()}}, left: 1,
		answer: func(m codec.Message, _ error) { answered <- m.(*yardv1.OutcomeResponse).Verdicts[0] },
	}
	shares, foreign := r.split([]validate.Outcome{entry})
	if len(foreign) > 0 {
		return false, fault.New(fault.Internal, "the unique key of task %d is that of %s, which is not of this cluster", pt.open[k].where, holder)
	}
	if err := g.outcomes.enqueue(shares[0]); err != nil {
		return false, err
	}
	var v *yardv1.Verdict
	select {
	case v = <-answered:
	case <-ctx.Done():
		pt.open[k].asked = holder
		return false, context.Cause(ctx)
	}
	switch code := fault.Code(v.Code); {
	case code == codeOK:
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
