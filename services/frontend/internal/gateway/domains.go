package gateway

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/gather"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// PutDomain creates or changes a domain (admin domains.put).
func (g *Gateway) PutDomain(c Call, req *yardv1.PutDomainRequest, answer Answer) {
	d := req.Domain
	g.administer(c.Deadline, validate.PutDomain(req), answer, func(ctx context.Context) (codec.Message, error) {
		var err error
		d.Revision, err = put(ctx, g, catalog.Domains, "", d)
		return &yardv1.PutDomainResponse{Domain: d}, err
	})
}

// GetDomain tells of one domain (admin domains.get).
func (g *Gateway) GetDomain(c Call, req *yardv1.GetDomainRequest, answer Answer) {
	if err := validate.Domain.Get(req); err != nil {
		answer(nil, err)
		return
	}
	d := g.Catalog.Domain(req.Name)
	if d == nil {
		answer(nil, noDomain("/name", req.Name))
		return
	}
	pause, drain := g.inForce(c, validate.Domain, req.Name)
	answer(&yardv1.GetDomainResponse{Domain: d, Pause: pause, Drain: drain, Use: g.Quotas.Use(d)}, nil)
}

// ListDomains tells of all domains, page by page (admin domains.list).
func (g *Gateway) ListDomains(c Call, req *yardv1.ListDomainsRequest, answer Answer) {
	g.administer(c.Deadline, validate.Domain.List(&req.Limit, req.Cursor), answer, func(context.Context) (codec.Message, error) {
		page, next := pageOf(c, catalog.Domains.All(g.Catalog, ""), req.Cursor, req.Limit)
		return &yardv1.ListDomainsResponse{Domains: page, NextCursor: next}, nil
	})
}

// DeleteDomain deletes a domain that holds nothing, as far as is known, its types, tasklists and limits
// (admin domains.delete). A submit may come in while it is looked for tasks, and what is on disk only is
// not seen; such tasks are the domain's that is created again under the name.
func (g *Gateway) DeleteDomain(c Call, req *yardv1.DeleteDomainRequest, answer Answer) {
	g.administer(c.Deadline, validate.Domain.Delete(req), answer, func(ctx context.Context) (codec.Message, error) {
		if g.Catalog.Domain(req.Name) != nil {
			held, err := g.unfinished(ctx, req.Name)
			if err != nil {
				return nil, err
			}
			if len(held) > 0 {
				return nil, gather.HoldsTasks(req.Name, held)
			}
		}
		d, err := catalog.DeleteDomain(ctx, g.Settings, req.Name, req.Revision)
		if fault.CodeOf(err) == fault.NotFound {
			return nil, noDomain("/name", req.Name)
		}
		if err != nil {
			return nil, notWritten(err)
		}
		g.awaitCatalog(ctx, func() bool { return g.Catalog.Domain(req.Name) == nil })
		return &yardv1.DeleteDomainResponse{Domain: d}, nil
	})
}

// unfinished counts the unfinished tasks of a domain that are known of, by state; of those in
// history as many as fit into one list of each owner. Tasks that timer keeps count as waiting.
func (g *Gateway) unfinished(ctx context.Context, domain string) (map[yardv1.TaskState]int64, error) {
	n := g.Partitioning.History
	ask := &rpcv1.ListTasksRequest{Domain: domain, Filter: &yardv1.ListRequest{States: gather.Unfinished, Limit: validate.ListMax}}
	parts, err := everyone(ctx, 2*n, func(ctx context.Context, i int) (map[yardv1.TaskState]int64, error) {
		held := map[yardv1.TaskState]int64{}
		if i >= n {
			d, err := g.Owners.TimerDescribe(ctx, i-n, &rpcv1.DescribeWaitingRequest{Domain: domain})
			held[yardv1.TaskState_TASK_STATE_WAITING] = d.GetWaiting()
			return held, err
		}
		found, err := g.Owners.HistoryList(ctx, i, ask)
		for _, task := range found.GetTasks() {
			held[task.State]++
		}
		return held, err
	})
	if err != nil {
		return nil, err
	}
	sum := map[yardv1.TaskState]int64{}
	for _, part := range parts {
		for state, n := range part {
			if n > 0 {
				sum[state] += n
			}
		}
	}
	return sum, nil
}
