package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// pageTimeout bounds one page of an answer.
const pageTimeout = 5 * time.Second

// Ask implements shard.History.
func (p *Port) Ask(ctx context.Context, a question.Question) (out question.Answer, err error) {
	switch a.Kind {
	case question.Bookings, question.Running:
		out.Running, out.Superseded, err = p.bookings(ctx, a)
	case question.Undelivered:
		out.Undelivered, err = p.undelivered(ctx, a)
	case question.Holders:
		out.Holders, err = p.holders(ctx, a)
	case question.Retrigger:
		err = p.retrigger(ctx, a)
	default:
		err = fmt.Errorf("there is no question %d", a.Kind)
	}
	return out, err
}

func (p *Port) bookings(ctx context.Context, a question.Question) (all []limit.Running, overtaken bool, err error) {
	req := &rpcv1.BookingsRequest{
		Shard: int32(p.Shard), Domain: a.Domain, Types: a.Types, All: a.Kind == question.Running && len(a.Types) == 0,
		Epoch: p.Epoch,
	}
	err = pages(func(cursor []byte) ([]byte, error) {
		req.Cursor = cursor
		resp, err := page[rpcv1.BookingsResponse](ctx, p, a.Partition, "bookings", req)
		if err != nil {
			return nil, err
		}
		overtaken = overtaken || resp.Overtaken
		for _, g := range resp.Groups {
			if all, err = appendHeld(all, g); err != nil {
				return nil, err
			}
		}
		return resp.Cursor, nil
	})
	return all, overtaken, err
}

// appendHeld takes a group apart. Its path is shared.
func appendHeld(all []limit.Running, g *rpcv1.Bookings) ([]limit.Running, error) {
	if len(g.Bookings)%ids.BookingBytes != 0 {
		return nil, fmt.Errorf("history answered with %d bytes of bookings", len(g.Bookings))
	}
	var path []table.Ref
	if len(g.Limits) > 0 {
		path = as[table.Ref](g.Limits)
	}
	for members := string(g.Bookings); members != ""; members = members[ids.BookingBytes:] {
		all = append(all, limit.Running{
			Domain: g.Domain, Tasklist: g.Tasklist, Type: g.Type, Group: g.Group, Path: path, Member: members[:ids.BookingBytes],
			DeadlineMS: g.DeadlineMs,
		})
	}
	return all, nil
}

func (p *Port) undelivered(ctx context.Context, a question.Question) (all []grab.Undelivered, err error) {
	req := &rpcv1.UndeliveredRequest{Shard: int32(p.Shard), Epoch: p.Epoch}
	err = pages(func(cursor []byte) ([]byte, error) {
		req.Cursor = cursor
		resp, err := page[rpcv1.UndeliveredResponse](ctx, p, a.Partition, "undelivered", req)
		if err != nil {
			return nil, err
		}
		for _, g := range resp.Grants {
			if !p.Replies.Asker(g.Domain, g.ReplyTo) {
				g.ReplyTo = "" // no inbox: it comes back and burns nothing
			}
			id, err := ids.TaskIDFromBytes(g.TaskId)
			if err != nil {
				return nil, err
			}
			all = append(all, grab.Undelivered{
				Domain: g.Domain, ReplyTo: g.ReplyTo, JSON: g.Json, Max: int(g.MaxTasks), Task: g.Task, Nonce: g.Nonce,
				Trigger: ids.Trigger{ID: id, Version: g.Version, Position: ids.Position(g.Position)},
			})
		}
		return resp.Cursor, nil
	})
	return all, err
}

func (p *Port) holders(ctx context.Context, a question.Question) (all []overflow.Holders, err error) {
	req := &rpcv1.BookingsRequest{Shard: int32(p.Shard), Domain: a.Domain, Epoch: p.Epoch}
	for _, q := range a.Holders {
		req.Holders = append(req.Holders, &rpcv1.HoldersQuery{
			Limit: string(q.Ref), Most: int32(q.Most), Types: q.Types, Group: q.Group, ReadyByMs: q.ReadyBy,
		})
	}
	resp, err := page[rpcv1.BookingsResponse](ctx, p, a.Partition, "bookings", req)
	if err != nil {
		return nil, err
	}
	if len(resp.Holders) != len(a.Holders) {
		return nil, fmt.Errorf("history answered about %d limits, not %d", len(resp.Holders), len(a.Holders))
	}
	for _, l := range resp.Holders {
		one := overflow.Holders{Leaving: int(l.Leaving), Waiting: int(l.Waiting)}
		for _, o := range l.Oldest {
			id, err := ids.TaskIDFromBytes(o.TaskId)
			if err != nil {
				return nil, fmt.Errorf("history answered with an attempt of no task: %w", err)
			}
			one.Oldest = append(one.Oldest, overflow.OldHolder{
				Trigger: ids.Trigger{ID: id, Version: o.Version, Position: ids.Position(o.Position)}, StartedAtMS: o.StartedAtMs,
			})
		}
		all = append(all, one)
	}
	return all, nil
}

// retrigger has history send triggers again; the empty domain stands for all.
func (p *Port) retrigger(ctx context.Context, a question.Question) error {
	req := &rpcv1.RetriggerRequest{Domain: a.Domain, Shard: int32(p.Shard)}
	_, err := page[rpcv1.RetriggerResponse](ctx, p, a.Partition, "retrigger", req)
	return err
}

// page makes one call to a history partition.
func page[Resp any, PResp interface {
	*Resp
	natsrpc.Message
}](ctx context.Context, p *Port, partition int, verb string, req natsrpc.Message) (PResp, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	return natsrpc.Call[Resp, PResp](ctx, p.NATS, topology.HistoryCall(partition, verb), req)
}

// pages calls next with the cursor that it returned before, until that is empty.
func pages(next func(cursor []byte) ([]byte, error)) error {
	var cursor []byte
	for {
		after, err := next(cursor)
		switch {
		case err != nil:
			return err
		case len(after) == 0:
			return nil
		case bytes.Equal(after, cursor):
			return errors.New("history answered with the same page again")
		}
		cursor = after
	}
}
