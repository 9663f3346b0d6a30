package settings

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// PutLimit creates or changes a limit that types share (limits.put). Slots are booked of each that an attempt needs, so a domain may have fewer
// of them than types.
func (s *Settings) PutLimit(c call.Call, req *yardv1.PutLimitRequest, answer call.Answer) {
	l := req.Limit
	s.Run.Ask(c, validate.PutLimit(req), answer, func(ctx context.Context) (codec.Message, error) {
		var err error
		l.Revision, err = putIn(ctx, s, catalog.Limits, c.Domain, l, validate.Limit, validate.LimitsMax)
		return &yardv1.PutLimitResponse{Limit: l}, err
	})
}

// GetLimit tells of a limit and how full it is (limits.get).
func (s *Settings) GetLimit(c call.Call, req *yardv1.GetLimitRequest, answer call.Answer) {
	if s.Run.Rejects(&c, validate.Limit.Get(req), answer) {
		return
	}
	l := catalog.Limits.Of(s.Catalog, c.Domain, req.Name)
	if l == nil {
		answer(nil, noLimit(req.Name))
		return
	}
	s.Run.Query(c.Domain, c.Deadline, answer, func(ctx context.Context) (codec.Message, error) {
		ref := ids.SharedLimit(req.Name)
		shards, err := s.shards(ctx, c.Domain, ref)
		if err != nil {
			return nil, err
		}
		resp := &yardv1.GetLimitResponse{Limit: l}
		for _, s := range shards { // each tells of the whole domain
			resp.SlotsInUse = max(resp.SlotsInUse, s.Limits[ref])
		}
		return resp, nil
	})
}

// shards asks each matching shard for the slots of one limit.
func (s *Settings) shards(ctx context.Context, domain, ref string) ([]*rpcv1.DescribeShardResponse, error) {
	return owners.Same(ctx, s.Partitioning.Matching, s.Tasks.MatchingDescribe, &rpcv1.DescribeShardRequest{Domain: domain, Limits: []string{ref}})
}

// ListLimits tells of the limits that types share, page by page (limits.list).
func (s *Settings) ListLimits(c call.Call, req *yardv1.ListLimitsRequest, answer call.Answer) {
	s.Run.Ask(c, validate.Limit.List(&req.Limit, req.Cursor), answer, func(context.Context) (codec.Message, error) {
		page, next := call.PageOf(c, catalog.Limits.All(s.Catalog, c.Domain), req.Cursor, req.Limit)
		return &yardv1.ListLimitsResponse{Limits: page, NextCursor: next}, nil
	})
}

// DeleteLimit deletes a limit that no type names (limits.delete). A type that is put meanwhile may name it: that limit
// does not hold for it until it is created again.
func (s *Settings) DeleteLimit(c call.Call, req *yardv1.DeleteLimitRequest, answer call.Answer) {
	s.Run.Ask(c, validate.Limit.Delete(req), answer, func(ctx context.Context) (codec.Message, error) {
		if names := s.sharing(c.Domain, req.Name); catalog.Limits.Of(s.Catalog, c.Domain, req.Name) != nil && len(names) > 0 {
			return nil, fault.At(fault.FailedPrecondition, "/name", "the limit %q is shared by %s: take it out of `limits` of these types first", req.Name, someOf(names))
		}
		l, err := remove(ctx, s, catalog.Limits, c.Domain, req.Name, req.Revision, noLimit(req.Name))
		return &yardv1.DeleteLimitResponse{Limit: l}, err
	})
}

// sharing are the types of a domain that name a limit, sorted by name.
func (s *Settings) sharing(domain, limit string) (types []string) {
	for _, t := range catalog.Types.All(s.Catalog, domain) {
		if slices.Contains(t.Limits, limit) {
			types = append(types, t.Name)
		}
	}
	return types
}

// namedMax is how many names a refusal has.
const namedMax = 5

// someOf is the first of names, and how many more there are.
func someOf(names []string) string {
	if more := len(names) - namedMax; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:namedMax], ", "), more)
	}
	return strings.Join(names, ", ")
}

// limitsExist refuses a type that names a limit which does not exist. One that was put at another frontend a moment
// ago is stored, though the catalog may not have it yet.
func (s *Settings) limitsExist(ctx context.Context, domain string, t *yardv1.TaskType) error {
	for i, name := range t.Limits {
		if catalog.Limits.Of(s.Catalog, domain, name) != nil {
			continue
		}
		switch _, err := catalog.Limits.Get(ctx, s.Bucket, domain, name); {
		case fault.CodeOf(err) == fault.NotFound:
			return fault.At(fault.FailedPrecondition, "/type/limits/"+strconv.Itoa(i), "there is no limit %q: create it with limits.put, or `yard limit put %s --max-concurrency N`", name, name)
		case err != nil:
			return NotWritten(err)
		}
	}
	return nil
}

// noLimit refuses what is asked of a limit that does not exist, and says what to do about it.
func noLimit(name string) error {
	return fault.At(fault.NotFound, "/name", "there is no limit %q: create it with limits.put, or `yard limit put %s --max-concurrency N`", name, name)
}
