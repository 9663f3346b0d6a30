package queries

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/shared/paging"
)

// workerAttemptsMax is how many attempts of a worker are listed.
const workerAttemptsMax = 10

// ListWorkers tells of workers of a domain that are heard, and what they run here.
func (q Queries) ListWorkers(ctx context.Context, req *rpcv1.ListWorkersRequest) (*rpcv1.ListWorkersResponse, error) {
	out, ids := q.Workers.List(req)
	err := q.Look(ctx, req.Domain, func(core *replica.Replica) {
		runs, at := core.WorkersRun(req.Domain, ids, workerAttemptsMax), q.NowMS()
		for _, one := range out.Workers {
			one.AttemptsCount = runs[one.WorkerId].Count
			for _, t := range runs[one.WorkerId].Oldest {
				one.Attempts = append(one.Attempts, &yardv1.LiveAttempt{
					TaskId: t.ID.String(), Type: t.Type, Tasklist: t.Tasklist, RunningForMs: max(0, at-t.Attempt.StartedAt),
				})
			}
		}
	})
	if err != nil {
		return nil, err
	}
	cut := false
	out.Workers, cut = paging.Cut(out.Workers, int(req.Limit), paging.BytesMax, (*yardv1.LiveWorker).SizeVT)
	out.More = out.More || cut
	return out, nil
}
