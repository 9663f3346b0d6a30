package natsgate

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// Owners are the calls to history, timer and matching.
func Owners(nc *nats.Conn) owners.Owners {
	return owners.Owners{
		HistoryGet:       call[rpcv1.GetTaskRequest, rpcv1.GetTaskResponse](nc, topology.HistoryCall, "get"),
		HistoryList:      call[rpcv1.ListTasksRequest, rpcv1.ListTasksResponse](nc, topology.HistoryCall, "list"),
		HistoryDescribe:  call[rpcv1.DescribePartitionRequest, rpcv1.DescribePartitionResponse](nc, topology.HistoryCall, "describe"),
		HistoryWorkers:   call[rpcv1.ListWorkersRequest, rpcv1.ListWorkersResponse](nc, topology.HistoryCall, "workers"),
		HistoryKeys:      call[rpcv1.ListKeysRequest, rpcv1.ListKeysResponse](nc, topology.HistoryCall, "keys"),
		HistoryStuck:     call[rpcv1.StuckTasksRequest, yardv1.StuckTasksResponse](nc, topology.HistoryCall, "stuck"),
		HistoryBatch:     call[rpcv1.CountBatchRequest, rpcv1.CountBatchResponse](nc, topology.HistoryCall, "batch"),
		TimerGet:         call[rpcv1.GetTaskRequest, rpcv1.GetTaskResponse](nc, topology.TimerCall, "get"),
		TimerList:        call[rpcv1.ListTasksRequest, rpcv1.ListTasksResponse](nc, topology.TimerCall, "list"),
		TimerDescribe:    call[rpcv1.DescribeWaitingRequest, rpcv1.DescribeWaitingResponse](nc, topology.TimerCall, "describe"),
		TimerAhead:       call[rpcv1.CountAheadRequest, rpcv1.CountAheadResponse](nc, topology.TimerCall, "ahead"),
		MatchingDescribe: call[rpcv1.DescribeShardRequest, rpcv1.DescribeShardResponse](nc, topology.MatchingCall, "describe"),
	}
}

// message is a pointer to a generated message.
type message[M any] interface {
	*M
	natsrpc.Message
}

func call[Req, Resp any, PReq message[Req], PResp message[Resp]](nc *nats.Conn, subject func(n int, verb string) string, verb string) func(context.Context, int, PReq) (PResp, error) {
	return func(ctx context.Context, n int, req PReq) (PResp, error) {
		return natsrpc.Call[Resp, PResp](ctx, nc, subject(n, verb), req)
	}
}
