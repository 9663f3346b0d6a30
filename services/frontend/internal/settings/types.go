package settings

import (
	"cmp"
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// PutType creates or changes a task type (types.put).
func (s *Settings) PutType(c call.Call, req *yardv1.PutTypeRequest, answer call.Answer) {
	t := req.Type
	s.Run.Ask(c, validate.PutType(req), answer, func(ctx context.Context) (codec.Message, error) {
		if err := s.limitsExist(ctx, c.Domain, t); err != nil {
			return nil, err
		}
		var err error
		t.Revision, err = putIn(ctx, s, catalog.Types, c.Domain, t, validate.Type, validate.TypesMax)
		return &yardv1.PutTypeResponse{Type: t}, err
	})
}

// GetType tells of a task type, how full its limit is, and whether it is paused or drained (types.get).
func (s *Settings) GetType(c call.Call, req *yardv1.GetTypeRequest, answer call.Answer) {
	if s.Run.Rejects(&c, validate.Type.Get(req), answer) {
		return
	}
	t := catalog.Types.Of(s.Catalog, c.Domain, req.Name)
	pause, drain := s.inForce(c, validate.Type, req.Name)
	if t == nil && pause == nil && drain == nil {
		answer(nil, noType(req.Name))
		return
	}
	resp := &yardv1.GetTypeResponse{Type: cmp.Or(t, &yardv1.TaskType{Name: req.Name}), Pause: pause, Drain: drain}
	if t.GetMaxConcurrency() == 0 {
		answer(resp, nil)
		return
	}
	s.Run.Query(c.Domain, c.Deadline, answer, func(ctx context.Context) (codec.Message, error) {
		shards, err := s.shards(ctx, c.Domain, ids.TypeLimit(req.Name))
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
func (s *Settings) ListTypes(c call.Call, req *yardv1.ListTypesRequest, answer call.Answer) {
	s.Run.Ask(c, validate.Type.List(&req.Limit, req.Cursor), answer, func(context.Context) (codec.Message, error) {
		page, next := call.PageOf(c, catalog.Types.All(s.Catalog, c.Domain), req.Cursor, req.Limit)
		return &yardv1.ListTypesResponse{Types: page, NextCursor: next}, nil
	})
}

// DeleteType deletes the settings of a type (types.delete).
func (s *Settings) DeleteType(c call.Call, req *yardv1.DeleteTypeRequest, answer call.Answer) {
	s.Run.Ask(c, validate.Type.Delete(req), answer, func(ctx context.Context) (codec.Message, error) {
		t, err := remove(ctx, s, catalog.Types, c.Domain, req.Name, req.Revision, noType(req.Name))
		return &yardv1.DeleteTypeResponse{Type: t}, err
	})
}

// noType refuses what is asked of a type without settings, and says what to do about it.
func noType(name string) error {
	return fault.At(fault.NotFound, "/name", "the type %q has no settings, so the defaults hold: set some with types.put, or `yard type put %s`", name, name)
}
