package gateway

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/paging"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// The owners of partitions tell of the lines of order keys. An operator's command on a key is an event about its first task: that it is the first is seen
// before, and stays true until it ends (decision 0048).

// ListKeys tells of the order keys of the domain (keys.list).
func (g *Gateway) ListKeys(c Call, req *yardv1.ListKeysRequest, answer Answer) {
	ask, bad := validate.ListKeys(req, c.Domain)
	g.asks(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		parts, err := everyone(ctx, g.Partitioning.History, func(ctx context.Context, p int) (*rpcv1.ListKeysResponse, error) {
			return g.Owners.HistoryKeys(ctx, p, ask)
		})
		if err != nil {
			return nil, err
		}
		var pages []paging.Page[*yardv1.OrderKey]
		for _, part := range parts {
			pages = append(pages, paging.Page[*yardv1.OrderKey]{All: part.Keys, More: part.More})
		}
		all, more := paging.Merge(pages, compareKeys, nil)
		page, next := cut(c, all, ask.Limit, more, validate.KeysCursor)
		return &yardv1.ListKeysResponse{Keys: page, NextCursor: next}, nil
	})
}

func compareKeys(a, b *yardv1.OrderKey) int {
	return cmp.Or(cmp.Compare(a.SinceMs, b.SinceMs), strings.Compare(a.OrderKey, b.OrderKey))
}

// GetKey tells of one order key (keys.get).
func (g *Gateway) GetKey(c Call, req *yardv1.GetKeyRequest, answer Answer) {
	g.asks(c, validate.GetKey(req), answer, func(ctx context.Context) (codec.Message, error) {
		key, err := g.lineOf(ctx, c.Domain, req.OrderKey)
		if err != nil {
			return nil, err
		}
		return &yardv1.GetKeyResponse{Key: key}, nil
	})
}

// lineOf asks the owner of an order key's partition for its line.
func (g *Gateway) lineOf(ctx context.Context, domain, key string) (*yardv1.OrderKey, error) {
	resp, err := retryCall(ctx, time.Time{}, func(ctx context.Context) (*rpcv1.ListKeysResponse, error) {
		return g.Owners.HistoryKeys(ctx, topology.OrderKeyPartition(domain, key, g.Partitioning), &rpcv1.ListKeysRequest{Domain: domain, OrderKey: key, Limit: 1})
	})
	if err != nil {
		return nil, err
	}
	if len(resp.Keys) == 0 {
		return nil, fault.At(fault.NotFound, "/order_key", "no unfinished task of the order key %q is in memory", key)
	}
	return resp.Keys[0], nil
}

// UnblockKey gives the task that blocks an order key another attempt (keys.unblock).
func (g *Gateway) UnblockKey(c Call, req *yardv1.UnblockKeyRequest, answer Answer) {
	k, bad := validate.UnblockKey(req, c.Domain)
	g.commandKey(c, req, k, bad, answer, func(v *yardv1.Verdict) codec.Message {
		return &yardv1.UnblockKeyResponse{TaskId: v.TaskId, Revision: v.Revision}
	})
}

// SkipKey makes the first task of an order key a dead letter (keys.skip).
func (g *Gateway) SkipKey(c Call, req *yardv1.SkipKeyRequest, answer Answer) {
	k, bad := validate.SkipKey(req, c.Domain)
	g.commandKey(c, req, k, bad, answer, func(v *yardv1.Verdict) codec.Message {
		return &yardv1.SkipKeyResponse{TaskId: v.TaskId, CancelRequested: v.CancelRequested}
	})
}

// commandKey asks the log for what is to be done with the first task of an order key.
func (g *Gateway) commandKey(c Call, req request, k *validate.KeyCommand, bad error, answer Answer, done func(*yardv1.Verdict) codec.Message) {
	g.asks(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		if k.Named {
			if err := g.mayCommand(ctx, c, k); err != nil {
				return nil, err
			}
		} else {
			line, err := g.lineOf(ctx, c.Domain, k.OrderKey)
			if err != nil {
				return nil, err
			}
			if k.Head, err = ids.ParseTaskID(line.GetHead().GetTaskId()); err != nil {
				return nil, fault.New(fault.Internal, "the first task of the order key: %v", err)
			}
		}
		entries := []validate.Outcome{k.Outcome()}
		if err := date(c, req, entries); err != nil {
			return nil, err
		}
		verdicts, err := g.decided(c, entries)
		if err != nil {
			return nil, err
		}
		if v := verdicts[0]; v.Code != codeOK {
			refused := fault.New(fault.Code(v.Code), "task %s: %s", v.TaskId, v.Message)
			if v.Final {
				refused.Detail = map[string]string{fault.DetailFinal: "true"}
			}
			return nil, refused
		}
		return done(verdicts[0]), nil
	})
}

// mayCommand refuses what is about a task that waits behind the first one of its order key, or for its time. The first one stays it until it ends, or is put
// off by an update: so this need not be decided in the log. One that has ended is asked for all the same, since a repeat may ask.
func (g *Gateway) mayCommand(ctx context.Context, c Call, k *validate.KeyCommand) error {
	if g.isForeign(k.Head, c.Now) {
		return noTask(k.Head)
	}
	task, err := g.lookUp(ctx, c.Domain, k.Head, time.Time{})
	switch {
	case err != nil:
		return err
	case task == nil:
		return noTask(k.Head)
	case task.OrderKey == k.OrderKey && (task.AwaitsTurn || task.State == yardv1.TaskState_TASK_STATE_WAITING):
		return fault.At(fault.FailedPrecondition, "/task_id", "task %s is not the first one of the order key %q", k.Head, k.OrderKey)
	}
	return nil
}
