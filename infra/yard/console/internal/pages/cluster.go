package pages

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// partitionRow is what a history partition has in memory and on disk.
type partitionRow struct {
	Partition           int32
	Error, Submits      string
	Tasks, Most, Unread int64
	// Split are the queues of domains and tasklists that are split off.
	Split  []*yardv1.Queue
	Others int32
}

type clusterBody struct {
	Partitions []partitionRow
	Processes  []process.Answer
}

func showCluster(r *Request) (any, error) {
	sample := r.pages.Sampler.Last(followCluster(r))
	if sample.Value == nil {
		return nil, sample.Err
	}
	body := clusterBody{}
	for _, p := range sample.Value.(*load).Partitions {
		row := partitionRow{Partition: p.Partition, Error: p.Error, Submits: p.Submits, Others: p.Others}
		for _, q := range p.Queues {
			row.Tasks, row.Most, row.Unread = row.Tasks+q.Tasks, row.Most+q.TasksMax, row.Unread+q.Unread
			if q.Domain != "" {
				row.Split = append(row.Split, q)
			}
		}
		body.Partitions = append(body.Partitions, row)
	}
	var err error
	body.Processes, err = r.pages.Access.Health(r.Context(), r.page.role)
	return body, err
}
