package gateway

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// ownWritesWithin is how long a change waits until this frontend itself goes by
// it, so that who made it sees it. Others follow as soon.
const ownWritesWithin = time.Second

// PutDomain creates or changes a domain (admin domains.put).
func (g *Gateway) PutDomain(c Call, req *yardv1.PutDomainRequest, answer Answer) {
	if err := validate.PutDomain(req); err != nil {
		answer(nil, err)
		return
	}
	g.query(c.Domain, c.Deadline, answer, func(ctx context.Context) (codec.Message, error) {
		if err := g.Registry.PutDomain(ctx, req.Domain); err != nil {
			return nil, notWritten(err)
		}
		g.awaitCatalog(ctx, func() bool { return same(g.Catalog.Domain(req.Domain.Name), req.Domain) })
		return &yardv1.PutDomainResponse{Domain: req.Domain}, nil
	})
}

// GetDomain tells of one domain (admin domains.get).
func (g *Gateway) GetDomain(_ Call, req *yardv1.GetDomainRequest, answer Answer) {
	if err := validate.DomainName("/name", req.Name); err != nil {
		answer(nil, err)
		return
	}
	d := g.Catalog.Domain(req.Name)
	if d == nil {
		answer(nil, fault.At(fault.NotFound, "/name", "there is no domain %q", req.Name))
		return
	}
	answer(&yardv1.GetDomainResponse{Domain: d}, nil)
}

// ListDomains tells of all domains (admin domains.list).
func (g *Gateway) ListDomains(_ Call, _ *yardv1.ListDomainsRequest, answer Answer) {
	answer(&yardv1.ListDomainsResponse{Domains: g.Catalog.Domains()}, nil)
}

// SetType creates or changes a task type (types.set).
func (g *Gateway) SetType(c Call, req *yardv1.SetTypeRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.SetType(req); err != nil {
		answer(nil, err)
		return
	}
	g.query(c.Domain, c.Deadline, answer, func(ctx context.Context) (codec.Message, error) {
		if err := g.Registry.PutType(ctx, c.Domain, req.Type); err != nil {
			return nil, notWritten(err)
		}
		g.awaitCatalog(ctx, func() bool { return same(g.Catalog.Type(c.Domain, req.Type.Name), req.Type) })
		return &yardv1.SetTypeResponse{Type: req.Type}, nil
	})
}

// GetType tells of a task type and how full its limit is (types.get).
func (g *Gateway) GetType(c Call, req *yardv1.GetTypeRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.GetType(req); err != nil {
		answer(nil, err)
		return
	}
	t := g.Catalog.Type(c.Domain, req.Name)
	if t == nil {
		answer(nil, fault.At(fault.NotFound, "/name", "the type %q has no settings", req.Name))
		return
	}
	if t.MaxConcurrency == 0 {
		answer(&yardv1.GetTypeResponse{Type: t}, nil)
		return
	}
	g.query(c.Domain, c.Deadline, answer, func(ctx context.Context) (codec.Message, error) {
		shards, err := everyone(ctx, g.Partitioning.Matching, func(ctx context.Context, m int) (*rpcv1.DescribeShardResponse, error) {
			return g.Owners.MatchingDescribe(ctx, m, &rpcv1.DescribeShardRequest{Domain: c.Domain})
		})
		if err != nil {
			return nil, err
		}
		resp := &yardv1.GetTypeResponse{Type: t}
		for _, s := range shards { // each tells of the whole domain
			resp.SlotsInUse = max(resp.SlotsInUse, s.Slots[req.Name])
		}
		return resp, nil
	})
}

func notWritten(err error) error {
	if fault.CodeOf(err) == fault.InvalidArgument { // a name that is no key
		return err
	}
	return fault.New(fault.Unavailable, "the change may not have been stored, repeat it: %v", err).After(awayRetryAfter)
}

// awaitCatalog waits for a change to come by. It has been stored by then, so that
// running out of time is no failure.
func (g *Gateway) awaitCatalog(ctx context.Context, arrived func() bool) {
	ctx, cancel := context.WithTimeout(ctx, ownWritesWithin)
	defer cancel()
	for delay := time.Millisecond; !arrived() && ctx.Err() == nil; delay = min(2*delay, 20*time.Millisecond) {
		pause(ctx, delay)
	}
}

// same compares two messages by their encoding.
func same[M interface {
	comparable
	codec.Message
}](a, b M) bool {
	var none M
	if a == none || b == none {
		return a == b
	}
	x, errX := a.MarshalVT()
	y, errY := b.MarshalVT()
	return errX == nil && errY == nil && string(x) == string(y)
}
