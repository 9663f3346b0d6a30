package operate

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/gather"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// StuckTasks lists the attempts that run for too long (tasks.stuck). Every owner of a history partition knows those of its partition.
func (o *Operator) StuckTasks(c call.Call, req *yardv1.StuckTasksRequest, answer call.Answer) {
	o.Run.Ask(c, validate.StuckTasks(req), answer, func(ctx context.Context) (codec.Message, error) {
		parts, err := owners.Same(ctx, o.Tasks.Partitions, o.Tasks.HistoryStuck, &rpcv1.StuckTasksRequest{Domain: c.Domain, Filter: req})
		if err != nil {
			return nil, err
		}
		resp := gather.Stuck(parts)
		resp.Tasks, _ = call.Fit(c, resp.Tasks, int(req.Limit))
		return resp, nil
	})
}
