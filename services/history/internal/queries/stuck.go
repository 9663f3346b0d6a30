package queries

import (
	"cmp"
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/paging"
)

// stuckAfterMS is after how long an attempt is listed as stuck if neither the request nor the settings say.
const stuckAfterMS = 60_000

// Stuck lists the attempts of a domain that run for too long here, and counts them.
func (q Queries) Stuck(ctx context.Context, req *rpcv1.StuckTasksRequest) (*yardv1.StuckTasksResponse, error) {
	filter := req.GetFilter()
	after := func(typ string) int64 {
		return cmp.Or(filter.GetRunningForMs(), q.Events.StuckMS(req.Domain, typ), stuckAfterMS)
	}
	out := &yardv1.StuckTasksResponse{}
	err := q.Look(ctx, req.Domain, func(core *replica.Replica) {
		now := q.NowMS()
		oldest, found := core.Stuck(&dispatch.StuckQuery{
			Domain: req.Domain, Tasklist: filter.GetTasklist(), Type: filter.GetType(), AfterMS: after, NowMS: now, Most: max(1, int(filter.GetLimit())),
		})
		out.Found = found
		for _, t := range oldest {
			out.Tasks = append(out.Tasks, stuckTask(t, after(t.Type), now))
		}
	})
	out.Tasks, _ = paging.Cut(out.Tasks, len(out.Tasks), paging.BytesMax, (*yardv1.StuckTask).SizeVT)
	return out, err
}

func stuckTask(t *taskstate.Task, afterMS, nowMS int64) *yardv1.StuckTask {
	return &yardv1.StuckTask{
		TaskId: t.ID.String(), Type: t.Type, Tasklist: t.Tasklist, Group: t.Group(), Worker: t.Attempt.Worker.Name(), WorkerId: t.Attempt.Worker.ID(),
		StartedAtMs: t.Attempt.StartedAt, RunningForMs: nowMS - t.Attempt.StartedAt, StuckAfterMs: afterMS, DeadlineMs: t.Attempt.DeadlineAt, Grants: int32(t.Grants()),
		CancelRequested: t.CancelRequested,
	}
}
