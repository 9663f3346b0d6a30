package validate

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestARateIsRefused(t *testing.T) {
	refusals(t, func() *yardv1.PutTypeRequest {
		return &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Name: "a", Rate: &yardv1.Rate{Tasks: 1_000_000, PerMs: 1000, Burst: 1_000_000}}}
	}, PutType, map[string]row[*yardv1.PutTypeRequest]{
		"no tasks":       {func(r *yardv1.PutTypeRequest) { r.Type.Rate.Tasks = 0 }, "/type/rate/tasks"},
		"too many":       {func(r *yardv1.PutTypeRequest) { r.Type.Rate.Tasks = 1_000_001 }, "/type/rate/tasks"},
		"too fast":       {func(r *yardv1.PutTypeRequest) { r.Type.Rate.PerMs = 999 }, "/type/rate/tasks"},
		"negative time":  {func(r *yardv1.PutTypeRequest) { r.Type.Rate.PerMs = -1 }, "/type/rate/per_ms"},
		"long":           {func(r *yardv1.PutTypeRequest) { r.Type.Rate.PerMs = 86_400_001 }, "/type/rate/per_ms"},
		"negative burst": {func(r *yardv1.PutTypeRequest) { r.Type.Rate.Burst = -1 }, "/type/rate/burst"},
		"large burst":    {func(r *yardv1.PutTypeRequest) { r.Type.Rate.Burst = 1_000_001 }, "/type/rate/burst"},
	})
	for path, err := range map[string]error{
		"/domain/rate/tasks":   PutDomain(&yardv1.PutDomainRequest{Domain: &yardv1.Domain{Name: "a", Rate: &yardv1.Rate{}}}),
		"/tasklist/rate/tasks": PutTasklist(&yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: "a", Rate: &yardv1.Rate{}}}),
		"/limit/rate/tasks":    PutLimit(&yardv1.PutLimitRequest{Limit: &yardv1.Limit{Name: "a", Rate: &yardv1.Rate{}}}),
	} {
		if e := fault.From(err); e == nil || e.Path != path {
			t.Errorf("%v, want %s", err, path)
		}
	}
	for _, good := range []*yardv1.Limit{{Name: "a", Rate: &yardv1.Rate{Tasks: 1}}, {Name: "a", MaxConcurrency: 3, Rate: &yardv1.Rate{Tasks: 1, PerMs: 86_400_000}}} {
		testkit.Check(t, PutLimit(&yardv1.PutLimitRequest{Limit: good}))
	}
}
