package settings

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/gather"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// PutDomain creates or changes a domain (admin domains.put).
func (s *Settings) PutDomain(c call.Call, req *yardv1.PutDomainRequest, answer call.Answer) {
	d := req.Domain
	s.Run.Administer(c, validate.PutDomain(req), answer, func(ctx context.Context) (codec.Message, error) {
		var err error
		d.Revision, err = put(ctx, s, catalog.Domains, "", d)
		return &yardv1.PutDomainResponse{Domain: d}, err
	})
}

// GetDomain tells of one domain (admin domains.get).
func (s *Settings) GetDomain(c call.Call, req *yardv1.GetDomainRequest, answer call.Answer) {
	if err := validate.Domain.Get(req); err != nil {
		answer(nil, err)
		return
	}
	d := s.Catalog.Domain(req.Name)
	if d == nil {
		answer(nil, call.NoDomain("/name", req.Name))
		return
	}
	pause, drain := s.inForce(c, validate.Domain, req.Name)
	answer(&yardv1.GetDomainResponse{Domain: d, Pause: pause, Drain: drain, Use: s.Use(d)}, nil)
}

// ListDomains tells of all domains, page by page (admin domains.list).
func (s *Settings) ListDomains(c call.Call, req *yardv1.ListDomainsRequest, answer call.Answer) {
	s.Run.Administer(c, validate.Domain.List(&req.Limit, req.Cursor), answer, func(context.Context) (codec.Message, error) {
		page, next := call.PageOf(c, catalog.Domains.All(s.Catalog, ""), req.Cursor, req.Limit)
		return &yardv1.ListDomainsResponse{Domains: page, NextCursor: next}, nil
	})
}

// DeleteDomain deletes a domain that holds nothing, as far as is known, its types, tasklists and limits
// (admin domains.delete). A submit may come in while it is looked for tasks, and what is on disk only is
// not seen; such tasks are the domain's that is created again under the name.
func (s *Settings) DeleteDomain(c call.Call, req *yardv1.DeleteDomainRequest, answer call.Answer) {
	s.Run.Administer(c, validate.Domain.Delete(req), answer, func(ctx context.Context) (codec.Message, error) {
		if s.Catalog.Domain(req.Name) != nil {
			held, err := s.unfinished(ctx, req.Name)
			if err != nil {
				return nil, err
			}
			if len(held) > 0 {
				return nil, gather.HoldsTasks(req.Name, held)
			}
			switch name, err := s.AnySchedule(ctx, req.Name); {
			case err != nil:
				return nil, err
			case name != "":
				return nil, fault.At(fault.FailedPrecondition, "/name", "the domain %q has schedules, such as %q: delete them first", req.Name, name)
			}
		}
		d, err := catalog.DeleteDomain(ctx, s.Bucket, req.Name, req.Revision)
		if fault.CodeOf(err) == fault.NotFound {
			return nil, call.NoDomain("/name", req.Name)
		}
		if err != nil {
			return nil, NotWritten(err)
		}
		AwaitCatalog(ctx, func() bool { return s.Catalog.Domain(req.Name) == nil })
		return &yardv1.DeleteDomainResponse{Domain: d}, nil
	})
}

// unfinished counts the unfinished tasks of a domain that are known of, by state; of those in
// history as many as fit into one list of each owner. Tasks that timer keeps count as waiting.
func (s *Settings) unfinished(ctx context.Context, domain string) (map[yardv1.TaskState]int64, error) {
	n := s.Partitioning.History
	ask := &rpcv1.ListTasksRequest{Domain: domain, Filter: &yardv1.ListRequest{States: gather.Unfinished, Limit: validate.ListMax}}
	parts, err := owners.Every(ctx, 2*n, func(ctx context.Context, i int) (map[yardv1.TaskState]int64, error) {
		held := map[yardv1.TaskState]int64{}
		if i >= n {
			d, err := s.Tasks.TimerDescribe(ctx, i-n, &rpcv1.DescribeWaitingRequest{Domain: domain})
			held[yardv1.TaskState_TASK_STATE_WAITING] = d.GetWaiting()
			return held, err
		}
		found, err := s.Tasks.HistoryList(ctx, i, ask)
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
