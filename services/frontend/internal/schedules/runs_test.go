package schedules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A trigger adds a run that may start now, also of a paused schedule. Each has a time of its own.
func TestATriggerAddsARun(t *testing.T) {
	r := newRig(t)
	r.put(hourly("a", func(s *yardv1.Schedule) { s.Paused = true }))
	trigger := func(id string) int64 {
		t.Helper()
		return done[*yardv1.TriggerScheduleResponse](r, r.Trigger, &yardv1.TriggerScheduleRequest{Name: "a", RequestId: id}).RunAtMs
	}
	first, second := trigger("x"), trigger("")
	testkit.Equal(t, "the first", first, r.nowMs())
	testkit.Equal(t, "the second", second, r.nowMs()+1)
	testkit.Equal(t, "the first again", trigger("x"), first)
	home, _ := r.home("a")
	testkit.Equal(t, "due", runs(r, home.Due), fmt.Sprintf("%d trigger;%d trigger;", 10*hour, 10*hour+1))
	for _, run := range home.Due {
		testkit.Equal(t, "it may start", run.StartAtMs, r.nowMs())
	}
	testkit.Equal(t, "waiting", r.get("a").Waiting, 2)
	testkit.Equal(t, "the revision", r.get("a").Revision, 1)
	// The keeper has started the runs: the id is known among the recent ones.
	r.keep("a", func(h *logv1.ScheduleHome) { h.Due, h.Recent = nil, h.Due })
	r.now = r.now.Add(time.Minute)
	testkit.Equal(t, "the first after its start", trigger("x"), first)
	testkit.Equal(t, "another one", trigger("y"), r.nowMs())
	refused(t, "a long id", testkit.Err(asked(r, r.Trigger, &yardv1.TriggerScheduleRequest{Name: "a", RequestId: strings.Repeat("x", 65)})), fault.InvalidArgument, "/request_id")
	refused(t, "none", testkit.Err(asked(r, r.Trigger, &yardv1.TriggerScheduleRequest{Name: "b"})), fault.NotFound, "/name")
	r.full = true
	testkit.Code(t, "no space", testkit.Err(asked(r, r.Trigger, &yardv1.TriggerScheduleRequest{Name: "a"})), fault.ResourceExhausted)
}

// Without an answer of the log, a run that was stored is not added again.
func TestARunOfUnknownOutcomeIsAddedOnce(t *testing.T) {
	r := newRig(t)
	r.put(hourly("a"))
	r.log.failure, r.log.stored = natslog.ErrOutcomeUnknown, true
	done[*yardv1.TriggerScheduleResponse](r, r.Trigger, &yardv1.TriggerScheduleRequest{Name: "a"})
	r.log.failure, r.log.stored = natslog.ErrOutcomeUnknown, true
	resp := done[*yardv1.BackfillScheduleResponse](r, r.Backfill, &yardv1.BackfillScheduleRequest{Name: "a", FromMs: r.nowMs() - hour, ToMs: r.nowMs()})
	home, _ := r.home("a")
	testkit.Equal(t, "due", runs(r, home.Due), fmt.Sprintf("%d trigger;%d backfill;%d backfill;", 10*hour, 9*hour, 10*hour))
	testkit.Equal(t, "runs", resp.Runs, 2)
}

// At most 100 triggers wait.
func TestSoManyTriggersWait(t *testing.T) {
	r := newRig(t)
	r.put(hourly("a"))
	for range dueMax {
		done[*yardv1.TriggerScheduleResponse](r, r.Trigger, &yardv1.TriggerScheduleRequest{Name: "a"})
	}
	testkit.Code(t, "one more", testkit.Err(asked(r, r.Trigger, &yardv1.TriggerScheduleRequest{Name: "a"})), fault.ResourceExhausted)
}

// A backfill adds the times of its stretch, both ends included. Those that wait by an earlier backfill are not added again.
func TestABackfillAddsTheTimesOfAStretch(t *testing.T) {
	r := newRig(t)
	r.put(hourly("a"))
	backfill := func(from, to int64) (int32, error) {
		resp, err := asked(r, r.Backfill, &yardv1.BackfillScheduleRequest{Name: "a", FromMs: r.nowMs() + from, ToMs: r.nowMs() + to})
		if err != nil {
			return 0, err
		}
		return resp.(*yardv1.BackfillScheduleResponse).Runs, nil
	}
	n, err := backfill(-3*hour, -hour)
	testkit.NoError(t, err)
	testkit.Equal(t, "runs", n, 3)
	n, err = backfill(-2*hour, 0)
	testkit.NoError(t, err)
	testkit.Equal(t, "runs", n, 3)
	n, err = backfill(-minute, -1)
	testkit.NoError(t, err)
	testkit.Equal(t, "runs of none", n, 0)
	home, _ := r.home("a")
	testkit.Equal(t, "due", runs(r, home.Due), fmt.Sprintf("%d backfill;%d backfill;%d backfill;%d backfill;", 7*hour, 8*hour, 9*hour, 10*hour))
	named := &yardv1.BackfillScheduleRequest{Name: "a", FromMs: r.nowMs() - 5*hour, ToMs: r.nowMs() - 4*hour, RequestId: "x"}
	done[*yardv1.BackfillScheduleResponse](r, r.Backfill, named)
	r.keep("a", func(h *logv1.ScheduleHome) { h.Due, h.Recent = nil, h.Due }) // they have started
	testkit.Equal(t, "runs of a repeat", done[*yardv1.BackfillScheduleResponse](r, r.Backfill, named).Runs, 2)
	home, _ = r.home("a")
	testkit.Equal(t, "due after a repeat", runs(r, home.Due), "")
	// Ids of triggers are others than those of backfills.
	testkit.Equal(t, "a trigger with the id of the backfill", done[*yardv1.TriggerScheduleResponse](r, r.Trigger, &yardv1.TriggerScheduleRequest{Name: "a", RequestId: "x"}).RunAtMs > r.nowMs()-hour, true)
	testkit.Code(t, "too many", second(backfill(-200*hour, 0)), fault.ResourceExhausted)
	for path, req := range map[string]*yardv1.BackfillScheduleRequest{
		"/name":    {Name: "x y", FromMs: 1, ToMs: 2},
		"/from_ms": {Name: "a", ToMs: 2},
		"/to_ms":   {Name: "a", FromMs: 3, ToMs: 2},
	} {
		refused(t, path, testkit.Err(asked(r, r.Backfill, req)), fault.InvalidArgument, path)
	}
	refused(t, "ahead", second(backfill(-1, 1)), fault.InvalidTime, "/to_ms")
	refused(t, "none", testkit.Err(asked(r, r.Backfill, &yardv1.BackfillScheduleRequest{Name: "b", FromMs: 1, ToMs: 2})), fault.NotFound, "/name")
}

func second[T any](_ T, err error) error { return err }

// The next times are of a schedule by name, or of one that is only in the request.
func TestNext(t *testing.T) {
	r := newRig(t)
	r.put(hourly("a", func(s *yardv1.Schedule) { s.Paused, s.RunsMax = true, 5 }))
	r.keep("a", func(h *logv1.ScheduleHome) {
		h.Runs, h.Due = 1, []*logv1.ScheduledRun{{RunAtMs: r.nowMs(), Reason: logv1.RunReason_RUN_REASON_SCHEDULED}}
	})
	next := func(req *yardv1.NextScheduleRequest) []int64 {
		t.Helper()
		return done[*yardv1.NextScheduleResponse](r, r.Next, req).NextMs
	}
	want := []int64{r.nowMs() + hour, r.nowMs() + 2*hour, r.nowMs() + 3*hour}
	if got := next(&yardv1.NextScheduleRequest{Name: "a"}); !slices.Equal(got, want) {
		t.Errorf("by name %v, want %v", got, want)
	}
	every := &yardv1.Schedule{EveryMs: minute}
	if got := next(&yardv1.NextScheduleRequest{Schedule: every, Limit: 2, AfterMs: 5}); !slices.Equal(got, []int64{minute, 2 * minute}) {
		t.Errorf("of a given one: %v", got)
	}
	testkit.Equal(t, "by default", len(next(&yardv1.NextScheduleRequest{Schedule: every})), 10)
	every.RunsMax = 3
	testkit.Equal(t, "of so many runs", len(next(&yardv1.NextScheduleRequest{Schedule: every})), 3)
	for path, req := range map[string]*yardv1.NextScheduleRequest{
		"/name":               {},
		"/limit":              {Name: "a", Limit: 1001},
		"/schedule/cron/0":    {Schedule: &yardv1.Schedule{Cron: []string{"x"}}},
		"/schedule/time_zone": {Schedule: &yardv1.Schedule{Cron: []string{"0 * * * *"}, TimeZone: "x"}},
	} {
		refused(t, path, testkit.Err(asked(r, r.Next, req)), fault.InvalidArgument, path)
	}
	refused(t, "both", testkit.Err(asked(r, r.Next, &yardv1.NextScheduleRequest{Name: "a", Schedule: every})), fault.InvalidArgument, "/name")
	refused(t, "a time", testkit.Err(asked(r, r.Next, &yardv1.NextScheduleRequest{Name: "a", AfterMs: -1})), fault.InvalidTime, "/after_ms")
}

// An answer has the progress that the keeper has stored; one that is over has no next times.
func TestAnInfoHasTheProgress(t *testing.T) {
	r := newRig(t)
	r.put(hourly("a", func(s *yardv1.Schedule) { s.RunsMax = 2 }))
	id := ids.NewTaskID(r.now, 1, 7)
	r.keep("a", func(h *logv1.ScheduleHome) {
		h.Runs, h.Skipped, h.Missed, h.Running = 2, 3, 4, [][]byte{id[:]}
		h.Due = []*logv1.ScheduledRun{{RunAtMs: 1, StartAtMs: r.nowMs(), Reason: logv1.RunReason_RUN_REASON_BACKFILL}, {RunAtMs: 2, StartAtMs: r.nowMs() + 1}}
		h.Recent = []*logv1.ScheduledRun{
			{RunAtMs: 9, Reason: logv1.RunReason_RUN_REASON_OVERLAP},
			{RunAtMs: 8, StartAtMs: 10, TaskId: id[:], Reason: logv1.RunReason_RUN_REASON_SCHEDULED},
		}
	})
	info := r.get("a")
	if info.Runs != 2 || info.Skipped != 3 || info.Missed != 4 || info.Running != 1 || info.Waiting != 1 || len(info.NextMs) != 0 {
		t.Errorf("got %v", info)
	}
	if first, second := info.Recent[0], info.Recent[1]; first.Reason != "overlap" || first.TaskId != "" || first.StartedAtMs != 0 ||
		second.Reason != "scheduled" || second.TaskId != id.String() || second.StartedAtMs != 10 || second.RunAtMs != 8 {
		t.Errorf("the last runs are %v", info.Recent)
	}
	if all := done[*yardv1.ListSchedulesResponse](r, r.List, &yardv1.ListSchedulesRequest{}).Schedules; len(all) != 1 || len(all[0].Recent) != 0 || all[0].Runs != 2 {
		t.Errorf("listed %v", all)
	}
}

// A list has each schedule of the domain once, by name, by pages that end with their limit or their bytes, also if all change meanwhile.
func TestAListGoesPageByPage(t *testing.T) {
	for payload, limit := range map[int]int32{10: 3, 200 << 10: 100} {
		r := newRig(t)
		var want, got []string
		for i := range 8 {
			name := fmt.Sprintf("s%d", i)
			want = append(want, name)
			r.put(hourly(name, func(s *yardv1.Schedule) { s.Task.Payload.Data = []byte(`"` + strings.Repeat("x", payload) + `"`) }))
		}
		done[*yardv1.DeleteScheduleResponse](r, r.Delete, &yardv1.DeleteScheduleRequest{Name: "s3"})
		want = slices.Delete(want, 3, 4)
		pages := 0
		for cursor := ""; pages == 0 || cursor != ""; pages++ {
			resp := done[*yardv1.ListSchedulesResponse](r, r.List, &yardv1.ListSchedulesRequest{Limit: limit, Cursor: cursor})
			for _, info := range resp.Schedules {
				got = append(got, info.Schedule.Name)
			}
			if len(resp.Schedules) > int(min(limit, 3)) {
				t.Errorf("a page of %d", len(resp.Schedules))
			}
			cursor = resp.NextCursor
			for _, name := range want { // all run meanwhile
				r.keep(name, func(h *logv1.ScheduleHome) { h.Runs++ })
			}
		}
		if !slices.Equal(got, want) || pages < 3 {
			t.Errorf("listed %v in %d pages, want %v", got, pages, want)
		}
	}
	r := newRig(t)
	refused(t, "a cursor", testkit.Err(asked(r, r.List, &yardv1.ListSchedulesRequest{Cursor: "x.y"})), fault.InvalidArgument, "/cursor")
	refused(t, "a limit", testkit.Err(asked(r, r.List, &yardv1.ListSchedulesRequest{Limit: 1001})), fault.InvalidArgument, "/limit")
}
