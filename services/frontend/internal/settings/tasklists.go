package settings

import (
	"cmp"
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

// PutTasklist sets or changes the settings of a tasklist (tasklists.put).
func (s *Settings) PutTasklist(c call.Call, req *yardv1.PutTasklistRequest, answer call.Answer) {
	l := req.Tasklist
	s.Run.Ask(c, validate.PutTasklist(req), answer, func(ctx context.Context) (codec.Message, error) {
		if err := s.tasklistRoom(c.Domain, l); err != nil {
			return nil, err
		}
		var err error
		l.Revision, err = putIn(ctx, s, catalog.Tasklists, c.Domain, l, validate.Tasklist, validate.TasklistsMax)
		return &yardv1.PutTasklistResponse{Tasklist: l}, err
	})
}

// tasklistRoom refuses one more tasklist with a cap, or with several partitions, than a domain may have.
func (s *Settings) tasklistRoom(domain string, l *yardv1.Tasklist) error {
	partitions := "/tasklist/partitions"
	if l.PartitionsMax > 0 {
		partitions = "/tasklist/partitions_max"
	}
	for _, kind := range []struct {
		path, what string
		has        func(l *yardv1.Tasklist) bool
		most       int
	}{
		{"/tasklist/max_queued", "one", func(l *yardv1.Tasklist) bool { return l.GetMaxQueued() > 0 }, validate.CappedMax},
		{"/tasklist/max_queued_per_group", "one", func(l *yardv1.Tasklist) bool { return l.GetMaxQueuedPerGroup() > 0 }, validate.CappedMax},
		{partitions, "several, or may have", func(l *yardv1.Tasklist) bool { return l.GetPartitions() > 1 || l.GetPartitionsMax() > 0 }, validate.PartitionedMax},
	} {
		if !kind.has(l) || kind.has(catalog.Tasklists.Of(s.Catalog, domain, l.Name)) {
			continue
		}
		n := 0
		for _, other := range catalog.Tasklists.All(s.Catalog, domain) {
			if kind.has(other) {
				n++
			}
		}
		if n >= kind.most {
			return fault.At(fault.FailedPrecondition, kind.path, "%d tasklists of the domain have %s, and no more are allowed", kind.most, kind.what)
		}
	}
	return nil
}

// GetTasklist tells the settings of a tasklist, and whether it is paused (tasklists.get).
func (s *Settings) GetTasklist(c call.Call, req *yardv1.GetTasklistRequest, answer call.Answer) {
	if s.Run.Rejects(&c, validate.Tasklist.Get(req), answer) {
		return
	}
	l := catalog.Tasklists.Of(s.Catalog, c.Domain, req.Name)
	pause, drain := s.inForce(c, validate.Tasklist, req.Name)
	if l == nil && pause == nil && drain == nil {
		answer(nil, noSettings(req.Name))
		return
	}
	answer(&yardv1.GetTasklistResponse{Tasklist: cmp.Or(l, &yardv1.Tasklist{Name: req.Name}), Pause: pause, Drain: drain, Partitions: s.several(c.Domain, req.Name)}, nil)
}

// ListTasklists tells of the tasklists with settings or unfinished tasks, and of paused and drained ones, page by page
// (tasklists.list).
func (s *Settings) ListTasklists(c call.Call, req *yardv1.ListTasklistsRequest, answer call.Answer) {
	s.Run.Ask(c, validate.Tasklist.List(&req.Limit, req.Cursor), answer, func(ctx context.Context) (codec.Message, error) {
		n := s.Partitioning.History
		parts, err := owners.Every(ctx, 2*n, func(ctx context.Context, i int) ([]*yardv1.ListedTasklist, error) {
			// Each tells of one more than a page takes: those on the page are among the first of everybody who has them, so the merged page is exact.
			if i < n {
				d, err := s.Tasks.HistoryDescribe(ctx, i, &rpcv1.DescribePartitionRequest{Domain: c.Domain, Tasklist: req.Cursor, List: req.Limit + 1})
				return d.GetTasklists(), err
			}
			d, err := s.Tasks.TimerDescribe(ctx, i-n, &rpcv1.DescribeWaitingRequest{Domain: c.Domain, Tasklist: req.Cursor, List: req.Limit + 1})
			return d.GetTasklists(), err
		})
		if err != nil {
			return nil, err
		}
		now := c.ServerNow().UnixMilli()
		paused := catalog.Pauses.Of(s.Catalog, c.Domain, now).Tasklists
		drained := catalog.Drains.Of(s.Catalog, c.Domain, now).Tasklists
		page, next := call.PageOf(c, gather.Tasklists(catalog.Tasklists.All(s.Catalog, c.Domain), paused, drained, parts), req.Cursor, req.Limit)
		return &yardv1.ListTasklistsResponse{Tasklists: page, NextCursor: next}, nil
	})
}

// DeleteTasklist deletes the settings of a tasklist (tasklists.delete).
func (s *Settings) DeleteTasklist(c call.Call, req *yardv1.DeleteTasklistRequest, answer call.Answer) {
	s.Run.Ask(c, validate.Tasklist.Delete(req), answer, func(ctx context.Context) (codec.Message, error) {
		l, err := remove(ctx, s, catalog.Tasklists, c.Domain, req.Name, req.Revision, noSettings(req.Name))
		return &yardv1.DeleteTasklistResponse{Tasklist: l}, err
	})
}

// noSettings refuses what is asked of the settings of a tasklist without any, and says what to do about it.
func noSettings(name string) error {
	return fault.At(fault.NotFound, "/name", "the tasklist %q has no settings, so the defaults hold: set some with tasklists.put, or `yard tasklist put %s`; tasklists.describe tells how it is doing", name, name)
}

// several is over how many partitions a tasklist is spread; 0 = one.
func (s *Settings) several(domain, tasklist string) int32 {
	if n := s.Catalog.Partitions(domain, tasklist); n > 1 {
		return int32(n)
	}
	return 0
}
