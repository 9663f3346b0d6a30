package gateway

import (
	"cmp"
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// PutType creates or changes a task type (types.put).
func (g *Gateway) PutType(c Call, req *yardv1.PutTypeRequest, answer Answer) {
	t := req.Type
	g.asks(c, validate.PutType(req), answer, func(ctx context.Context) (codec.Message, error) {
		if err := g.limitsExist(ctx, c.Domain, t); err != nil {
			return nil, err
		}
		var err error
		t.Revision, err = putIn(ctx, g, catalog.Types, c.Domain, t, validate.Type, validate.TypesMax)
		return &yardv1.PutTypeResponse{Type: t}, err
	})
}

// GetType tells of a task type, how full its limit is, and whether it is paused or drained (types.get).
func (g *Gateway) GetType(c Call, req *yardv1.GetTypeRequest, answer Answer) {
	if g.rejects(&c, validate.Type.Get(req), answer) {
		return
	}
	t := catalog.Types.Of(g.Catalog, c.Domain, req.Name)
	pause, drain := g.inForce(c, validate.Type, req.Name)
	if t == nil && pause == nil && drain == nil {
		answer(nil, noType(req.Name))
		return
	}
	resp := &yardv1.GetTypeResponse{Type: cmp.Or(t, &yardv1.TaskType{Name: req.Name}), Pause: pause, Drain: drain}
	if t.GetMaxConcurrency() == 0 {
		answer(resp, nil)
		return
	}
	g.query(c.Domain, c.Deadline, answer, func(ctx context.Context) (codec.Message, error) {
		shards, err := g.shards(ctx, c.Domain, ids.TypeLimit(req.Name))
		if err != nil {
			return nil, err
		}
		for _, s := range shards { // each tells of the whole domain
			resp.SlotsInUse = max(resp.SlotsInUse, s.Slots[req.Name])
		}
		return resp, nil
	})
}

// ListTypes tells of the types with settings, page by page (types.list).
func (g *Gateway) ListTypes(c Call, req *yardv1.ListTypesRequest, answer Answer) {
	g.asks(c, validate.Type.List(&req.Limit, req.Cursor), answer, func(context.Context) (codec.Message, error) {
		page, next := pageOf(c, catalog.Types.All(g.Catalog, c.Domain), req.Cursor, req.Limit)
		return &yardv1.ListTypesResponse{Types: page, NextCursor: next}, nil
	})
}

// DeleteType deletes the settings of a type (types.delete).
func (g *Gateway) DeleteType(c Call, req *yardv1.DeleteTypeRequest, answer Answer) {
	g.asks(c, validate.Type.Delete(req), answer, func(ctx context.Context) (codec.Message, error) {
		t, err := remove(ctx, g, catalog.Types, c.Domain, req.Name, req.Revision, noType(req.Name))
		return &yardv1.DeleteTypeResponse{Type: t}, err
	})
}

// noType refuses what is asked of a type without settings, and says what to do about it.
func noType(name string) error {
	return fault.At(fault.NotFound, "/name", "the type %q has no settings, so the defaults hold: set some with types.put, or `yard type put %s`", name, name)
}
