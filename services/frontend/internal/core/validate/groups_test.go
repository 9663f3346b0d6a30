package validate

import (
	"math"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestPutGroupRefuses(t *testing.T) {
	refusals(t, func() *yardv1.PutGroupRequest {
		return &yardv1.PutGroupRequest{Group: &yardv1.Group{Name: "acme.de", Weight: new(100.0)}}
	}, PutGroup, map[string]row[*yardv1.PutGroupRequest]{
		"none":             {func(r *yardv1.PutGroupRequest) { r.Group = nil }, "/group"},
		"no name":          {func(r *yardv1.PutGroupRequest) { r.Group.Name = "" }, "/group/name"},
		"long name":        {func(r *yardv1.PutGroupRequest) { r.Group.Name = strings.Repeat("g", 65) }, "/group/name"},
		"long description": {func(r *yardv1.PutGroupRequest) { r.Group.Description = strings.Repeat("d", 1025) }, "/group/description"},
		"small":            {func(r *yardv1.PutGroupRequest) { r.Group.Weight = new(0.0099) }, "/group/weight"},
		"large":            {func(r *yardv1.PutGroupRequest) { r.Group.Weight = new(100.1) }, "/group/weight"},
		"negative":         {func(r *yardv1.PutGroupRequest) { r.Group.Weight = new(-1.0) }, "/group/weight"},
		"no number":        {func(r *yardv1.PutGroupRequest) { r.Group.Weight = new(math.NaN()) }, "/group/weight"},
		"endless":          {func(r *yardv1.PutGroupRequest) { r.Group.Weight = new(math.Inf(1)) }, "/group/weight"},
		"revision":         {func(r *yardv1.PutGroupRequest) { r.Group.Revision = -1 }, "/group/revision"},
	})
	for _, good := range []*float64{nil, new(0.0), new(0.01), new(1.0)} {
		testkit.Check(t, PutGroup(&yardv1.PutGroupRequest{Group: &yardv1.Group{Name: "a", Weight: good}}))
	}
}
