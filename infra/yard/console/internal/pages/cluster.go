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
	// History and Timer are the processes that serve it; none is a fault, several are for a moment while it moves.
	History, Timer []owner
}

// owner is a process that serves a partition or a shard since a time, Unix ms.
type owner struct {
	Node    string
	SinceMs int64
	// Snapshot is nil where the service makes none, or it is not known yet.
	Snapshot *process.Snapshot
}

type clusterBody struct {
	Partitions []partitionRow
	Processes  []process.Answer
	// Shards are those of matching, with the processes that serve them.
	Shards []shardRow
}

type shardRow struct {
	Shard  int
	Owners []owner
}

func showCluster(r *Request) (any, error) {
	partitions, err := queues(r)
	if err != nil {
		return nil, err
	}
	body := clusterBody{}
	for _, p := range partitions {
		row := partitionRow{Partition: p.Partition, Error: p.Error, Submits: p.Submits, Others: p.Others}
		for _, q := range p.Queues {
			row.Tasks, row.Most, row.Unread = row.Tasks+q.Tasks, row.Most+q.TasksMax, row.Unread+q.Unread
			if q.Domain != "" {
				row.Split = append(row.Split, q)
			}
		}
		body.Partitions = append(body.Partitions, row)
	}
	if body.Processes, err = r.pages.Access.Health(r.Context(), r.page.role); err != nil {
		return nil, err
	}
	owners, shards := ownersOf(body.Processes)
	for i := range body.Partitions {
		row := &body.Partitions[i]
		row.History, row.Timer = owners["history"][int(row.Partition)], owners["timer"][int(row.Partition)]
	}
	for shard := range shards {
		body.Shards = append(body.Shards, shardRow{shard, owners["matching"][shard]})
	}
	return body, nil
}

// queues are those of all partitions.
func queues(r *Request) (all []*yardv1.PartitionQueues, err error) {
	admin, err := r.Admin()
	if err != nil {
		return nil, err
	}
	for req := (&yardv1.ListQueuesRequest{Limit: splitMax}); ; {
		page, err := admin.ListQueues(r.Context(), req)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Partitions...)
		if req.Partition = page.NextPartition; req.Partition == 0 {
			return all, nil
		}
	}
}

// splitMax is how many queues that are split off the page has of each partition.
const splitMax = 20

// ownersOf are the processes that serve each partition or shard, by service, and how many shards there are.
func ownersOf(answers []process.Answer) (owners map[string]map[int][]owner, shards int) {
	owners = map[string]map[int][]owner{}
	for _, a := range answers {
		if owners[a.Service] == nil {
			owners[a.Service] = map[int][]owner{}
		}
		for _, p := range a.Serves {
			owners[a.Service][p.Partition] = append(owners[a.Service][p.Partition], owner{a.Node, p.SinceMs, p.Snapshot})
		}
		if a.Service == "matching" {
			shards = max(shards, a.Partitions)
		}
	}
	return owners, shards
}
