package taskstate

import (
	"reflect"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

func changeAt(t *Task, u *Update, seq uint64, now int64) (Verdict, Effects) {
	return Apply(t, &Event{Kind: Changed, ID: t.ID, Domain: t.Domain, Update: u, Seq: seq}, now)
}

// TestAnUpdateOfTheTime: where a task goes that waits, by when it is to run.
func TestAnUpdateOfTheTime(t *testing.T) {
	backoff := func(t *Task) { grab(t, t0); failWith(t, "", 5_000) }
	for name, c := range map[string]struct {
		before  func(*Task)
		update  Update
		want    State
		due     int64
		trigger bool
	}{
		"ready, later":       {func(*Task) {}, Update{DueAt: t0 + 1000 + ParkAfterMS + 1}, Waiting, t0 + 1000 + ParkAfterMS + 1, false},
		"ready, soon":        {func(*Task) {}, Update{DueAt: t0 + 1000 + ParkAfterMS}, Backoff, t0 + 1000 + ParkAfterMS, false},
		"ready, over":        {func(*Task) {}, Update{DueAt: t0 + 999}, Ready, t0 + 999, true},
		"ready, now":         {func(*Task) {}, Update{Now: true}, Ready, 0, true},
		"ready, another":     {func(*Task) {}, Update{Priority: 1}, Ready, 0, true},
		"ready, delayed":     {func(*Task) {}, Update{DueAt: t0 + 1040, DelayMS: 50}, Backoff, t0 + 1050, false},
		"ready, the later":   {func(*Task) {}, Update{DueAt: t0 + 1060, DelayMS: 50}, Backoff, t0 + 1060, false},
		"backoff, now":       {backoff, Update{Now: true}, Ready, t0 + 1000, true},
		"backoff, over":      {backoff, Update{DueAt: t0 + 1000}, Ready, t0 + 1000, true},
		"backoff, soon":      {backoff, Update{DueAt: t0 + 1001}, Backoff, t0 + 1001, false},
		"backoff, later":     {backoff, Update{DueAt: t0 + 90_000}, Waiting, t0 + 90_000, false},
		"backoff, same time": {backoff, Update{Group: "acme"}, Backoff, t0 + 1 + 5_000, false},
	} {
		task := fresh()
		c.before(task)
		parkings := task.Parkings
		v, fx := changeAt(task, &c.update, 9, t0+1000)
		if v != (Verdict{Revision: 2}) || task.State != c.want || task.DueAt != c.due || fx.Trigger != c.trigger || fx.Park != (c.want == Waiting) {
			t.Errorf("%s: %+v, %s, due at %+d, effects %+v", name, v, task.State, task.DueAt-t0, fx)
		}
		if parked := task.Parkings - parkings; parked != 0 != (c.want == Waiting) || c.want == Ready && task.ReadyAt > t0+1000 || c.want == Backoff && task.ReadyAt != task.DueAt {
			t.Errorf("%s: %d parkings, ready at %+d", name, parked, task.ReadyAt-t0)
		}
	}
}

// TestAnUpdateByRevision: another revision changes nothing, and the verdict has it.
func TestAnUpdateByRevision(t *testing.T) {
	task := fresh()
	if v, _ := changeAt(task, &Update{IfRevision: 2, Priority: 1}, 5, t0); v.Code != fault.Stale || v.Revision != 1 || task.Priority == 1 || task.updates().Seq != 5 {
		t.Errorf("%+v, decided up to %d", v, task.updates().Seq)
	}
	for n := range uint64(6) {
		if v, _ := changeAt(task, &Update{IfRevision: n + 1, Priority: int32(n%5) + 1, Request: 100 + n}, 10+n, t0); v != (Verdict{Revision: n + 2}) {
			t.Errorf("update %d: %+v", n, v)
		}
	}
}

// TestAnOwnerMeetsAnUpdateInALaterState of the task: it does not decide it again, nor knows what was decided, but for the last one.
func TestAnOwnerMeetsAnUpdateInALaterState(t *testing.T) {
	for name, end := range map[string]bool{"it waits": false, "it has ended": true} {
		task := fresh()
		for n := range uint64(3) {
			changeAt(task, &Update{Priority: int32(n) + 1, Request: 100 + n}, 10+n, t0)
		}
		if end {
			Apply(task, &Event{Kind: Cancel, ID: task.ID}, t0)
		}
		for n, last := range map[uint64]bool{0: false, 1: false, 2: true} {
			v, _ := changeAt(task, &Update{Priority: int32(n) + 1, Request: 100 + n}, 10+n, t0)
			if last != (v == (Verdict{Revision: 4})) || last == (v.Code == fault.Unknown && v.Final) || task.Revision() != 4 || task.Priority != 3 || task.updates().Seq != 12 {
				t.Errorf("%s: update %d: %+v, revision %d, decided up to %d", name, n, v, task.Revision(), task.updates().Seq)
			}
		}
		if v, _ := changeAt(task, &Update{Request: 9}, 31, t0); end != (v.Code == fault.FailedPrecondition) {
			t.Errorf("%s: a new one: %+v", name, v)
		}
	}
}

// TestAnUpdateOfThePlaceInLine: triggers of before are STALE, attempts are counted without what was passed over, and a repeated outcome of the last
// one is known still.
func TestAnUpdateOfThePlaceInLine(t *testing.T) {
	task := under(func(p *Policy) { p.MaxDeliveries = 3 })
	outcome := &Event{Kind: Failed, ID: task.ID, Fence: task.Token(), DelayMS: 5}
	Apply(task, outcome, t0+1)
	old := task.Trigger()
	changeAt(task, &Update{Priority: 1}, 3, t0+2)
	changeAt(task, &Update{Group: "acme"}, 4, t0+2)
	changeAt(task, &Update{Group: "acme", HasPayload: true}, 5, t0+2)
	if v, _ := Apply(task, outcome, t0+3); v != (Verdict{}) {
		t.Errorf("the outcome of before: %+v", v)
	}
	fence := outcome.Fence
	fence.Version = old.Version
	if v, _ := Apply(task, &Event{Kind: Started, ID: task.ID, Fence: fence}, t0+10); v.Code != fault.Stale {
		t.Errorf("an old trigger: %+v", v)
	}
	if now := task.Trigger(); now.Version != old.Version+2 || task.Grants() != 1 {
		t.Errorf("version %d after %d, %d grants", now.Version, old.Version, task.Grants())
	}
	fence.Version = task.Version + 1
	if v, _ := Apply(task, &Event{Kind: Started, ID: task.ID, Fence: fence}, t0+10); !v.Granted || task.Grants() != 2 || task.Token() != fence || task.spent() {
		t.Errorf("the next grant: %+v, %d grants, token %+v", v, task.Grants(), task.Token())
	}
}

// TestAnUpdateOfWhatRuns: its deadline counts from now, no later than what it has in all, and the rest is refused.
func TestAnUpdateOfWhatRuns(t *testing.T) {
	for name, u := range map[string]*Update{
		"priority": {Priority: 1}, "time": {DueAt: t0}, "run now": {Now: true}, "start within": {StartWithinMS: 500}, "group": {Group: "acme"},
		"headers": {Headers: []Header{{"a", "b"}}}, "payload": {HasPayload: true}, "heartbeats": {Policy: &Policy{HeartbeatTimeoutMS: 500}},
	} {
		task := under(func(*Policy) {})
		if v, _ := changeAt(task, u, 3, t0+1); v.Code != fault.FailedPrecondition || v.Revision != 1 || task.Revision() != 1 || task.updates().Seq != 3 {
			t.Errorf("%s: %+v", name, v)
		}
	}
	task := under(func(*Policy) {})
	most, lost := task.Policy.MaxAttempts, task.Policy.OnLost
	if v, _ := changeAt(task, &Update{Policy: &Policy{StartToCloseMS: 700_000, MaxAttempts: 9}}, 3, t0+50); v != (Verdict{Revision: 2}) || task.Attempt.DeadlineAt != t0+700_050 {
		t.Errorf("%+v, until %+d", v, task.Attempt.DeadlineAt-t0)
	}
	if task.Policy.MaxAttempts != 9 || task.Policy.OnLost != lost || most == 9 {
		t.Errorf("its policy is %+v", task.Policy)
	}
	changeAt(task, &Update{FinishWithinMS: 1000}, 4, t0+100)
	if x := task.Expiry(); x.FinishBy != t0+1100 || task.Attempt.DeadlineAt != x.FinishBy {
		t.Errorf("it has %+v, until %+d", x, task.Attempt.DeadlineAt-t0)
	}
	if v, _ := Apply(task, &Event{Kind: Heartbeat, ID: task.ID, Fence: task.Token()}, t0+200); v.DeadlineAt != t0+1100 {
		t.Errorf("a heartbeat hears of %+d", v.DeadlineAt-t0)
	}
}

// TestMoreTimeForWhatRuns: an attempt that was to end with the time of its task goes on, when the task gets more, for as long as an attempt may.
func TestMoreTimeForWhatRuns(t *testing.T) {
	short := func() *Task {
		task := fresh()
		task.Extra = &Extra{Expiry: Expiry{FinishWithinMS: 1000, FinishBy: t0 + 1000}}
		p := *task.Policy
		p.StartToCloseMS = 60_000
		task.Policy = &p
		grab(task, t0)
		return task
	}
	for name, c := range map[string]struct {
		update Update
		want   int64
	}{
		"more than an attempt": {Update{FinishWithinMS: 300_000}, t0 + 60_000},
		"less than an attempt": {Update{FinishWithinMS: 30_000}, t0 + 30_900},
		"less than before":     {Update{FinishWithinMS: 50}, t0 + 950},
		"nothing of it":        {Update{Policy: &Policy{MaxAttempts: 3}}, t0 + 1000},
		"both":                 {Update{FinishWithinMS: 300_000, Policy: &Policy{StartToCloseMS: 90_000}}, t0 + 90_900},
	} {
		task := short()
		if task.Attempt.DeadlineAt != t0+1000 {
			t.Fatalf("it has until %+d", task.Attempt.DeadlineAt-t0)
		}
		if v, _ := changeAt(task, &c.update, 3, t0+900); v.Code != "" || task.Attempt.DeadlineAt != c.want {
			t.Errorf("%s: %+v, until %+d, not %+d", name, v, task.Attempt.DeadlineAt-t0, c.want-t0)
		}
	}
	// What an update gave to the attempt is not taken back by one that gives the task more time.
	task := short()
	changeAt(task, &Update{FinishWithinMS: 300_000, Policy: &Policy{StartToCloseMS: 90_000}}, 3, t0+900)
	changeAt(task, &Update{FinishWithinMS: 400_000}, 4, t0+950)
	if task.Attempt.DeadlineAt != t0+90_900 {
		t.Errorf("it has until %+d", task.Attempt.DeadlineAt-t0)
	}
}

// TestAnUpdateLeavesTheRest: what is not named stays, copies of the task as it was are not changed, and the times that it has begin again.
func TestAnUpdateLeavesTheRest(t *testing.T) {
	task := fresh()
	task.Payload = Blob{Data: []byte("old")}
	task.Policy.Rules = &Rules{NonRetryable: []string{"a"}, ByError: []ErrorRule{{ErrType: "b"}}}
	task.Extra = &Extra{Group: "g", Cost: 4, Headers: []Header{{"a", "1"}}, Expiry: Expiry{StartWithinMS: 100, FinishWithinMS: 300, StartBy: t0 + 100, FinishBy: t0 + 300}}
	before := *task
	changeAt(task, &Update{Headers: []Header{{"b", "2"}}, Policy: &Policy{Rules: &Rules{NonRetryable: []string{"c"}}}}, 3, t0+50)
	if before.Group() != "g" || before.HeaderList()[0].Name != "a" || before.Policy.Rules.NonRetryable[0] != "a" || before.Revision() != 1 {
		t.Errorf("the copy is changed: %+v", before.Extra)
	}
	if task.Group() != "g" || task.Cost() != 4 || string(task.Payload.Data) != "old" || task.Expiry() != before.Expiry() || task.HeaderList()[0].Name != "b" {
		t.Errorf("it has %+v", task.Extra)
	}
	if r := task.Policy.Rules; r.NonRetryable[0] != "c" || r.ByError[0].ErrType != "b" {
		t.Errorf("its rules are %+v", r)
	}
	changeAt(task, &Update{DueAt: t0 + 5_000}, 4, t0+60)
	if x := task.Expiry(); x.StartBy != t0+5_100 || x.FinishBy != t0+5_300 {
		t.Errorf("it has until %+d, %+d", x.StartBy-t0, x.FinishBy-t0)
	}
	if s := task.Steps[len(task.Steps)-1]; s.Kind != StepUpdated || s.Message != "run_at_ms" || s.DueAt != t0+5_000 {
		t.Errorf("its history says %+v", s)
	}
}

// TestASubmitReplacesWhatHasNotStarted: the task becomes that of the submit whole, but for its id, key and history. Once given to a worker, or where it
// is of another type or tasklist, it stays as it is.
func TestASubmitReplacesWhatHasNotStarted(t *testing.T) {
	keyed := func() *Task {
		task := fresh()
		task.Extra = &Extra{
			Headers: []Header{{"a", "b"}}, Group: "acme", Cost: 3, Expiry: Expiry{StartWithinMS: 5, StartBy: t0 + 5},
			Unique: &Unique{Key: "order-7", ForMS: 1, Seq: 4}, Order: &Order{Key: "account", Index: 3, Turn: true},
		}
		return task
	}
	whole := func(task *Task) *Whole {
		return &Whole{Type: task.Type, Cost: 2, UniqueForMS: 9, OrderBlocks: true, Trace: "trace"}
	}
	policy := Policy{MaxAttempts: 2, InitialIntervalMS: 7, Backoff: 1, MaxIntervalMS: 7, StartToCloseMS: 100}
	task := keyed()
	old := task.Trigger()
	u := &Update{Priority: 1, DueAt: t0 + 5_000, Policy: &policy, Payload: Blob{Data: []byte("2")}, HasPayload: true, FinishWithinMS: 60_000, Request: 5, Tasklist: task.Tasklist, Whole: whole(task)}
	if v, _ := changeAt(task, u, 3, t0+1); v != (Verdict{Revision: 2}) {
		t.Fatalf("%+v", v)
	}
	x := task.Extra
	if task.Priority != 1 || task.DueAt != t0+5_000 || *task.Policy != policy || string(task.Payload.Data) != "2" || task.Trace != "trace" || task.State != Waiting ||
		x.Headers != nil || x.Group != "" || x.Cost != 2 || x.Expiry != (Expiry{FinishWithinMS: 60_000, FinishBy: t0 + 65_000}) || *x.Unique != (Unique{Key: "order-7", ForMS: 9, Seq: 4}) || *x.Order != (Order{Key: "account", Index: 3, Turn: true, Blocks: true}) {
		t.Errorf("%+v, %+v, %+v", task, x, x.Unique)
	}
	if now := task.Trigger(); now.Version == old.Version {
		t.Error("the trigger of before is good still")
	}
	task.State = Ready // it has come back
	if v, fx := changeAt(task, &Update{Priority: 1, Now: true, Policy: &policy, Payload: Blob{Data: []byte("3")}, HasPayload: true, Tasklist: task.Tasklist, Whole: whole(task)}, 4, t0+2); v != (Verdict{Revision: 3}) ||
		task.State != Ready || !fx.Trigger || task.Extra.Expiry != (Expiry{}) {
		t.Errorf("at once: %+v, %+v, %+v", v, task, fx)
	}
	for name, c := range map[string]func(*Task, *Whole){
		"type":       func(_ *Task, w *Whole) { w.Type = "other" },
		"tasklist":   func(task *Task, _ *Whole) { task.Tasklist = "other" },
		"runs":       func(task *Task, _ *Whole) { grab(task, t0) },
		"has failed": func(task *Task, _ *Whole) { grab(task, t0); failWith(task, "", 5_000) },
		"has ended":  func(task *Task, _ *Whole) { Apply(task, &Event{Kind: Cancel, ID: task.ID}, t0) },
		"handed back": func(task *Task, _ *Whole) {
			grab(task, t0)
			Apply(task, &Event{Kind: Released, ID: task.ID, Fence: task.Token()}, t0)
		},
	} {
		task := keyed()
		w := whole(task)
		c(task, w)
		if v, _ := changeAt(task, &Update{Priority: 1, Now: true, Policy: &policy, HasPayload: true, Request: 6, Tasklist: "mail", Whole: w}, 9, t0+1); v.Code != fault.FailedPrecondition || task.Revision() != 1 || task.Group() != "acme" {
			t.Errorf("%s: %+v, revision %d", name, v, task.Revision())
		}
	}
}

// TestATaskThatIsReadyKeepsItsPlace when it is to run at once.
func TestATaskThatIsReadyKeepsItsPlace(t *testing.T) {
	for _, u := range []Update{{Now: true}, {DueAt: t0 + 5}} {
		task := fresh()
		changeAt(task, &u, 9, t0+1000)
		if task.State != Ready || task.ReadyAt != t0 {
			t.Errorf("%+v: %s since %+d", u, task.State, task.ReadyAt-t0)
		}
		if s := task.Steps[len(task.Steps)-1]; s.DueAt != 0 {
			t.Errorf("its history says that it is due at %+d", s.DueAt-t0)
		}
	}
}

// TestWhatAnUpdateGivesIsNotTakenBack: an attempt that was given more than its policy says, and was cut by the time of the task, is not cut further when the
// task gets more.
func TestWhatAnUpdateGivesIsNotTakenBack(t *testing.T) {
	task := fresh()
	task.Extra = &Extra{Expiry: Expiry{FinishWithinMS: 15_000, FinishBy: t0 + 15_000}}
	grab(task, t0)
	changeAt(task, &Update{Policy: &Policy{StartToCloseMS: 12_000}}, 3, t0+9_000)
	if changeAt(task, &Update{FinishWithinMS: 60_000}, 4, t0+9_500); task.Attempt.DeadlineAt != t0+15_000 {
		t.Errorf("it has until %+d", task.Attempt.DeadlineAt-t0)
	}
}

// TestEachFieldOfAnUpdate changes itself, alone, and is named in the history of the task.
func TestEachFieldOfAnUpdate(t *testing.T) {
	for named, c := range map[string]struct {
		update Update
		want   func(*Task) bool
	}{
		"priority":         {Update{Priority: 5}, func(t *Task) bool { return t.Priority == 5 }},
		"group":            {Update{Group: "g"}, func(t *Task) bool { return t.Group() == "g" }},
		"payload":          {Update{HasPayload: true, Payload: Blob{Data: []byte("new")}}, func(t *Task) bool { return string(t.Payload.Data) == "new" }},
		"start_within_ms":  {Update{StartWithinMS: 70}, func(t *Task) bool { return t.Expiry() == Expiry{70, 300, t0 + 120, t0 + 300} }},
		"finish_within_ms": {Update{FinishWithinMS: 70}, func(t *Task) bool { return t.Expiry() == Expiry{100, 70, t0 + 100, t0 + 120} }},
		"run_now":          {Update{Now: true}, func(t *Task) bool { return t.Expiry() == Expiry{100, 300, t0 + 150, t0 + 350} }},
	} {
		task := fresh()
		task.Extra = &Extra{Expiry: Expiry{100, 300, t0 + 100, t0 + 300}}
		if changeAt(task, &c.update, 3, t0+50); !c.want(task) {
			t.Errorf("%s: %+v, %+v", named, task, task.Extra)
		}
		if s := task.Steps[len(task.Steps)-1]; s.Message != named {
			t.Errorf("%s: its history says %q", named, s.Message)
		}
	}
}

// TestEachFieldOfAPolicy changes itself and no other.
func TestEachFieldOfAPolicy(t *testing.T) {
	before := Policy{
		MaxAttempts: 3, InitialIntervalMS: 1000, Backoff: 4, MaxIntervalMS: 60_000, StartToCloseMS: 10_000, HeartbeatTimeoutMS: 2_000, MaxDeliveries: 5,
		Jitter: JitterFull, OnLost: LostFails, OnTimeout: TimeoutFails, Rules: &Rules{NonRetryable: []string{"a"}, ByError: []ErrorRule{{ErrType: "b"}}},
	}
	later := &Rules{ByError: []ErrorRule{{ErrType: "c"}}}
	for set, named := range map[Policy]string{
		{MaxAttempts: 4}: "retry", {InitialIntervalMS: 4}: "retry", {Backoff: 2}: "retry", {MaxIntervalMS: 4}: "retry", {MaxDeliveries: 4}: "retry",
		{Jitter: JitterNone}: "retry", {OnLost: LostDies}: "retry", {OnTimeout: TimeoutDies}: "retry", {Rules: later}: "retry",
		{StartToCloseMS: 4}: "start_to_close_ms", {HeartbeatTimeoutMS: 4}: "heartbeat_timeout_ms",
		{StartToCloseMS: 4, HeartbeatTimeoutMS: 4, MaxAttempts: 4}: "start_to_close_ms, heartbeat_timeout_ms, retry", {MaxAttempts: 3}: "",
	} {
		task := fresh()
		was := before
		task.Policy = &was
		changeAt(task, &Update{Policy: &set}, 3, t0+50)
		got, want := *task.Policy, before
		over(&want, &set)
		if set.Rules != nil {
			if r := got.Rules; r.NonRetryable[0] != "a" || r.ByError[0].ErrType != "c" {
				t.Errorf("its rules are %+v", r)
			}
			got.Rules = want.Rules
		}
		if got != want || was != before {
			t.Errorf("%+v: %+v, want %+v", set, got, want)
		}
		if s := task.Steps[len(task.Steps)-1]; s.Message != named {
			t.Errorf("%+v: its history says %q", set, s.Message)
		}
	}
	task := fresh() // without rules so far
	if changeAt(task, &Update{Policy: &Policy{Rules: later}}, 3, t0+50); task.Policy.Rules != later {
		t.Errorf("its rules are %+v", task.Policy.Rules)
	}
}

// over sets in p what is set in the policy of an update, but for its rules.
func over(p, set *Policy) {
	to, from := reflect.ValueOf(p).Elem(), reflect.ValueOf(set).Elem()
	for i := range from.NumField() {
		if f := from.Field(i); !f.IsZero() && f.Kind() != reflect.Pointer {
			to.Field(i).Set(f)
		}
	}
}

// TestASubmitThatReplacesHasItsOwnTime, from when it is stored or due; the task has neither an order key nor an expiry before.
func TestASubmitThatReplacesHasItsOwnTime(t *testing.T) {
	for due, begin := range map[int64]int64{0: 50, 20: 50, 3_000: 3_050} {
		task := fresh()
		u := &Update{Priority: 1, Policy: task.Policy, HasPayload: true, StartWithinMS: 100, FinishWithinMS: 300, Tasklist: task.Tasklist, Whole: &Whole{Type: task.Type}}
		if due > 0 {
			u.DueAt = t0 + due
		}
		if due > 50 {
			u.DelayMS = due // from when the log took it
		}
		changeAt(task, u, 3, t0+50)
		if want := (Expiry{100, 300, t0 + begin + 100, t0 + begin + 300}); task.Expiry() != want || task.Order() != nil {
			t.Errorf("due at %d: %+v", due, task.Expiry())
		}
	}
}

// TestATaskThatIsFiredEarly waits on as its next stay, with what commands change before it is stored again.
func TestATaskThatIsFiredEarly(t *testing.T) {
	task := in(Ready)
	task.State, task.Parkings, task.DueAt, task.Position = None, 1, t0+100, ids.NewPosition(9, ids.LaneLater)
	steps := len(task.Steps)
	if fx := Load(task, t0+10); fx != (Effects{Park: true}) || task.State != Waiting || task.Parkings != 2 || len(task.Steps) != steps {
		t.Errorf("%+v, %s, %d", fx, task.State, task.Parkings)
	}
	e := &Event{Kind: Changed, ID: task.ID, Update: &Update{Now: true, Priority: 1}, Seq: 5}
	if v, fx := Apply(task, e, t0+10); v != (Verdict{Revision: 2}) || fx != (Effects{}) || task.State != Waiting || task.Priority != 1 || task.Version != 0 {
		t.Errorf("changed there: %+v, %s, version %d", v, task.State, task.Version)
	}
	if v, fx := Apply(task, &Event{Kind: Cancel, ID: task.ID, Message: "no"}, t0+20); v != (Verdict{}) || fx != (Effects{Finish: true}) || task.State != Cancelled || task.CancelReason != "no" {
		t.Errorf("cancelled there: %+v %+v %s", v, fx, task.State)
	}
	for name, change := range map[string]func(*Task){
		"fired as it was due": func(t *Task) { t.Position = ids.NewPosition(9, 3) },
		"a submit read late":  func(t *Task) { t.Parkings, t.DueAt = 0, t0 },
	} {
		runs := in(Ready)
		runs.Parkings, runs.DueAt, runs.Position = 1, t0+100, ids.NewPosition(9, ids.LaneLater)
		if change(runs); Load(runs, t0+10) != (Effects{Trigger: true}) {
			t.Errorf("%s: %s", name, runs.State)
		}
	}
}

// TestAnUpdateThatWaitsTakesMemory for each of its parts.
func TestAnUpdateThatWaitsTakesMemory(t *testing.T) {
	long := strings.Repeat("x", 100)
	if (*Update)(nil).Bytes() != 0 || new(Update).Bytes() != 0 {
		t.Error("nothing takes memory")
	}
	for name, u := range map[string]Update{
		"group": {Group: long}, "payload": {Payload: Blob{Data: []byte(long)}}, "a header": {Headers: []Header{{long[:50], long[:50]}}},
		"rules": {Policy: &Policy{Rules: &Rules{NonRetryable: []string{long}}}}, "a whole submit": {Tasklist: long[:40], Whole: &Whole{Type: long[:40], Trace: long[:20]}},
	} {
		if got := u.Bytes(); got < 100 || got > 140 {
			t.Errorf("%s: %d bytes", name, got)
		}
	}
}
