package schedules

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
)

// A put answers and stores the schedule with its defaults, and its task by the settings of this moment.
func TestAPutStoresDefaultsAndTerms(t *testing.T) {
	r := newRig(t)
	testkit.NoError(t, testkit.Err(catalog.Tasklists.Put(t.Context(), r.kv, "shop", &yardv1.Tasklist{Name: "reports", Priority: 2})))
	testkit.NoError(t, testkit.Err(catalog.Types.Put(t.Context(), r.kv, "shop", &yardv1.TaskType{Name: "report", StartToCloseMs: 7000})))
	info := r.put(hourly("a"))
	s := info.Schedule
	if s.Overlap != yardv1.Overlap_OVERLAP_SKIP || s.Missed != yardv1.Missed_MISSED_LAST || s.CatchUpMs != hour || s.TimeZone != "UTC" {
		t.Errorf("answered %v", s)
	}
	if info.Revision != 1 || info.CreatedAtMs != r.nowMs() || info.Runs+info.Skipped+info.Missed != 0 || len(info.Recent) != 0 {
		t.Errorf("answered %v", info)
	}
	want := []int64{r.nowMs() + hour, r.nowMs() + 2*hour, r.nowMs() + 3*hour, r.nowMs() + 4*hour, r.nowMs() + 5*hour}
	if !slices.Equal(info.NextMs, want) {
		t.Errorf("next %v, want %v", info.NextMs, want)
	}
	home, m := r.home("a")
	of, err := scheduleOf(home)
	testkit.NoError(t, err)
	if home.Name != "a" || home.DecidedUpToMs != r.nowMs() || home.CreatedAtMs != r.nowMs() || of.TimeZone != "UTC" || of.Overlap != yardv1.Overlap_OVERLAP_SKIP {
		t.Errorf("stored %v with %v", home, of)
	}
	if task := home.Task; task.Domain != "shop" || task.Type != "report" || task.Tasklist != "reports" || task.Priority != 2 || len(task.Id) != 0 || string(task.Payload) != `{"day":"{{run_date}}"}` ||
		task.DueAtMs != 0 || task.Policy.StartToCloseMs != 7000 {
		t.Errorf("the task is %v", task)
	}
	if m.Header.Get(jetstream.MsgRollup) == "" || m.Header.Get(jetstream.MsgTTLHeader) != "" {
		t.Errorf("stored with %v", m.Header)
	}
}

// Each refusal of a put names the field; nothing is stored.
func TestAPutIsRefusedWithThePath(t *testing.T) {
	task := func(f func(*yardv1.NewTask)) func(*yardv1.Schedule) { return func(s *yardv1.Schedule) { f(s.Task) } }
	for path, change := range map[string]func(*yardv1.Schedule){
		"/schedule/name":             func(s *yardv1.Schedule) { s.Name = "a.b" },
		"/schedule/task":             func(s *yardv1.Schedule) { s.Task = nil },
		"/schedule/task/type":        task(func(t *yardv1.NewTask) { t.Type = "" }),
		"/schedule/task/tasklist":    task(func(t *yardv1.NewTask) { t.Tasklist = "" }),
		"/schedule/task/priority":    task(func(t *yardv1.NewTask) { t.Priority = 9 }),
		"/schedule/task/delay_ms":    task(func(t *yardv1.NewTask) { t.DelayMs = 1 }),
		"/schedule/task/run_at_ms":   task(func(t *yardv1.NewTask) { t.RunAtMs = 1 }),
		"/schedule/task/batch_id":    task(func(t *yardv1.NewTask) { t.BatchId = "b" }),
		"/schedule/task/unique_key":  task(func(t *yardv1.NewTask) { t.UniqueKey = "u" }),
		"/schedule/task/order_key":   task(func(t *yardv1.NewTask) { t.OrderKey = "o" }),
		"/schedule/task/traceparent": task(func(t *yardv1.NewTask) { t.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" }),
		"/schedule/task/payload":     task(func(t *yardv1.NewTask) { t.Payload = &yardv1.Payload{Data: []byte(`"{{run}}"`)} }),
		"/schedule/cron/0":           func(s *yardv1.Schedule) { s.Cron[0] = "x" },
		"/schedule/cron":             func(s *yardv1.Schedule) { s.Cron = nil },
		"/schedule/every_ms":         func(s *yardv1.Schedule) { s.EveryMs = 1 },
		"/schedule/jitter_ms":        func(s *yardv1.Schedule) { s.EveryMs, s.JitterMs = 1000, 101_000 },
		"/schedule/time_zone":        func(s *yardv1.Schedule) { s.TimeZone = "Europe/Nowhere" },
		"/schedule/overlap":          func(s *yardv1.Schedule) { s.Overlap = 77 },
		"/schedule/missed":           func(s *yardv1.Schedule) { s.Missed = 77 },
		"/schedule/catch_up_ms":      func(s *yardv1.Schedule) { s.CatchUpMs = -1 },
		"/schedule/note":             func(s *yardv1.Schedule) { s.Note = strings.Repeat("x", 1025) },
		"/schedule/exclude_dates/0":  func(s *yardv1.Schedule) { s.ExcludeDates = []string{"x"} },
		"/schedule/task/headers": task(func(t *yardv1.NewTask) {
			t.Headers = map[string]string{}
			for i := range 31 {
				t.Headers[fmt.Sprintf("h%d", i)] = ""
			}
		}),
		"/schedule/task/headers/yard-": task(func(t *yardv1.NewTask) { t.Headers = map[string]string{"yard-": "x"} }),
	} {
		r := newRig(t)
		_, err := asked(r, r.Put, hourly("a", change))
		refused(t, path, err, fault.InvalidArgument, path)
		testkit.Equal(t, "stored for "+path, r.log.seq, 0)
	}
	r := newRig(t)
	_, err := asked(r, r.Put, &yardv1.PutScheduleRequest{})
	refused(t, "no schedule", err, fault.InvalidArgument, "/schedule")
	bad := hourly("a")
	bad.Revision = -2
	_, err = asked(r, r.Put, bad)
	refused(t, "a revision", err, fault.InvalidArgument, "/revision")
	r.log.most = progressBytes + 100
	_, err = asked(r, r.Put, hourly("a"))
	refused(t, "a large task", err, fault.InvalidArgument, "/schedule/task")
}

// A schedule may store so many bytes in a minute: the more often it runs, the smaller it has to be.
func TestAScheduleThatRunsOftenIsSmall(t *testing.T) {
	of := func(bytes int, cron ...string) *yardv1.PutScheduleRequest {
		return hourly("a", func(s *yardv1.Schedule) {
			s.Cron, s.Task.Payload.Data = cron, []byte(`"`+strings.Repeat("x", bytes)+`"`)
		})
	}
	for _, c := range []struct {
		bytes int
		cron  []string
		ok    bool
	}{
		{200 << 10, []string{"0 * * * *"}, true},
		{200 << 10, []string{"* * * * *"}, true},
		{200 << 10, []string{"*/20 * * * * *"}, false},
		{100 << 10, []string{"*/20 * * * * *"}, true},
		{100 << 10, []string{"* * * * * *"}, false},
		{4 << 10, []string{"* * * * * *"}, true},
		{100 << 10, []string{"0 * * * *", "* 30 10 * * *"}, false}, // once a day, but then each second
	} {
		r := newRig(t)
		_, err := asked(r, r.Put, of(c.bytes, c.cron...))
		if c.ok {
			testkit.NoError(t, err)
		} else {
			refused(t, fmt.Sprint(c.cron), err, fault.InvalidArgument, "/schedule/task")
		}
	}
}

// A put goes by the revision that it names. The same put again changes nothing, whatever it names.
func TestAPutGoesByTheRevision(t *testing.T) {
	r := newRig(t)
	with := func(revision int64, change ...func(*yardv1.Schedule)) error {
		req := hourly("a", change...)
		req.Revision = revision
		return testkit.Err(asked(r, r.Put, req))
	}
	changed := func(s *yardv1.Schedule) { s.Note = "other" }
	refused(t, "the revision of none", with(1), fault.Stale, "/revision")
	testkit.NoError(t, with(-1))
	testkit.NoError(t, with(-1)) // its answer was lost
	testkit.Equal(t, "the revision", r.get("a").Revision, 1)
	refused(t, "only make", with(-1, changed), fault.AlreadyExists, "/schedule/name")
	refused(t, "a wrong revision", with(2, changed), fault.Stale, "/revision")
	testkit.NoError(t, with(1, changed))
	testkit.NoError(t, with(1, changed))
	testkit.Equal(t, "the revision", r.get("a").Revision, 2)
	testkit.NoError(t, with(0))
	testkit.Equal(t, "the revision", r.get("a").Revision, 3)
}

// What was stored meanwhile is not lost: a put is made again of what is there then.
func TestAPutMeetsTheKeeper(t *testing.T) {
	r := newRig(t)
	r.put(hourly("a"))
	r.log.before = func() { r.keep("a", func(h *logv1.ScheduleHome) { h.Runs, h.DecidedUpToMs = 1, h.DecidedUpToMs+hour }) }
	info := r.put(hourly("a", func(s *yardv1.Schedule) { s.Note = "n" }))
	if home, _ := r.home("a"); info.Runs != 1 || home.Runs != 1 || home.DecidedUpToMs != r.nowMs()+hour {
		t.Errorf("answered %v, stored %v", info, home)
	}
	// A put of an older revision finds that somebody else was first.
	r.log.before = func() { r.keep("a", func(h *logv1.ScheduleHome) { h.Revision++ }) }
	req := hourly("a")
	req.Revision = info.Revision
	refused(t, "the revision meanwhile", testkit.Err(asked(r, r.Put, req)), fault.Stale, "/revision")
}

// Times before a put that changes them, or that ends a pause, have no run. Other changes leave open what is not decided.
func TestAPutDecidesWhatHasPassed(t *testing.T) {
	paused := func(s *yardv1.Schedule) { s.Paused = true }
	for name, c := range map[string]struct {
		before, after func(*yardv1.Schedule)
		decides       bool
	}{
		"a note":    {nil, func(s *yardv1.Schedule) { s.Note = "n" }, false},
		"the task":  {nil, func(s *yardv1.Schedule) { s.Task.Priority = 1 }, false},
		"a jitter":  {nil, func(s *yardv1.Schedule) { s.JitterMs = 5 }, false},
		"a pause":   {nil, paused, false},
		"cron":      {nil, func(s *yardv1.Schedule) { s.Cron = []string{"30 * * * *"} }, true},
		"the zone":  {nil, func(s *yardv1.Schedule) { s.TimeZone = "Asia/Kathmandu" }, true},
		"the end":   {nil, func(s *yardv1.Schedule) { s.EndAtMs = 4102444800000 }, true},
		"no pause":  {paused, func(*yardv1.Schedule) {}, true},
		"runs more": {func(s *yardv1.Schedule) { s.RunsMax = 1 }, func(s *yardv1.Schedule) { s.RunsMax = 2 }, true},
	} {
		r := newRig(t)
		if c.before == nil {
			c.before = func(*yardv1.Schedule) {}
		}
		r.put(hourly("a", c.before))
		made := r.nowMs()
		r.now = r.now.Add(3 * time.Hour)
		r.put(hourly("a", c.after))
		want := made
		if c.decides {
			want = r.nowMs()
		}
		home, _ := r.home("a")
		testkit.Equal(t, "decided with "+name, home.DecidedUpToMs, want)
		testkit.Equal(t, "made with "+name, home.CreatedAtMs, made)
	}
}

// A domain has so many schedules with one home. Those that exist can be replaced all the same.
func TestThereAreSoManySchedules(t *testing.T) {
	r := newRig(t)
	r.put(hourly("a"))
	r.d.Names = memNames{memLog: r.log, more: topology.SchedulesMax}
	testkit.Code(t, "one more", testkit.Err(asked(r, r.Put, hourly("b"))), fault.ResourceExhausted)
	r.put(hourly("a", func(s *yardv1.Schedule) { s.Note = "n" }))
}

// A put is refused as a submit is: if the log is full, or what its task names is drained.
func TestAPutIsRefusedAsASubmitIs(t *testing.T) {
	r := newRig(t)
	r.full = true
	testkit.Code(t, "no space", testkit.Err(asked(r, r.Put, hourly("a"))), fault.ResourceExhausted)
	r.full, r.drained = false, fault.At(fault.FailedPrecondition, "/tasks/0/tasklist", "it is drained")
	refused(t, "drained", testkit.Err(asked(r, r.Put, hourly("a"))), fault.FailedPrecondition, "/schedule/task/tasklist")
	testkit.Equal(t, "stored", r.log.seq, 0)
	r.drained, r.log.failure = nil, natslog.ErrFull
	testkit.Code(t, "refused by the log", testkit.Err(asked(r, r.Put, hourly("a"))), fault.ResourceExhausted)
}

// Without an answer of the log the schedule is read: what was stored is not stored again.
func TestAPutOfUnknownOutcomeIsRead(t *testing.T) {
	r := newRig(t)
	r.log.failure, r.log.stored = natslog.ErrOutcomeUnknown, true
	r.put(hourly("a"))
	testkit.Equal(t, "messages", r.log.seq, 1)
	r.log.failure, r.log.stored = natslog.ErrOutcomeUnknown, false
	r.put(hourly("b"))
	testkit.Equal(t, "messages", r.log.seq, 2)
}

// A log that does not answer until the deadline leaves the outcome open, or not.
func TestAPutWithoutTheLog(t *testing.T) {
	for code, failure := range map[fault.Code]error{fault.Unknown: natslog.ErrOutcomeUnknown, fault.Unavailable: natslog.ErrNotStored} {
		r := newRig(t)
		ctx, cancel := context.WithCancel(t.Context())
		r.log.failure, r.log.before = failure, cancel
		_, err := r.Put(ctx, call.Call{Domain: "shop", Now: r.now}, hourly("a"))
		testkit.Code(t, "the put", err, code)
	}
}

// A paused schedule has no next times. Times that pass until it is resumed are not missed.
func TestPauseAndResume(t *testing.T) {
	r := newRig(t)
	r.put(hourly("a", func(s *yardv1.Schedule) { s.Note = "first" }))
	made := r.nowMs()
	pause := func(note string) *yardv1.ScheduleInfo {
		return done[*yardv1.PauseScheduleResponse](r, r.Pause, &yardv1.PauseScheduleRequest{Name: "a", Note: note}).Schedule
	}
	resume := func(note string) *yardv1.ScheduleInfo {
		return done[*yardv1.ResumeScheduleResponse](r, r.Resume, &yardv1.ResumeScheduleRequest{Name: "a", Note: note}).Schedule
	}
	if info := pause("down"); !info.Schedule.Paused || info.Schedule.Note != "down" || len(info.NextMs) != 0 || info.Revision != 2 {
		t.Errorf("paused: %v", info)
	}
	r.now = r.now.Add(5 * time.Hour)
	if info := pause(""); info.Revision != 2 || info.Schedule.Note != "down" {
		t.Errorf("paused again: %v", info)
	}
	home, _ := r.home("a")
	testkit.Equal(t, "decided in the pause", home.DecidedUpToMs, made)
	if info := resume("up"); info.Schedule.Paused || info.Schedule.Note != "up" || len(info.NextMs) != 5 || info.Revision != 3 {
		t.Errorf("resumed: %v", info)
	}
	home, _ = r.home("a")
	testkit.Equal(t, "decided at the resume", home.DecidedUpToMs, r.nowMs())
	r.now = r.now.Add(time.Hour)
	resume("")
	home, _ = r.home("a")
	testkit.Equal(t, "decided after another resume", home.DecidedUpToMs, r.nowMs()-hour)
	refused(t, "none", testkit.Err(asked(r, r.Pause, &yardv1.PauseScheduleRequest{Name: "b"})), fault.NotFound, "/name")
	refused(t, "a bad name", testkit.Err(asked(r, r.Resume, &yardv1.ResumeScheduleRequest{Name: "b c"})), fault.InvalidArgument, "/name")
	refused(t, "a long note", testkit.Err(asked(r, r.Pause, &yardv1.PauseScheduleRequest{Name: "a", Note: strings.Repeat("x", 1025)})), fault.InvalidArgument, "/note")
}

// A deleted schedule is as none, and leaves a message that ends by itself. It may be made again, as a later one.
func TestDelete(t *testing.T) {
	r := newRig(t)
	remove := func() bool {
		return done[*yardv1.DeleteScheduleResponse](r, r.Delete, &yardv1.DeleteScheduleRequest{Name: "a"}).Deleted
	}
	testkit.Equal(t, "none was deleted", remove(), false)
	r.put(hourly("a"))
	any := func() string {
		name, err := r.Any(t.Context(), "shop")
		testkit.NoError(t, err)
		return name
	}
	testkit.Equal(t, "one of the domain", any(), "a")
	made, _ := r.home("a")
	testkit.Equal(t, "it was deleted", remove(), true)
	testkit.Equal(t, "it was deleted again", remove(), false)
	testkit.Equal(t, "one of the domain", any(), "")
	home, m := r.home("a")
	if !home.Deleted || home.Task != nil || m.Header.Get(jetstream.MsgTTLHeader) != "900" || m.Header.Get(jetstream.MsgRollup) == "" {
		t.Errorf("stored %v with %v", home, m.Header)
	}
	refused(t, "get", testkit.Err(asked(r, r.Get, &yardv1.GetScheduleRequest{Name: "a"})), fault.NotFound, "/name")
	refused(t, "trigger", testkit.Err(asked(r, r.Trigger, &yardv1.TriggerScheduleRequest{Name: "a"})), fault.NotFound, "/name")
	refused(t, "next", testkit.Err(asked(r, r.Next, &yardv1.NextScheduleRequest{Name: "a"})), fault.NotFound, "/name")
	if all := done[*yardv1.ListSchedulesResponse](r, r.List, &yardv1.ListSchedulesRequest{}).Schedules; len(all) != 0 {
		t.Errorf("listed %v", all)
	}
	req := hourly("a")
	req.Revision = -1
	info := r.put(req)
	if again, _ := r.home("a"); again.CreatedAtMs <= made.CreatedAtMs || again.Deleted || again.Task == nil || info.Revision <= made.Revision {
		t.Errorf("made again: %v", again)
	}
}
