package gateway

import (
	"errors"
	"strings"
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

// TestI13_LimitsOfDeadLettersNeedALogVersion: an older owner would keep them for good.
func TestI13_LimitsOfDeadLettersNeedALogVersion(t *testing.T) {
	for version, taken := range map[uint32]bool{logversion.LetterLimits - 1: false, logversion.LetterLimits: true} {
		g := &Gateway{Deps: Deps{LogVersion: func() uint32 { return version }}}
		for path, err := range map[string]error{
			"/domain/dead_letters_max":        g.domainKnown(&yardv1.Domain{DeadLettersMax: 1}),
			"/domain/dead_letters_max_age_ms": g.domainKnown(&yardv1.Domain{DeadLettersMaxAgeMs: 60_000}),
		} {
			if taken && err != nil {
				t.Errorf("version %d: %v", version, err)
			} else if !taken {
				wantField(t, err, path)
			}
		}
	}
}

// TestI13_RetryRulesWaitForTheClustersVersion: an older owner would retry what is not to be, or lose the rules of a task that it parks.
func TestI13_RetryRulesWaitForTheClustersVersion(t *testing.T) {
	for version, taken := range map[uint32]bool{logversion.RetryRules - 1: false, logversion.RetryRules: true} {
		g := &Gateway{Deps: Deps{LogVersion: func() uint32 { return version }}}
		for field, p := range map[string]*yardv1.RetryPolicy{
			"non_retryable":  {NonRetryable: []string{"a"}},
			"by_error":       {ByError: []*yardv1.ErrorRetry{{ErrorType: "a"}}},
			"jitter":         {Jitter: yardv1.Jitter_JITTER_SLIGHT},
			"max_deliveries": {MaxDeliveries: 1},
			"on_lost":        {OnLost: yardv1.OnLost_ON_LOST_RETRY},
			"on_timeout":     {OnTimeout: yardv1.OnTimeout_ON_TIMEOUT_FAIL},
			"":               {MaxAttempts: 1},
		} {
			p.MaxAttempts = 3
			ofTask := g.tasksKnown([]*yardv1.NewTask{{Headers: map[string]string{"a": "1"}}, {Group: "g", Retry: p}})
			ofType := g.typeKnown(&yardv1.TaskType{Retry: p, MaxConcurrencyPerGroup: 1})
			if taken || field == "" {
				if ofTask != nil || ofType != nil {
					t.Errorf("version %d, %s: %v, %v", version, field, ofTask, ofType)
				}
				continue
			}
			wantField(t, ofTask, "/tasks/1/retry/"+field)
			wantField(t, ofType, "/type/retry/"+field)
		}
	}
}

// I13: what stops or names a group waits until every owner knows it: an older one would list, and purge, what is of no such group.
func TestI13_StoppedGroupsAndFiltersByGroupNeedALogVersion(t *testing.T) {
	for version, taken := range map[uint32]bool{logversion.GroupStops - 1: false, logversion.GroupStops: true} {
		synctest.Test(t, func(t *testing.T) {
			r := newKnowingRig(t, func(d *Deps) { d.LogVersion = func() uint32 { return version } })
			resume := func(drain bool) {
				if _, err := asked(r, "shop", true, r.ResumeGroup, &yardv1.ResumeGroupRequest{Name: "acme", Drain: drain}); taken != (err == nil) {
					t.Errorf("version %d: resume %v", version, err)
				}
			}
			for _, ask := range []struct {
				path string
				err  func() error
			}{
				{"/name", func() error {
					_, err := asked(r, "shop", true, r.PauseGroup, &yardv1.PauseGroupRequest{Name: "acme"})
					return err
				}},
				{"/name", func() error {
					_, err := asked(r, "shop", true, r.DrainGroup, &yardv1.DrainGroupRequest{Name: "acme"})
					return err
				}},
				{"/group", func() error { _, err := asked(r, "shop", true, r.List, &yardv1.ListRequest{Group: "acme"}); return err }},
				{"/group", func() error {
					_, err := asked(r, "shop", true, r.PurgeTasklist, &yardv1.PurgeTasklistRequest{Name: "main", Group: "acme"})
					return err
				}},
				{"/group", func() error {
					_, err := asked(r, "shop", true, r.PurgeType, &yardv1.PurgeTypeRequest{Name: "pay", Group: "acme"})
					return err
				}},
				{"/name", func() error {
					_, err := asked(r, "shop", true, r.PurgeGroup, &yardv1.PurgeGroupRequest{Name: "acme"})
					return err
				}},
				{"/group", func() error {
					_, err := asked(r, "shop", true, r.PeekTasklist, &yardv1.PeekTasklistRequest{Name: "main", Group: "acme"})
					return err
				}},
			} {
				err := ask.err()
				if !taken {
					if e := wantCode(t, err, fault.FailedPrecondition); e.Path != ask.path || !strings.Contains(e.Message, "log version") {
						t.Errorf("%v, want %s", e, ask.path)
					}
				} else if e := fault.From(err); e != nil && strings.Contains(e.Message, "log version") {
					t.Errorf("version %d: %v", version, err)
				}
			}
			resume(false)
			resume(true)
		})
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

// I13: costs wait until every matching owner counts them, and each history owner keeps them. One start is what a task without costs.
func TestI13_CostsNeedALogVersion(t *testing.T) {
	for version, taken := range map[uint32]bool{logversion.Cost - 1: false, logversion.Cost: true} {
		g := &Gateway{Deps: Deps{LogVersion: func() uint32 { return version }}}
		for path, of := range map[string]func(cost int32) error{
			"/type/cost": func(cost int32) error { return g.typeKnown(&yardv1.TaskType{Cost: cost}) },
			"/tasks/1/cost": func(cost int32) error {
				return g.tasksKnown([]*yardv1.NewTask{{Group: "a"}, {Group: "a", Cost: cost}})
			},
		} {
			if err := of(1); err != nil {
				t.Errorf("version %d: %v", version, err)
			}
			if err := of(2); taken && err != nil {
				t.Errorf("version %d: %v", version, err)
			} else if !taken {
				wantField(t, err, path)
			}
		}
	}
}

// I13: polls of several tasklists wait until no matching owner would keep one.
func TestI13_PollsOfSeveralTasklistsNeedALogVersion(t *testing.T) {
	for version, taken := range map[uint32]bool{logversion.Weighted - 1: false, logversion.Weighted: true} {
		for n := range 3 {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(d *Deps) { d.LogVersion = func() uint32 { return version } })
				req := &yardv1.PollRequest{MaxTasks: 1, Tasklists: []*yardv1.PolledTasklist{{Name: "a"}, {Name: "b"}}[:n]}
				if n == 0 {
					req.Tasklist = "a"
				}
				answer, got := r.answers(t)
				r.Poll(r.call(), req, answer)
				if o := <-got; n == 0 || taken {
					wantCode(t, o.err, "")
				} else {
					wantField(t, o.err, "/tasklists")
				}
			})
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

// I13: an attempt may be put off once every history owner knows that it is no failure.
func TestI13_SnoozesNeedALogVersion(t *testing.T) {
	for version, taken := range map[uint32]bool{logversion.Snooze - 1: false, logversion.Snooze: true} {
		g := &Gateway{Deps: Deps{LogVersion: func() uint32 { return version }}}
		if err := g.failuresKnown([]*yardv1.Failure{{DelayMs: 5}}); err != nil {
			t.Errorf("a failure: %v", err)
		}
		err := g.failuresKnown([]*yardv1.Failure{{DelayMs: 5}, {Snooze: true, DelayMs: 5}})
		if taken && err != nil {
			t.Errorf("version %d: %v", version, err)
		} else if !taken {
			wantField(t, err, "/tasks/1/snooze")
		}
	}
}
