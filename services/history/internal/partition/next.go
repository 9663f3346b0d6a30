package partition

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// next returns the ready tasks in memory in the order in which they are to start.
func (o *Owner) next(ctx context.Context, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
	after := replica.Place{Priority: req.AfterPriority, ReadyAt: req.AfterReadyAtMs}
	if len(req.AfterId) > 0 {
		var err error
		if after.ID, err = ids.TaskIDFromBytes(req.AfterId); err != nil {
			return nil, fault.At(fault.InvalidArgument, "/after_id", "%v", err)
		}
	}
	tasklist, typ, group := req.GetFilter().GetTasklist(), req.GetFilter().GetType(), req.GetFilter().GetGroup()
	out := &rpcv1.ListTasksResponse{}
	err := o.Look(ctx, req.Domain, func(core *replica.Replica) {
		tasks, more := core.Next(int(req.GetFilter().GetLimit()), func(t *taskstate.Task) bool {
			return t.Domain == req.Domain && t.Tasklist == tasklist && (typ == "" || t.Type == typ) && (group == "" || t.Group() == group) && replica.PlaceOf(t).Compare(after) > 0
		})
		for _, t := range tasks {
			out.Tasks, out.ReadyAtMs = append(out.Tasks, record.Public(t, true, o.now().MS)), append(out.ReadyAtMs, t.ReadyAt)
		}
		out.More = more
	})
	return out, err
}
