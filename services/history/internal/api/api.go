// Package api serves the calls to the owner of a history partition, over core NATS.
//
// Owns: subjects and wire forms. Never does: answer for a partition that is not
// owned; no subscriber is how a caller learns to try again.
// On failure: errors travel as fault.Error.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/batches"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/queries"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// Serve subscribes to the calls of a partition until ctx ends.
func Serve(ctx context.Context, nc *nats.Conn, questions queries.Queries, replies *natsrpc.Replies, log *slog.Logger) error {
	var subs []*nats.Subscription
	defer func() {
		for _, s := range subs {
			_ = s.Unsubscribe() // a closed connection has unsubscribed it
		}
	}()
	var failed error
	add := func(s *nats.Subscription, err error) {
		if err != nil {
			failed = errors.Join(failed, err)
			return
		}
		subs = append(subs, s)
	}
	o := questions.Owner
	call := func(verb string) string { return topology.HistoryCall(o.Partition, verb) }
	add(nc.Subscribe(call("get"), func(m *nats.Msg) {
		if replies.Service(m.Reply) {
			get(ctx, nc, o, m, log)
		}
	}))
	add(serve(nc, call("list"), replies, log, questions.List))
	add(serve(nc, call("describe"), replies, log, questions.Describe))
	add(serve(nc, call("bookings"), replies, log, questions.Bookings))
	add(serve(nc, call("undelivered"), replies, log, questions.Undelivered))
	add(serve(nc, call("retrigger"), replies, log, o.Retrigger))
	add(serve(nc, call("workers"), replies, log, questions.ListWorkers))
	add(serve(nc, call("keys"), replies, log, questions.Keys))
	add(serve(nc, call("stuck"), replies, log, questions.Stuck))
	add(serve(nc, call("batch"), replies, log, func(ctx context.Context, req *rpcv1.CountBatchRequest) (*rpcv1.CountBatchResponse, error) {
		return batches.Count(ctx, o, o.Log, req)
	}))
	add(nc.Subscribe(topology.HintMissingTriggers, func(m *nats.Msg) {
		hint := &rpcv1.Hungry{}
		if hint.UnmarshalVT(m.Data) == nil {
			o.Hungry(ctx, hint)
		}
	}))
	if failed != nil {
		return fmt.Errorf("subscribe to the calls of history partition %d: %w", o.Partition, failed)
	}
	watch(ctx, nc, o)
	return nil
}

// reconnectCheck is how often the connection is looked at. It leaves the others a
// moment to come back too.
const reconnectCheck = time.Second

// watch tells the owner when the connection has been broken, until ctx ends.
func watch(ctx context.Context, nc *nats.Conn, o *partition.Owner) {
	for seen := nc.Stats().Reconnects; backoff.Sleep(ctx, pace.Of(reconnectCheck)); {
		if n := nc.Stats().Reconnects; n != seen {
			seen = n
			o.Reconnected(ctx)
		}
	}
}

// serve answers calls with what answer returns. It keeps a nil pointer from becoming a non-nil Message.
func serve[Req any, PReq interface {
	*Req
	natsrpc.Message
}, Resp natsrpc.Message](nc *nats.Conn, subject string, replies *natsrpc.Replies, log *slog.Logger, answer func(context.Context, PReq) (Resp, error)) (*nats.Subscription, error) {
	return natsrpc.Serve(nc, subject, replies, log, func(ctx context.Context, req PReq) (natsrpc.Message, error) {
		resp, err := answer(ctx, req)
		if err != nil {
			return nil, err
		}
		return resp, nil
	})
}

// get answers later, without a goroutine that waits: thousands may wait for a result.
func get(ctx context.Context, nc *nats.Conn, o *partition.Owner, m *nats.Msg, log *slog.Logger) {
	answer := func(resp *rpcv1.GetTaskResponse, err error) {
		var data []byte
		if err == nil {
			data, err = resp.MarshalVT()
		}
		if err != nil {
			err = natsrpc.RespondError(nc, m.Reply, fault.From(err))
		} else {
			err = nc.Publish(m.Reply, data)
		}
		if err != nil {
			log.Debug("an answer to a get was not sent", "error", err)
		}
	}
	req := &rpcv1.GetTaskRequest{}
	if err := req.UnmarshalVT(m.Data); err != nil {
		answer(nil, fault.New(fault.InvalidArgument, "bad request: %v", err))
		return
	}
	o.Get(ctx, req, answer)
}
