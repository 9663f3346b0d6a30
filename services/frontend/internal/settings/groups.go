package settings

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// PutGroup sets the weight of a group, and its number in limits that count per group (groups.put).
func (s *Settings) PutGroup(c call.Call, req *yardv1.PutGroupRequest, answer call.Answer) {
	one := req.Group
	s.Run.Ask(c, validate.PutGroup(req), answer, func(ctx context.Context) (codec.Message, error) {
		var err error
		one.Revision, err = putIn(ctx, s, catalog.Groups, c.Domain, one, validate.Group, validate.GroupsMax)
		return &yardv1.PutGroupResponse{Group: one}, err
	})
}

// GetGroup tells of the settings of a group, and whether it is paused or drained (groups.get).
func (s *Settings) GetGroup(c call.Call, req *yardv1.GetGroupRequest, answer call.Answer) {
	if s.Run.Rejects(&c, validate.Group.Get(req), answer) {
		return
	}
	one := catalog.Groups.Of(s.Catalog, c.Domain, req.Name)
	pause, drain := s.inForce(c, validate.Group, req.Name)
	if one == nil && pause == nil && drain == nil {
		answer(nil, noGroup(req.Name))
		return
	}
	answer(&yardv1.GetGroupResponse{Group: cmp.Or(one, &yardv1.Group{Name: req.Name}), Pause: pause, Drain: drain}, nil)
}

// ListGroups tells of the groups that have settings, are paused or drained, page by page (groups.list).
func (s *Settings) ListGroups(c call.Call, req *yardv1.ListGroupsRequest, answer call.Answer) {
	s.Run.Ask(c, validate.Group.List(&req.Limit, req.Cursor), answer, func(context.Context) (codec.Message, error) {
		now := c.ServerNow().UnixMilli()
		paused, drained := catalog.Pauses.Of(s.Catalog, c.Domain, now).Groups, catalog.Drains.Of(s.Catalog, c.Domain, now).Groups
		page, next := call.PageOf(c, s.listedGroups(c.Domain, paused, drained), req.Cursor, req.Limit)
		resp := &yardv1.ListGroupsResponse{Groups: page, NextCursor: next}
		for _, one := range page {
			if s := (&yardv1.StoppedGroup{Name: one.Name, Pause: paused[one.Name], Drain: drained[one.Name]}); s.Pause != nil || s.Drain != nil {
				resp.Stopped = append(resp.Stopped, s)
			}
		}
		return resp, nil
	})
}

// listedGroups are the groups with settings, and those that are paused or drained, sorted by name.
func (s *Settings) listedGroups(domain string, paused, drained map[string]*yardv1.Pause) []*yardv1.Group {
	all := catalog.Groups.All(s.Catalog, domain)
	if len(paused)+len(drained) == 0 {
		return all
	}
	for _, stopped := range []map[string]*yardv1.Pause{paused, drained} {
		for name := range stopped {
			all = append(all, &yardv1.Group{Name: name})
		}
	}
	byName := func(a, b *yardv1.Group) int { return strings.Compare(a.Name, b.Name) }
	slices.SortStableFunc(all, byName) // those with settings stay in front of those without
	return slices.CompactFunc(all, func(a, b *yardv1.Group) bool { return a.Name == b.Name })
}

// DeleteGroup deletes the settings of a group (groups.delete).
func (s *Settings) DeleteGroup(c call.Call, req *yardv1.DeleteGroupRequest, answer call.Answer) {
	s.Run.Ask(c, validate.Group.Delete(req), answer, func(ctx context.Context) (codec.Message, error) {
		one, err := remove(ctx, s, catalog.Groups, c.Domain, req.Name, req.Revision, noGroup(req.Name))
		return &yardv1.DeleteGroupResponse{Group: one}, err
	})
}

// noGroup refuses what is asked of a group without settings.
func noGroup(name string) error {
	return fault.At(fault.NotFound, "/name", "the group %q has no settings: its weight is 1, and limits count it as any other", name)
}
