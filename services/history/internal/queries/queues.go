package queries

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/busiest"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
)

// queues shows what lies in the lanes, and in the queues that are split off.
func (q Queries) queues(ctx context.Context, req *rpcv1.DescribePartitionRequest) (*rpcv1.DescribePartitionResponse, error) {
	out := &yardv1.PartitionQueues{Partition: int32(q.Partition)}
	err := q.Look(ctx, req.Domain, func(core *replica.Replica) {
		all := core.States(req.Domain)
		if most := ids.Lanes + int(req.Queues); len(all) > most {
			all, out.Others = all[:most], int32(len(all)-most)
		}
		for _, s := range all {
			unread, splitAt := q.Unread(s.Queue)
			out.Queues = append(out.Queues, &yardv1.Queue{
				Lane: s.Lane.String(), Domain: s.Place.Domain(), Tasklist: s.Place.Tasklist(), Read: int64(s.Read), Unread: unread, SplitAtMs: splitAt,
				Tasks: int64(s.Tasks), TasksMax: int64(s.TasksMax), Bytes: s.Bytes, BytesMax: s.BytesMax, LowClass: s.LowClass,
			})
		}
		if req.Domains > 0 {
			out.Domains = q.work(core.Domains(req.Domain, int(req.Domains)))
		}
	})
	return &rpcv1.DescribePartitionResponse{Queues: out}, err
}

// top is what the busiest domains do and have, as last counted. No task is looked at.
func (q Queries) top(req *yardv1.TopDomainsRequest) *yardv1.TopDomainsResponse {
	out := &yardv1.TopDomainsResponse{}
	if q.Domains == nil {
		return out
	}
	for name, w := range q.Domains() {
		out.Domains = append(out.Domains, &yardv1.TopDomain{
			Domain: name, AdmittedPerS: w.Admitted, StartedPerS: w.Started, CompletedPerS: w.Completed, FailedPerS: w.Failed,
			Ready: w.Ready, Running: w.Running, Backoff: w.Backoff, Unread: w.Unread, OldestReadyMs: w.OldestMS,
		})
	}
	out.Domains = busiest.OfPartition(out.Domains, req)
	return out
}

func (q Queries) work(all []dispatch.DomainCensus) (out []*yardv1.DomainWork) {
	for _, d := range all {
		w := &yardv1.DomainWork{Domain: d.Domain, Ready: d.Ready, Running: d.Running, Backoff: d.Backoff, Completed: d.Completed, Failed: d.Failed}
		if d.OldestReadyAt > 0 {
			w.OldestReadyMs = max(0, q.NowMS()-d.OldestReadyAt)
		}
		out = append(out, w)
	}
	return out
}
