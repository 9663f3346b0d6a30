package partition

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/shared/paging"
)

// workerAttemptsMax is how many attempts of a worker are listed.
const workerAttemptsMax = 10

// endSilent has the attempts end of workers that fell silent.
func (o *Owner) endSilent() {
	fallen := o.Workers.Fallen()
	if len(fallen) == 0 {
		return
	}
	in := replica.Silent{Workers: make([]dispatch.WorkerKey, len(fallen))}
	for i, k := range fallen {
		in.Workers[i] = dispatch.WorkerKey(k)
	}
	o.step(in)
}

// expectWorkers ends a takeover: a worker that gave signs of life to an owner before, and gives none to this process,
// falls silent here. One that did so during the takeover is forgotten soon, so its attempts end first.
func expectWorkers(o *Owner) {
	o.endSilent()
	for w, every := range o.core.GaveSigns() {
		o.Workers.Expect(w.Domain, w.ID, time.Duration(every)*time.Millisecond)
	}
}

// ListWorkers tells of workers of a domain that are heard, and what they run here.
func (o *Owner) ListWorkers(ctx context.Context, req *rpcv1.ListWorkersRequest) (*rpcv1.ListWorkersResponse, error) {
	out, ids := o.Workers.List(req)
	err := o.Look(ctx, req.Domain, func(core *replica.Replica) {
		runs, at := core.WorkersRun(req.Domain, ids, workerAttemptsMax), o.now().MS
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
