package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	completed = yardv1.TaskState_TASK_STATE_COMPLETED
	dead      = yardv1.TaskState_TASK_STATE_DEAD
	cancelled = yardv1.TaskState_TASK_STATE_CANCELLED
	running   = yardv1.TaskState_TASK_STATE_RUNNING
)

func TestLookUpWaitsForTheEnd(t *testing.T) {
	ids := make([]string, 100)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	l := newLedger(time.Now())
	l.accept(&kind{}, ids, time.Now())
	var mu sync.Mutex
	asked := map[string]int{}
	var done atomic.Int64
	l.lookUp(t.Context(), func(_ context.Context, id string) (*yardv1.Task, error) {
		mu.Lock()
		defer mu.Unlock()
		switch asked[id]++; asked[id] {
		case 1:
			return nil, fault.New(fault.NotFound, "not yet")
		case 2:
			return &yardv1.Task{State: running}, nil
		}
		return &yardv1.Task{State: completed, Events: []*yardv1.TaskEvent{
			{Kind: yardv1.TaskEventKind_TASK_EVENT_KIND_STARTED}, {Kind: yardv1.TaskEventKind_TASK_EVENT_KIND_COMPLETED},
		}}, nil
	}, time.Minute, &done)
	if done.Load() != int64(len(ids)) {
		t.Errorf("%d are counted as done, not %d", done.Load(), len(ids))
	}
	for _, e := range l.ordered {
		testkit.MustEqual(t, "the end of task "+e.id, e.end, ending{state: completed, ends: 1})
	}
}

func TestLookUpReportsWhatIsMissing(t *testing.T) {
	l := newLedger(time.Now())
	l.accept(&kind{}, []string{"lost", "stuck", "silent"}, time.Now())
	var done atomic.Int64
	l.lookUp(t.Context(), func(_ context.Context, id string) (*yardv1.Task, error) {
		switch id {
		case "lost":
			return nil, fault.New(fault.NotFound, "no such task")
		case "stuck":
			return &yardv1.Task{State: running}, nil
		default:
			return nil, fault.New(fault.Unavailable, "no one answers")
		}
	}, 500*time.Millisecond, &done)
	for i, want := range []ending{{lost: true}, {state: running}, {}} {
		testkit.Equal(t, l.ordered[i].id, l.ordered[i].end, want)
	}
}

func TestCompareChecksBothSides(t *testing.T) {
	l := newLedger(time.Now())
	ids := []string{"good", "doubled", "claimed", "denied", "dead", "cancelled", "lost", "stuck", "ended-twice"}
	l.accept(&kind{}, ids, time.Now())
	for _, id := range []string{"good", "doubled", "doubled", "denied", "ended-twice", "unaccepted"} {
		attempt(l, id, 1, fails(nil))
	}
	for id, end := range map[string]ending{
		"good":        {state: completed, ends: 1},
		"doubled":     {state: completed, ends: 1},
		"claimed":     {state: completed, ends: 1},
		"denied":      {state: dead, ends: 1},
		"dead":        {state: dead, ends: 1},
		"cancelled":   {state: cancelled, ends: 1},
		"lost":        {lost: true, ends: 0},
		"stuck":       {state: running, ends: 0},
		"ended-twice": {state: completed, ends: 2},
	} {
		l.tasks[id].end = end
	}
	want := tenantReport{
		Name: "t", Accepted: 9, Completed: 4, Dead: 2, Cancelled: 1, Unfinished: 1, Lost: 1,
		Twice:     2, // doubled, ended-twice
		Disagreed: 3, // claimed (never ran), denied (had succeeded), unaccepted
		Example:   "denied",
	}
	if got := (&tenant{domain: "t", ledger: l}).compare(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// goodReport is a report in which all claims hold.
func goodReport() report {
	return report{
		Seed: 42, Seconds: 68.4,
		Tenants: []tenantReport{
			{Name: "shop", Accepted: 4210, Completed: 4105, Cancelled: 105},
			{Name: "media", Accepted: 980, Completed: 966, Dead: 14, Failed: 14},
			{Name: "payouts", Accepted: 1210, Completed: 1186, Dead: 24, Failed: 301, Retried: 277, Example: "06FHM3VDW5Q8K1T0N4YZJX2RBC"},
		},
		Limit: limitReport{Type: "payout.send", Limit: 3, AtOnceMax: 3, InBankMax: 3},
		Bank:  bankStats{Calls: 1487, Paid: 1186, Repeats: 57, InFlightMax: 3},
	}
}

func TestSummary(t *testing.T) {
	bad := goodReport()
	bad.Tenants[0].Completed -= 2
	bad.Tenants[0].Unfinished, bad.Tenants[0].Lost, bad.Tenants[0].Unsure, bad.Tenants[0].Leftovers = 1, 1, 3, 4
	bad.Limit.InBankMax = 4
	for name, r := range map[string]report{"good": goodReport(), "bad": bad} {
		t.Run(name, func(t *testing.T) {
			r.check()
			var text bytes.Buffer
			testkit.NoError(t, writeSummary(&text, r, "yard"))
			testkit.Golden(t, "testdata/summary-"+name+".txt", text.Bytes())
		})
	}
}

func TestEveryClaimCanFail(t *testing.T) {
	sound := goodReport()
	if sound.check(); !sound.OK {
		t.Fatalf("a good report fails: %+v", sound.Checks)
	}
	for name, spoil := range map[string]func(*report){
		"idle tenant":    func(r *report) { r.Tenants[1] = tenantReport{Name: "media"} },
		"nothing at all": func(r *report) { r.Tenants = []tenantReport{{Name: "shop"}} },
		"lost":           func(r *report) { r.Tenants[0].Completed--; r.Tenants[0].Lost++ },
		"unfinished":     func(r *report) { r.Tenants[0].Completed--; r.Tenants[0].Unfinished++ },
		"twice":          func(r *report) { r.Tenants[2].Twice++ },
		"disagreed":      func(r *report) { r.Tenants[2].Disagreed++ },
		"over limit":     func(r *report) { r.Limit.AtOnceMax = 4 },
		"bank overrun":   func(r *report) { r.Limit.InBankMax = 4 },
		"paid twice":     func(r *report) { r.Bank.PaidTwice = 1 },
		"unpaid":         func(r *report) { r.Limit.UnpaidDone = 1 },
		"two at a time":  func(r *report) { r.Bank.Overlaps = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			r := goodReport()
			spoil(&r)
			if r.check(); r.OK {
				t.Errorf("the report is good: %+v", r.Checks)
			}
		})
	}
}

func TestReportForPrograms(t *testing.T) {
	r := goodReport()
	r.check()
	var out bytes.Buffer
	testkit.NoError(t, writeJSON(&out, r, ""))
	var back report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || !back.OK || len(back.Tenants) != 3 || back.Tenants[0] != r.Tenants[0] {
		t.Errorf("read back: %+v, %v", back, err)
	}
}
