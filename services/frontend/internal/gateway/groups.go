package gateway

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// PutGroup sets the weight of a group, and its number in limits that count per group (groups.put). Every process keeps all settings in memory, so a domain has a
// bounded number of them.
func (g *Gateway) PutGroup(c Call, req *yardv1.PutGroupRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.PutGroup(req); err != nil {
		answer(nil, err)
		return
	}
	one := req.Group
	if err := g.groupKnown(one); err != nil {
		answer(nil, err)
		return
	}
	g.query(c.Domain, c.Deadline, answer, func(ctx context.Context) (codec.Message, error) {
		if g.Catalog.Group(c.Domain, one.Name) == nil && g.Catalog.Counts(c.Domain).Groups >= validate.GroupsMax {
			return nil, fault.At(fault.FailedPrecondition, "/group/name", "the domain has %d groups with settings, and no more are allowed: delete some", validate.GroupsMax)
		}
		revision, err := g.Registry.PutGroup(ctx, c.Domain, one)
		if err != nil {
			return nil, notWritten(err)
		}
		one.Revision = revision
		g.awaitCatalog(ctx, func() bool { return g.Catalog.Group(c.Domain, one.Name).GetRevision() >= revision })
		return &yardv1.PutGroupResponse{Group: one}, nil
	})
}

// GetGroup tells of the settings of a group (groups.get).
func (g *Gateway) GetGroup(c Call, req *yardv1.GetGroupRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.GetGroup(req); err != nil {
		answer(nil, err)
		return
	}
	one := g.Catalog.Group(c.Domain, req.Name)
	if one == nil {
		answer(nil, noGroup(req.Name))
		return
	}
	answer(&yardv1.GetGroupResponse{Group: one}, nil)
}

// ListGroups tells of the groups that have settings, page by page (groups.list).
func (g *Gateway) ListGroups(c Call, req *yardv1.ListGroupsRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.ListGroups(req); err != nil {
		answer(nil, err)
		return
	}
	g.query(c.Domain, c.Deadline, answer, func(context.Context) (codec.Message, error) {
		page, next := pageOf(c, g.Catalog.Groups(c.Domain), req.Cursor, req.Limit)
		return &yardv1.ListGroupsResponse{Groups: page, NextCursor: next}, nil
	})
}

// DeleteGroup deletes the settings of a group (groups.delete).
func (g *Gateway) DeleteGroup(c Call, req *yardv1.DeleteGroupRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.DeleteGroup(req); err != nil {
		answer(nil, err)
		return
	}
	g.query(c.Domain, c.Deadline, answer, func(ctx context.Context) (codec.Message, error) {
		one, err := g.Registry.DeleteGroup(ctx, c.Domain, req.Name, req.Revision)
		if fault.CodeOf(err) == fault.NotFound {
			return nil, noGroup(req.Name)
		}
		if err != nil {
			return nil, notWritten(err)
		}
		g.awaitCatalog(ctx, func() bool {
			left := g.Catalog.Group(c.Domain, req.Name)
			return left == nil || left.Revision > one.Revision
		})
		return &yardv1.DeleteGroupResponse{Group: one}, nil
	})
}

// noGroup refuses what is asked of a group without settings.
func noGroup(name string) error {
	return fault.At(fault.NotFound, "/name", "the group %q has no settings: its weight is 1, and limits count it as any other", name)
}
