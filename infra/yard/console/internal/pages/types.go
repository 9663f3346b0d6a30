package pages

import (
	"net/url"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

func showTypes(r *Request) (any, error) {
	if name := r.FormValue("name"); name != "" {
		return nil, redirect("/domains/" + r.Domain + "/types/" + url.PathEscape(name))
	}
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	page, err := yard.Call[yardv1.ListTypesResponse](r.Context(), c, "types.list", &yardv1.ListTypesRequest{Limit: listMax, Cursor: r.FormValue("cursor")})
	if err != nil {
		return nil, err
	}
	return listed[*yardv1.TaskType]{page.Types, r.next(page.NextCursor)}, nil
}

type groupsBody struct {
	listed[*yardv1.Group]
	Stopped map[string]*yardv1.StoppedGroup
}

func showGroups(r *Request) (any, error) {
	if name := r.FormValue("name"); name != "" {
		return nil, redirect("/domains/" + r.Domain + "/groups/" + url.PathEscape(name))
	}
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	page, err := yard.Call[yardv1.ListGroupsResponse](r.Context(), c, "groups.list", &yardv1.ListGroupsRequest{Limit: listMax, Cursor: r.FormValue("cursor")})
	if err != nil {
		return nil, err
	}
	body := groupsBody{listed[*yardv1.Group]{page.Groups, r.next(page.NextCursor)}, map[string]*yardv1.StoppedGroup{}}
	for _, one := range page.Stopped {
		body.Stopped[one.Name] = one
	}
	return body, nil
}

func showGroup(r *Request) (any, error) { return getGroup(r) }

// getGroup is the group of the page. One without settings is in use with the defaults.
func getGroup(r *Request) (*yardv1.GetGroupResponse, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	got, err := yard.Call[yardv1.GetGroupResponse](r.Context(), c, "groups.get", &yardv1.GetGroupRequest{Name: r.PathValue("group")})
	if fault.CodeOf(err) == fault.NotFound && fault.From(err).Path == "/name" {
		return &yardv1.GetGroupResponse{Group: &yardv1.Group{Name: r.PathValue("group")}}, nil
	}
	return got, err
}

func showType(r *Request) (any, error) { return getType(r) }

// getType is the type of the page. One without settings is in use with the defaults.
func getType(r *Request) (*yardv1.GetTypeResponse, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	got, err := yard.Call[yardv1.GetTypeResponse](r.Context(), c, "types.get", &yardv1.GetTypeRequest{Name: r.PathValue("type")})
	if fault.CodeOf(err) == fault.NotFound && fault.From(err).Path == "/name" {
		return &yardv1.GetTypeResponse{Type: &yardv1.TaskType{Name: r.PathValue("type")}}, nil
	}
	return got, err
}
