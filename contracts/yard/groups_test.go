package yard_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// What is set of a group goes both ways whole; one that says nothing of its weight has 1.
func TestGroupsGoBothWaysWhole(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		stored := &yardv1.Group{Name: "acme", Description: "large", Weight: new(0.5), Revision: 8}
		want := yard.Group{Name: "acme", Description: "large", Weight: 0.5, Revision: 8}
		put := answering[yardv1.PutGroupRequest](t, s, topology.API("shop", "groups.put"), &yardv1.PutGroupResponse{Group: stored})
		if got, err := s.client.PutGroup(soon(t), want); err != nil || got != want || !proto.Equal(put.requests()[0].Group, stored) {
			t.Errorf("%+v %v, asked %v", got, err, put.requests())
		}
		get := answering[yardv1.GetGroupRequest](t, s, topology.API("shop", "groups.get"), &yardv1.GetGroupResponse{Group: stored},
			&yardv1.GetGroupResponse{Group: &yardv1.Group{Name: "b"}, Pause: &yardv1.Pause{By: "ann"}})
		if got, err := s.client.GetGroup(soon(t), "acme"); err != nil || got != want || get.requests()[0].Name != "acme" {
			t.Errorf("%+v %v", got, err)
		}
		if got, err := s.client.GetGroup(soon(t), "b"); err != nil || got.Name != "b" || got.Pause == nil || got.Pause.By != "ann" || got.Drain != nil {
			t.Errorf("%+v %v", got, err)
		}
		gone := answering[yardv1.DeleteGroupRequest](t, s, topology.API("shop", "groups.delete"), &yardv1.DeleteGroupResponse{Group: stored})
		if got, err := s.client.DeleteGroup(soon(t), "acme", 8); err != nil || got != want || gone.requests()[0].Name != "acme" || gone.requests()[0].Revision != 8 {
			t.Errorf("%+v %v", got, err)
		}
		list := answering[yardv1.ListGroupsRequest](t, s, topology.API("shop", "groups.list"),
			&yardv1.ListGroupsResponse{Groups: []*yardv1.Group{stored}, NextCursor: "acme"}, &yardv1.ListGroupsResponse{
				Groups: []*yardv1.Group{{Name: "b"}, {Name: "c"}}, Stopped: []*yardv1.StoppedGroup{{Name: "c", Drain: &yardv1.Pause{By: "bob"}}},
			})
		var all []yard.Group
		for g, err := range s.client.Groups(soon(t)) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, g)
		}
		if len(all) != 3 || all[0] != want || all[1] != (yard.Group{Name: "b", Weight: 1}) || all[2].Pause != nil || all[2].Drain == nil || all[2].Drain.By != "bob" || list.requests()[1].Cursor != "acme" {
			t.Errorf("%+v, asked %v", all, list.requests())
		}
	})
}

// Who sets something else of a group leaves its weight at 1; one of weight 0 is idle.
func TestAGroupWithoutAWeight(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		put := answering[yardv1.PutGroupRequest](t, s, topology.API("shop", "groups.put"),
			&yardv1.PutGroupResponse{Group: &yardv1.Group{Name: "a", MaxConcurrency: 3}}, &yardv1.PutGroupResponse{Group: &yardv1.Group{Name: "b", Weight: new(0.0)}})
		if got, err := s.client.PutGroup(soon(t), yard.Group{Name: "a", MaxConcurrency: 3}); err != nil || got.Weight != 1 || got.Idle || put.requests()[0].Group.Weight != nil {
			t.Errorf("%+v %v, asked %v", got, err, put.requests())
		}
		if got, err := s.client.PutGroup(soon(t), yard.Group{Name: "b", Idle: true}); err != nil || !got.Idle || got.Weight != 0 || put.requests()[1].Group.GetWeight() != 0 || put.requests()[1].Group.Weight == nil {
			t.Errorf("%+v %v, asked %v", got, err, put.requests())
		}
	})
}

// Purges, peeks and lists name the group that they are of.
func TestTheGroupOfAPurgeAPeekAndAList(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		over := &yardv1.Purged{Found: 1}
		group := answering[yardv1.PurgeRequest](t, s, topology.API("shop", "groups.purge"), &yardv1.PurgeResponse{Purged: over})
		if got, err := s.client.Purge(soon(t), yard.OfGroup("acme"), yard.PurgeOptions{Tasklist: "mail", Type: "x", Rate: 8, Running: true}); err != nil || got.Found != 1 ||
			!proto.Equal(group.requests()[0], &yardv1.PurgeRequest{Name: "acme", Tasklist: "mail", Type: "x", Limit: 2, Running: true}) {
			t.Errorf("%+v %v of %v", got, err, group.requests())
		}
		list := answering[yardv1.PurgeRequest](t, s, topology.API("shop", "tasklists.purge"), &yardv1.PurgeResponse{Purged: over})
		if _, err := s.client.Purge(soon(t), yard.OfTasklist("mail"), yard.PurgeOptions{Group: "acme"}); err != nil || list.requests()[0].Group != "acme" {
			t.Errorf("%v of %v", err, list.requests())
		}
		typ := answering[yardv1.PurgeRequest](t, s, topology.API("shop", "types.purge"), &yardv1.PurgeResponse{Purged: over})
		if _, err := s.client.Purge(soon(t), yard.OfType("x"), yard.PurgeOptions{Group: "acme"}); err != nil || typ.requests()[0].Group != "acme" {
			t.Errorf("%v of %v", err, typ.requests())
		}
		peek := answering[yardv1.PeekTasklistRequest](t, s, topology.API("shop", "tasklists.peek"), &yardv1.PeekTasklistResponse{})
		if _, err := s.client.PeekTasklist(soon(t), "mail", yard.PeekOptions{Group: "acme"}); err != nil || peek.requests()[0].Group != "acme" {
			t.Errorf("%v of %v", err, peek.requests())
		}
		all := answering[yardv1.ListRequest](t, s, topology.API("shop", "tasks.list"), &yardv1.ListResponse{})
		if _, err := s.client.List(soon(t), yard.Filter{Group: "acme"}); err != nil || all.requests()[0].Group != "acme" {
			t.Errorf("%v of %v", err, all.requests())
		}
	})
}
