// Package owners asks the owners of partitions and shards, which are other processes.
//
// Owns: how often and for how long an owner is asked, and where a task is searched for.
// Never does: put several answers together.
// On failure: an owner that is away is asked again until the context ends; then the answer is UNAVAILABLE.
package owners

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Owners asks the owner of a partition or a shard. Each func is one call, not
// retried; its error is a *fault.Error, UNAVAILABLE where no node serves it.
type Owners struct {
	HistoryGet       func(ctx context.Context, p int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error)
	HistoryList      func(ctx context.Context, p int, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error)
	HistoryWorkers   func(ctx context.Context, p int, req *rpcv1.ListWorkersRequest) (*rpcv1.ListWorkersResponse, error)
	HistoryKeys      func(ctx context.Context, p int, req *rpcv1.ListKeysRequest) (*rpcv1.ListKeysResponse, error)
	HistoryStuck     func(ctx context.Context, p int, req *rpcv1.StuckTasksRequest) (*yardv1.StuckTasksResponse, error)
	HistoryBatch     func(ctx context.Context, p int, req *rpcv1.CountBatchRequest) (*rpcv1.CountBatchResponse, error)
	HistoryDescribe  func(ctx context.Context, p int, req *rpcv1.DescribePartitionRequest) (*rpcv1.DescribePartitionResponse, error)
	TimerGet         func(ctx context.Context, p int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error)
	TimerList        func(ctx context.Context, p int, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error)
	TimerDescribe    func(ctx context.Context, p int, req *rpcv1.DescribeWaitingRequest) (*rpcv1.DescribeWaitingResponse, error)
	TimerAhead       func(ctx context.Context, p int, req *rpcv1.CountAheadRequest) (*rpcv1.CountAheadResponse, error)
	MatchingDescribe func(ctx context.Context, m int, req *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error)
}

// Missing tells whether one of the calls is not there.
func (o Owners) Missing() bool {
	return o.HistoryGet == nil || o.HistoryList == nil || o.HistoryDescribe == nil || o.HistoryWorkers == nil || o.HistoryKeys == nil || o.HistoryStuck == nil || o.HistoryBatch == nil ||
		o.TimerGet == nil || o.TimerList == nil || o.TimerDescribe == nil || o.TimerAhead == nil || o.MatchingDescribe == nil
}
