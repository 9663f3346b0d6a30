package gateway

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
)

// TestI13HeadersWaitForTheClustersVersion: a node of the version before would lose those of a task that it parks,
// and list as if there was no filter.
func TestI13HeadersWaitForTheClustersVersion(t *testing.T) {
	some := map[string]string{"partner": "acme"}
	for version, taken := range map[uint32]bool{logversion.Headers - 1: false, logversion.Headers: true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(d *Deps) { d.LogVersion = func() uint32 { return version } }).running(t)
			req := tasks(2)
			req.Tasks[1].Headers = some
			answer, listed := r.answers(t)
			r.List(r.call(), &yardv1.ListRequest{Headers: some}, answer)
			submitted := <-r.submit(t, req)
			if !taken {
				wantCode(t, submitted.err, fault.FailedPrecondition)
				wantCode(t, (<-listed).err, fault.FailedPrecondition)
				if n := len(r.log.tries); n > 0 {
					t.Errorf("%d messages were stored", n)
				}
				return
			}
			accepted(t, submitted)
			if got := <-listed; got.err != nil {
				t.Error(got.err)
			}
			if h := decode(t, r.log.tries[0].Data).Tasks[1].Headers; len(h) != 1 || h[0].Name != "partner" || h[0].Value != "acme" {
				t.Errorf("stored %v", h)
			}
		})
	}
}

// TestI13ExpiryWaitsForTheClustersVersion: an older owner would run a task late, an older frontend ignore what its
// type says.
func TestI13ExpiryWaitsForTheClustersVersion(t *testing.T) {
	for version, taken := range map[uint32]bool{logversion.Expiry - 1: false, logversion.Expiry: true} {
		for field, set := range map[string]func(*yardv1.NewTask, *yardv1.TaskType){
			"start_within_ms":  func(t *yardv1.NewTask, of *yardv1.TaskType) { t.StartWithinMs, of.StartWithinMs = 1000, 1000 },
			"finish_within_ms": func(t *yardv1.NewTask, of *yardv1.TaskType) { t.FinishWithinMs, of.FinishWithinMs = 1000, 1000 },
		} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(d *Deps) { d.LogVersion = func() uint32 { return version } }).running(t)
				req, typ := tasks(2), &yardv1.TaskType{Name: "email.send"}
				req.Tasks[0].Headers = map[string]string{"a": "1"}
				set(req.Tasks[1], typ)
				answer, put := r.answers(t)
				r.PutType(r.call(), &yardv1.PutTypeRequest{Type: typ}, answer)
				submitted := <-r.submit(t, req)
				if taken {
					accepted(t, submitted)
					if got := <-put; got.err != nil {
						t.Error(got.err)
					}
					if x := decode(t, r.log.tries[0].Data).Tasks[1].Expiry; x.GetStartWithinMs()+x.GetFinishWithinMs() != 1000 {
						t.Errorf("stored %v", x)
					}
					return
				}
				wantField(t, submitted.err, "/tasks/1/"+field)
				wantField(t, (<-put).err, "/type/"+field)
			})
		}
	}
}

// wantField expects a refusal that waits for an upgrade and names a field.
func wantField(t *testing.T, err error, path string) {
	t.Helper()
	wantCode(t, err, fault.FailedPrecondition)
	if f := (*fault.Error)(nil); !errors.As(err, &f) || f.Path != path {
		t.Errorf("the field is not %s: %v", path, err)
	}
}

// TestAPageMayEndWhereASearchStopped: also one without tasks; and what others reported beyond comes later.
func TestAPageMayEndWhereASearchStopped(t *testing.T) {
	task := func(id string) *yardv1.Task { return &yardv1.Task{TaskId: id} }
	found := []*rpcv1.ListTasksResponse{
		{Tasks: []*yardv1.Task{task("9"), task("4")}},
		{More: true, End: "6"},
	}
	for _, c := range []struct{ cursor, page, next string }{{"", "9", "6"}, {"9", "", "6"}, {"6", "", ""}} {
		page, next := merge(Call{}, found, &yardv1.ListRequest{Limit: 10, Cursor: c.cursor})
		got := ""
		for _, t := range page {
			got += t.TaskId
		}
		if got != c.page || next != c.next {
			t.Errorf("from %q: page %q, next %q, want %q, %q", c.cursor, got, next, c.page, c.next)
		}
	}
}

// I13: rates wait until every node knows them.
func TestI13_RatesNeedALogVersion(t *testing.T) {
	rate := &yardv1.Rate{Tasks: 1}
	for version, taken := range map[uint32]bool{logversion.Rates - 1: false, logversion.Rates: true} {
		g := &Gateway{Deps: Deps{LogVersion: func() uint32 { return version }}}
		for path, err := range map[string]error{
			"/domain/rate": g.domainKnown(&yardv1.Domain{Rate: rate}), "/tasklist/rate": g.tasklistKnown(&yardv1.Tasklist{Rate: rate}),
			"/type/rate": g.typeKnown(&yardv1.TaskType{Rate: rate}), "/limit/rate": g.limitKnown(&yardv1.Limit{Rate: rate}),
		} {
			if taken && err != nil {
				t.Errorf("version %d: %v", version, err)
			} else if !taken {
				if e := wantCode(t, err, fault.FailedPrecondition); e.Path != path {
					t.Errorf("%v, want %s", e, path)
				}
			}
		}
	}
}

// I13: limits in shadow wait until every matching owner knows that they hold nothing up.
func TestI13_LimitsInShadowNeedALogVersion(t *testing.T) {
	for version, taken := range map[uint32]bool{logversion.Shadow - 1: false, logversion.Shadow: true} {
		g := &Gateway{Deps: Deps{LogVersion: func() uint32 { return version }}}
		err := g.limitKnown(&yardv1.Limit{MaxConcurrency: 1, Shadow: true})
		if taken && err != nil {
			t.Errorf("version %d: %v", version, err)
		} else if !taken {
			wantField(t, err, "/limit/shadow")
		}
	}
}

// I13: what a full limit does waits until every history owner knows the events.
func TestI13_PoliciesOfFullLimitsNeedALogVersion(t *testing.T) {
	for version, taken := range map[uint32]bool{logversion.OnFull - 1: false, logversion.OnFull: true} {
		g := &Gateway{Deps: Deps{LogVersion: func() uint32 { return version }}}
		err := g.limitKnown(&yardv1.Limit{MaxConcurrency: 1, OnFull: yardv1.OnFull_ON_FULL_REJECT_NEWEST})
		if taken && err != nil {
			t.Errorf("version %d: %v", version, err)
		} else if !taken {
			wantField(t, err, "/limit/on_full")
		}
	}
}

// I13: limits per group wait until every matching owner knows them, and history tells the groups of what runs.
func TestI13_LimitsPerGroupNeedALogVersion(t *testing.T) {
	for version, taken := range map[uint32]bool{logversion.PerGroup - 1: false, logversion.PerGroup: true} {
		g := &Gateway{Deps: Deps{LogVersion: func() uint32 { return version }}}
		for path, err := range map[string]error{
			"/domain/max_concurrency_per_group":   g.domainKnown(&yardv1.Domain{MaxConcurrencyPerGroup: 1}),
			"/tasklist/max_concurrency_per_group": g.tasklistKnown(&yardv1.Tasklist{MaxConcurrencyPerGroup: 1}),
			"/type/max_concurrency_per_group":     g.typeKnown(&yardv1.TaskType{MaxConcurrencyPerGroup: 1}),
			"/limit/max_concurrency_per_group":    g.limitKnown(&yardv1.Limit{MaxConcurrencyPerGroup: 1}),
			"/group/max_concurrency":              g.groupKnown(&yardv1.Group{MaxConcurrency: 1}),
		} {
			if taken && err != nil {
				t.Errorf("version %d: %v", version, err)
			} else if !taken {
				if e := wantCode(t, err, fault.FailedPrecondition); e.Path != path {
					t.Errorf("%v, want %s", e, path)
				}
			}
		}
		if err := g.groupKnown(&yardv1.Group{}); err != nil {
			t.Errorf("a weight: %v", err)
		}
	}
}
