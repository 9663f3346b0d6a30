package gateway

import (
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// putGroup sets a group of the rig's domain.
func (r *rig) putGroup(g *yardv1.Group) (*yardv1.Group, error) {
	got, err := asked(r, "shop", true, r.PutGroup, &yardv1.PutGroupRequest{Group: g})
	if err != nil {
		return nil, err
	}
	return got.(*yardv1.PutGroupResponse).Group, nil
}

// Settings of groups are put, changed by revision, listed page by page and deleted.
func TestGroupsHaveSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, name := range []string{"b", "a.b", "c"} {
			testkit.NoError(t, testkit.Err(r.putGroup(&yardv1.Group{Name: name, Weight: new(2.0)})))
		}
		got, err := asked(r, "shop", true, r.GetGroup, &yardv1.GetGroupRequest{Name: "a.b"})
		testkit.NoError(t, err)
		group := got.(*yardv1.GetGroupResponse).Group
		if group.GetWeight() != 2 || group.Revision == 0 {
			t.Errorf("%v", group)
		}
		_, err = r.putGroup(&yardv1.Group{Name: "a.b", Revision: group.Revision + 9})
		wantCode(t, err, fault.Stale)
		list := func(cursor string) *yardv1.ListGroupsResponse {
			t.Helper()
			got, err := asked(r, "shop", true, r.ListGroups, &yardv1.ListGroupsRequest{Limit: 2, Cursor: cursor})
			testkit.NoError(t, err)
			return got.(*yardv1.ListGroupsResponse)
		}
		first := list("")
		rest := list(first.NextCursor)
		if len(first.Groups) != 2 || first.Groups[0].Name != "a.b" || len(rest.Groups) != 1 || rest.NextCursor != "" {
			t.Errorf("%v, then %v", first, rest)
		}
		_, err = asked(r, "shop", true, r.DeleteGroup, &yardv1.DeleteGroupRequest{Name: "a.b", Revision: group.Revision + 9})
		wantCode(t, err, fault.Stale)
		got, err = asked(r, "shop", true, r.DeleteGroup, &yardv1.DeleteGroupRequest{Name: "a.b", Revision: group.Revision})
		if err != nil || got.(*yardv1.DeleteGroupResponse).Group.GetWeight() != 2 {
			t.Errorf("%v %v", got, err)
		}
		_, err = asked(r, "shop", true, r.GetGroup, &yardv1.GetGroupRequest{Name: "a.b"})
		if e := wantCode(t, err, fault.NotFound); e.Path != "/name" {
			t.Error(e)
		}
		_, err = asked(r, "shop", true, r.DeleteGroup, &yardv1.DeleteGroupRequest{Name: "a.b"})
		if e := wantCode(t, err, fault.NotFound); e.Path != "/name" {
			t.Error(e)
		}
	})
}

// I7: a domain has so many groups with settings, and may still change those.
func TestI7_GroupsWithSettingsAreBounded(t *testing.T) {
	testkit.Slow(t, "fills a domain to its bound")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range validate.GroupsMax {
			name := strconv.Itoa(i)
			add(t, r.catalog, catalog.Groups, "shop", &yardv1.Group{Name: name})
		}
		_, err := r.putGroup(&yardv1.Group{Name: "more"})
		if e := wantCode(t, err, fault.FailedPrecondition); e.Path != "/group/name" {
			t.Error(e)
		}
		if _, err := r.putGroup(&yardv1.Group{Name: "7", Weight: new(0.0)}); err != nil {
			t.Error(err)
		}
	})
}
