package query

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/paging"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// ListKeys tells of the order keys of the domain (keys.list).
func (q *Queries) ListKeys(c call.Call, req *yardv1.ListKeysRequest, answer call.Answer) {
	ask, bad := validate.ListKeys(req, c.Domain)
	q.Run.Ask(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		parts, err := owners.Same(ctx, q.Partitioning.History, q.Tasks.HistoryKeys, ask)
		if err != nil {
			return nil, err
		}
		var pages []paging.Page[*yardv1.OrderKey]
		for _, part := range parts {
			pages = append(pages, paging.Page[*yardv1.OrderKey]{All: part.Keys, More: part.More})
		}
		all, more := paging.Merge(pages, compareKeys, nil)
		page, next := call.Cut(c, all, ask.Limit, more, validate.KeysCursor)
		return &yardv1.ListKeysResponse{Keys: page, NextCursor: next}, nil
	})
}

func compareKeys(a, b *yardv1.OrderKey) int {
	return cmp.Or(cmp.Compare(a.SinceMs, b.SinceMs), strings.Compare(a.OrderKey, b.OrderKey))
}

// GetKey tells of one order key (keys.get).
func (q *Queries) GetKey(c call.Call, req *yardv1.GetKeyRequest, answer call.Answer) {
	q.Run.Ask(c, validate.GetKey(req), answer, func(ctx context.Context) (codec.Message, error) {
		key, err := q.Line(ctx, c.Domain, req.OrderKey)
		return &yardv1.GetKeyResponse{Key: key}, err
	})
}

// Line asks the owner of an order key's partition for its line.
func (q *Queries) Line(ctx context.Context, domain, key string) (*yardv1.OrderKey, error) {
	resp, err := owners.Retry(ctx, time.Time{}, func(ctx context.Context) (*rpcv1.ListKeysResponse, error) {
		return q.Tasks.HistoryKeys(ctx, topology.OrderKeyPartition(domain, key, q.Partitioning), &rpcv1.ListKeysRequest{Domain: domain, OrderKey: key, Limit: 1})
	})
	if err != nil {
		return nil, err
	}
	if len(resp.Keys) == 0 {
		return nil, fault.At(fault.NotFound, "/order_key", "no unfinished task of the order key %q is in memory", key)
	}
	return resp.Keys[0], nil
}
