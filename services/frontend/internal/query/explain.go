package query

import (
	"context"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/explain"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/gather"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

const (
	// explainHolders is how many holders of a limit an answer has.
	explainHolders = 10
	// explainDrained is how many drained workers of a tasklist it has.
	explainDrained = 10
)

// Explain says why a task does not start now (tasks.explain).
func (q *Queries) Explain(c call.Call, req *yardv1.ExplainRequest, answer call.Answer) {
	id, bad := validate.Explain(req)
	if bad == nil && q.Tasks.Foreign(id, c.Now) {
		bad = owners.NoTask(id)
	}
	q.Run.Ask(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		found, err := q.Tasks.Find(ctx, c.Domain, id, time.Time{})
		if err == nil && found.GetTask() == nil {
			err = owners.NoTask(id)
		}
		if err != nil {
			return nil, err
		}
		return q.explain(ctx, c, found)
	})
}

// explain asks the owners what keeps a task waiting.
func (q *Queries) explain(ctx context.Context, c call.Call, found *rpcv1.GetTaskResponse) (*yardv1.ExplainResponse, error) {
	task := found.Task
	f := &explain.Facts{Task: gather.TaskFacts(task)}
	var known *gather.Explained
	if f.Task.State != explain.Ended && f.Task.State != explain.Runs {
		var err error
		if f.Queue, err = q.queueOf(ctx, found.Lane, task); err != nil {
			return nil, err
		}
		if f.First, err = q.firstOf(ctx, task); err != nil {
			return nil, err
		}
		known, f.Workers.Silent = q.askMatching(ctx, task)
		known.AddTo(f, c.ServerNow().UnixMilli())
		if !f.Workers.Free {
			f.Workers.Drained = q.drainedOf(ctx, task)
		}
	}
	f.NowMS = c.ServerNow().UnixMilli()
	f.Pauses = q.pausesOf(task, f.NowMS)
	resp := &yardv1.ExplainResponse{Task: task}
	for _, r := range explain.Reasons(f) {
		resp.Reasons = append(resp.Reasons, known.Reason(&r))
	}
	task.Payload, task.Result, task.Progress, task.Events = nil, nil, nil, nil
	return resp, nil
}

// queueOf is the queue of the log that a task on disk waits in; nil = it is not on disk.
func (q *Queries) queueOf(ctx context.Context, lane string, task *yardv1.Task) (*explain.Queue, error) {
	id, err := ids.ParseTaskID(task.TaskId)
	if err != nil || task.State != yardv1.TaskState_TASK_STATE_QUEUED {
		return nil, err
	}
	d, err := owners.Retry(ctx, time.Time{}, func(ctx context.Context) (*rpcv1.DescribePartitionResponse, error) {
		return q.Tasks.HistoryDescribe(ctx, id.Partition(), &rpcv1.DescribePartitionRequest{Domain: task.Domain, Queues: 1000})
	})
	if err != nil {
		return nil, err
	}
	return gather.QueueOf(d.GetQueues().GetQueues(), lane, task), nil
}

// firstOf is the first task of the order key of a task that waits for its turn, nil = it does not.
func (q *Queries) firstOf(ctx context.Context, task *yardv1.Task) (*explain.First, error) {
	if !task.AwaitsTurn {
		return nil, nil
	}
	key, err := q.Line(ctx, task.Domain, task.OrderKey)
	switch {
	case fault.CodeOf(err) == fault.NotFound || err == nil && key.Head.GetTaskId() == task.TaskId: // its turn has come meanwhile
		return nil, nil
	case err != nil:
		return nil, err
	}
	head := key.Head
	return &explain.First{
		TaskID: head.TaskId, State: head.State.Name(), DueMS: head.DueAtMs, Worker: head.Worker, Blocks: head.Blocked, Why: key.Reason, Waiting: key.Waiting,
	}, nil
}

// pausesOf are the pauses that cover a task.
func (q *Queries) pausesOf(task *yardv1.Task, nowMS int64) (all []explain.Pause) {
	domain, p := task.Domain, catalog.Pauses
	for _, one := range []struct {
		kind, name string
		pause      *yardv1.Pause
	}{
		{"domain", domain, p.Domains.Of(q.Catalog, "", domain)},
		{"tasklist", task.Tasklist, p.Tasklists.Of(q.Catalog, domain, task.Tasklist)},
		{"type", task.Type, p.Types.Of(q.Catalog, domain, task.Type)},
		{"group", task.Group, p.Groups.Of(q.Catalog, domain, task.Group)},
	} {
		if s := one.pause; catalog.Paused(s, nowMS) && one.name != "" {
			all = append(all, explain.Pause{Kind: one.kind, Name: one.name, By: s.By, Why: s.Reason, SinceMS: s.SinceMs, UntilMS: s.UntilMs})
		}
	}
	return all
}

// askMatching asks each shard once which limits cover a task, and who polls its tasklist. Any shard may have attempts that use the limits. silent are shards of
// the tasklist that do not answer.
func (q *Queries) askMatching(ctx context.Context, task *yardv1.Task) (known *gather.Explained, silent []int) {
	m := q.Partitioning.Matching
	serving := make([]bool, m)
	for p := range q.Catalog.Partitions(task.Domain, task.Tasklist) {
		serving[ids.MatchingShard(task.Domain, task.Tasklist, p, m)] = true
	}
	ask := &rpcv1.DescribeShardRequest{
		Domain: task.Domain, Tasklist: task.Tasklist, Explain: &rpcv1.ExplainTask{Type: task.Type, Group: task.Group, Holders: explainHolders},
	}
	parts, errs := owners.Some(ctx, m, topWait, func(ctx context.Context, m int) (*rpcv1.DescribeShardResponse, error) {
		return q.Tasks.MatchingDescribe(ctx, m, ask)
	})
	for shard, err := range errs {
		if err != nil && serving[shard] {
			silent = append(silent, shard)
		}
	}
	known = gather.Explain(parts, func(shard int) bool { return serving[shard] }, explainHolders)
	q.lookUpHolders(ctx, task.Domain, known.Limits)
	return known, silent
}

// drainedOf are the drained workers that poll the tasklist of a task. They are left out if history does not answer.
func (q *Queries) drainedOf(ctx context.Context, task *yardv1.Task) (all []explain.DrainedWorker) {
	ask := &rpcv1.ListWorkersRequest{Domain: task.Domain, Limit: validate.ListMax}
	for _, w := range catalog.Workers.Of(q.Catalog, "", task.Domain).GetWorkers() {
		ask.WorkerIds = append(ask.WorkerIds, w.WorkerId)
	}
	id, err := ids.ParseTaskID(task.TaskId)
	if err != nil || len(ask.WorkerIds) == 0 {
		return nil
	}
	heard, err := q.Tasks.HistoryWorkers(ctx, id.Partition(), ask)
	if err != nil {
		return nil
	}
	for _, w := range heard.Workers {
		d := q.Catalog.DrainedWorker(task.Domain, w.WorkerId)
		if d != nil && slices.Contains(w.Tasklists, task.Tasklist) && len(all) < explainDrained {
			all = append(all, explain.DrainedWorker{ID: w.WorkerId, Worker: w.Worker, By: d.By, Why: d.Reason, SinceMS: d.SinceMs})
		}
	}
	return all
}
