package yard_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// Purges, peeks and lists name the group that they are of.
func TestTheGroupOfAPurgeAPeekAndAList(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
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
