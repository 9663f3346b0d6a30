// Package api serves the calls to the owner of a timer partition, over core NATS.
//
// Owns: subjects and wire forms. Never does: answer for a partition that is not
// owned; no subscriber is how a caller learns to try again.
// On failure: errors travel as fault.Error; Unavailable may be repeated as it is.
package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/busiest"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/paging"
	"github.com/yardmaster-io/yardmaster/shared/turns"
)

const (
	// Limits of a list.
	listLimitDefault = 100
	listLimitMax     = 1000
	// fireTasksMax is how many tasks one call fires early: their ids fit into a message, and so does the answer.
	fireTasksMax = 10_000
)

// busyRetryAfter is when to ask again if too many of the domain wait for their turn.
const busyRetryAfter = time.Second

// Serve subscribes to the calls of partition p until ctx ends. It does so when the owner has loaded all: until then callers try again.
func Serve(ctx context.Context, nc *nats.Conn, p int, o *firing.Owner, replies *natsrpc.Replies, log *slog.Logger) error {
	if _, err := o.Waiting(ctx, "", ""); err != nil { // it waits until all is loaded
		return nil // ctx has ended, or the owner, which says why
	}
	var subs []*nats.Subscription
	defer func() {
		for _, s := range subs {
			_ = s.Unsubscribe() // fails where the connection is closed, which has ended it too
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
	c := calls{o}
	add(natsrpc.Serve(nc, topology.TimerCall(p, "fire"), replies, log, c.fire))
	add(natsrpc.Serve(nc, topology.TimerCall(p, "get"), replies, log, c.get))
	add(natsrpc.Serve(nc, topology.TimerCall(p, "locate"), replies, log, c.locate))
	add(natsrpc.Serve(nc, topology.TimerCall(p, "list"), replies, log, c.list))
	add(natsrpc.Serve(nc, topology.TimerCall(p, "describe"), replies, log, c.describe))
	add(natsrpc.Serve(nc, topology.TimerCall(p, "ahead"), replies, log, c.ahead))
	if failed != nil {
		return fmt.Errorf("subscribe to the calls of timer partition %d: %w", p, failed)
	}
	<-ctx.Done()
	return nil
}

type calls struct{ owner *firing.Owner }

func (c calls) fire(ctx context.Context, req *rpcv1.FireEarlyRequest) (natsrpc.Message, error) {
	if len(req.TaskIds) > fireTasksMax {
		return nil, fault.At(fault.InvalidArgument, "/task_ids", "%d tasks, want at most %d", len(req.TaskIds), fireTasksMax)
	}
	if len(req.Domains) > 0 && len(req.Domains) != len(req.TaskIds) {
		return nil, fault.At(fault.InvalidArgument, "/domains", "%d domains of %d tasks", len(req.Domains), len(req.TaskIds))
	}
	all := make([]due.Wanted, len(req.TaskIds))
	for i, b := range req.TaskIds {
		id, err := ids.TaskIDFromBytes(b)
		if err != nil {
			return nil, fault.At(fault.InvalidArgument, fmt.Sprintf("/task_ids/%d", i), "%v", err)
		}
		all[i].ID = id
		if len(req.Domains) > 0 {
			all[i].Domain = req.Domains[i]
		}
	}
	answer, err := c.owner.FireEarly(ctx, all)
	if err != nil {
		return nil, refusal(err)
	}
	resp := &rpcv1.FireEarlyResponse{}
	for _, id := range answer.Coming {
		resp.Coming = append(resp.Coming, id[:])
	}
	for _, f := range answer.Fired {
		resp.Fired = append(resp.Fired, f.ID[:])
		resp.FiredSeqs = append(resp.FiredSeqs, f.LogSeq)
	}
	return resp, nil
}

func (c calls) get(ctx context.Context, req *rpcv1.GetTaskRequest) (natsrpc.Message, error) {
	at, err := c.find(ctx, req.TaskId, req.Domain)
	if err != nil || at.Waiting == nil {
		return &rpcv1.GetTaskResponse{}, err
	}
	return &rpcv1.GetTaskResponse{Task: public(at.Waiting, false)}, nil
}

func (c calls) locate(ctx context.Context, req *rpcv1.LocateTaskRequest) (natsrpc.Message, error) {
	return c.find(ctx, req.TaskId, req.Domain)
}

func (c calls) find(ctx context.Context, taskID []byte, domain string) (resp *rpcv1.LocateTaskResponse, err error) {
	resp = &rpcv1.LocateTaskResponse{}
	id, err := ids.TaskIDFromBytes(taskID)
	if err != nil {
		return resp, fault.At(fault.InvalidArgument, "/task_id", "%v", err)
	}
	at, err := c.owner.Locate(ctx, id, domain)
	if err != nil {
		return resp, refusal(err)
	}
	resp.FiredSeq = at.LogSeq
	if at.Record != nil {
		resp.Waiting, err = decode(at.Record)
	}
	return resp, err
}

func (c calls) list(ctx context.Context, req *rpcv1.ListTasksRequest) (natsrpc.Message, error) {
	want := req.Filter
	if want == nil {
		want = &yardv1.ListRequest{}
	}
	all := len(want.States) == 0
	f := firing.Filter{
		Domain: req.Domain, Tasklist: want.Tasklist, Type: want.Type,
		First: all || slices.Contains(want.States, yardv1.TaskState_TASK_STATE_WAITING),
		Retry: all || slices.Contains(want.States, yardv1.TaskState_TASK_STATE_BACKOFF),
		Limit: min(cmp.Or(max(int(want.Limit), 0), listLimitDefault), listLimitMax),
	}
	if !f.First && !f.Retry {
		return &rpcv1.ListTasksResponse{}, nil
	}
	if req.DueUntilMinute > 0 {
		return listDue(ctx, c.owner, f, req)
	}
	if at, isFar := strings.CutPrefix(want.Cursor, paging.Far); isFar {
		return listFar(ctx, c.owner, f, want, at)
	}
	if want.Cursor != "" {
		var err error
		if f.Before, err = ids.ParseTaskID(want.Cursor); err != nil {
			return nil, fault.At(fault.InvalidArgument, "/cursor", "%v", err)
		}
	}
	tasks, end, more, err := search(ctx, c.owner, f, want)
	if err != nil {
		return nil, err
	}
	page, cut := paging.Cut(tasks, f.Limit, paging.BytesMax, (*yardv1.Task).SizeVT)
	resp := &rpcv1.ListTasksResponse{Tasks: page, More: more || cut}
	if more && !cut {
		resp.End = end
	}
	return resp, nil
}

func (c calls) describe(ctx context.Context, req *rpcv1.DescribeWaitingRequest) (natsrpc.Message, error) {
	if req.List > 0 {
		found, err := c.owner.Tasklists(ctx, req.Domain, req.Tasklist, int(req.List))
		if err != nil {
			return nil, refusal(err)
		}
		resp := &rpcv1.DescribeWaitingResponse{}
		for _, t := range found {
			resp.Tasklists = append(resp.Tasklists, &yardv1.ListedTasklist{Name: t.Tasklist, Waiting: int64(t.Waiting)})
		}
		return resp, nil
	}
	if req.Top != nil {
		return c.top(ctx, req.Top)
	}
	n, err := c.owner.Waiting(ctx, req.Domain, req.Tasklist)
	if err != nil {
		return nil, refusal(err)
	}
	return &rpcv1.DescribeWaitingResponse{Waiting: int64(n)}, nil
}

// top is what the busiest domains have waiting, and how late they are.
func (c calls) top(ctx context.Context, req *yardv1.TopDomainsRequest) (natsrpc.Message, error) {
	all, err := firing.OfDomains(ctx, c.owner)
	if err != nil {
		return nil, refusal(err)
	}
	now := c.owner.Now().UnixMilli()
	top := make([]*yardv1.TopDomain, len(all))
	for i, d := range all {
		top[i] = &yardv1.TopDomain{Domain: d.Domain, Waiting: d.Waiting}
		if d.NextMS > 0 {
			top[i].LateMs = max(0, now-d.NextMS)
		}
	}
	return &rpcv1.DescribeWaitingResponse{Top: &yardv1.TopDomainsResponse{Domains: busiest.OfPartition(top, req)}}, nil
}

func decode(data []byte) (*logv1.Record, error) {
	r := &logv1.Record{}
	if err := r.UnmarshalVTUnsafe(data); err != nil {
		return nil, fault.New(fault.Internal, "a waiting record is malformed: %v", err)
	}
	return r, nil
}

// refusal tells what a caller may do: whatever failed inside, repeating is safe.
func refusal(err error) error {
	var e *fault.Error
	switch {
	case errors.As(err, &e):
		return err
	case errors.Is(err, turns.ErrBusy):
		return fault.New(fault.ResourceExhausted, "too many searches of the domain wait for the timer partition").After(busyRetryAfter)
	}
	return fault.New(fault.Unavailable, "%v", err)
}
