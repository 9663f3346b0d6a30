package taskstate

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// sent has the log take an update at a time, in which it is sent, by its frontend, since and alone until.
func sent(t *Task, at int64, u Update) Verdict {
	v, _ := Apply(t, &Event{Kind: Changed, ID: t.ID, Domain: t.Domain, Update: &u, At: at}, at)
	return v
}

// crowd has others update t, n of them, one each ms from a time on.
func crowd(t *testing.T, task *Task, n int, from int64) {
	t.Helper()
	for i := range n {
		at := from + int64(i)
		if v := sent(task, at, Update{Priority: 2, Request: uint64(1_000_000 + at), Since: at, SoleUntil: at + 1}); v.Code != "" {
			t.Fatalf("another update: %+v", v)
		}
	}
}

// TestACopyThatIsForgottenIsNotMade: of an update that was made, or refused, and of which others have made the task forget, a copy changes nothing, and its asker hears so.
// One that is not forgotten is recognised, and one that is younger than all that is forgotten is made.
func TestACopyThatIsForgottenIsNotMade(t *testing.T) {
	for name, c := range map[string]struct {
		others int
		since  int64 // from when it was made
		want   Verdict
	}{
		"recognised":             {requestsMost - 1, 0, Verdict{Revision: 2}},
		"forgotten":              {requestsMost, 0, untold(2 + requestsMost)},
		"forgotten, sent before": {requestsMost, -3000, untold(2 + requestsMost)},
		"forgotten for long":     {3 * requestsMost, 0, untold(2 + 3*requestsMost)},
		"no copy: it is younger": {requestsMost, 1, Verdict{Revision: 3 + requestsMost}},
	} {
		task := fresh()
		if v := sent(task, t0, Update{Priority: 1, Request: 7, Since: t0, SoleUntil: t0 + 500}); v.Code != "" {
			t.Fatalf("%+v", v)
		}
		crowd(t, task, c.others, t0+100)
		copied := Update{Priority: 1, Request: 7, Since: t0 + c.since}
		if v := sent(task, t0+2000, copied); v != c.want {
			t.Errorf("%s: %+v, not %+v", name, v, c.want)
		}
		if changed := task.Priority == 1; changed != (name == "no copy: it is younger") {
			t.Errorf("%s: it has the priority %d", name, task.Priority)
		}
		if v := sent(task, t0+2001, copied); v != c.want {
			t.Errorf("%s: once more: %+v, not %+v", name, v, c.want)
		}
	}
}

// TestTheFirstSendingIsMade, however many others were made just now, if the log takes it while it has no copy; and not behind that.
func TestTheFirstSendingIsMade(t *testing.T) {
	for at, want := range map[int64]fault.Code{t0 + 499: "", t0 + 500: fault.Unknown} {
		task := fresh()
		crowd(t, task, 2*requestsMost, t0)
		if v := sent(task, at, Update{Priority: 1, Request: 7, Since: t0 - 1500, SoleUntil: t0 + 500}); v.Code != want || v.Final != (want != "") {
			t.Errorf("at %+d: %+v", at-t0, v)
		}
	}
}

// TestAForgottenCopyOfATaskThatRunsOrHasEnded is not refused for that: it may have been made before.
func TestAForgottenCopyOfATaskThatRunsOrHasEnded(t *testing.T) {
	for name, then := range map[string]func(*Task){
		"runs":      func(task *Task) { grab(task, t0+1000) },
		"has ended": func(task *Task) { Apply(task, &Event{Kind: Cancel, ID: task.ID}, t0+1000) },
	} {
		task := fresh()
		u := Update{HasPayload: true, Request: 7, Since: t0}
		sent(task, t0, u)
		crowd(t, task, requestsMost, t0)
		then(task)
		if v := sent(task, t0+2000, u); v.Code != fault.Unknown || !v.Final {
			t.Errorf("%s: the copy: %+v", name, v)
		}
		u = Update{HasPayload: true, Request: 8, Since: t0 + 1900}
		if v := sent(task, t0+2001, u); v.Code != fault.FailedPrecondition {
			t.Errorf("%s: another: %+v", name, v)
		}
		if v := sent(task, t0+2002, Update{Request: uint64(1_000_000 + t0 + 5), Since: t0}); v.Code != "" || v.Revision != 2+6 {
			t.Errorf("%s: one that is recognised: %+v", name, v)
		}
	}
}

// TestAnUpdateIsMetAgainWhenItsTaskHasEnded, by an owner that takes over, and the task has forgotten it: it was alone in the log, and is not known all the same.
func TestAnUpdateIsMetAgainWhenItsTaskHasEnded(t *testing.T) {
	task := fresh()
	update := func(seq uint64) Verdict {
		v, _ := Apply(task, &Event{Kind: Changed, ID: task.ID, Domain: task.Domain, Update: &Update{Priority: 2, Request: seq, Since: t0, SoleUntil: t0 + 500}, Seq: seq, At: t0}, t0)
		return v
	}
	for seq := range uint64(requestsMost + 1) {
		if v := update(seq + 1); v.Code != "" {
			t.Fatalf("%+v", v)
		}
	}
	Apply(task, &Event{Kind: Cancel, ID: task.ID}, t0)
	for seq, want := range map[uint64]fault.Code{1: fault.Unknown, 2: "", requestsMost + 2: fault.FailedPrecondition} {
		if v := update(seq); v.Code != want {
			t.Errorf("update %d: %+v", seq, v)
		}
	}
}

// TestACopyOfWhatWasRefusedIsNotMade, also when that is forgotten, and the task would take it by now. While it would be refused, it is.
func TestACopyOfWhatWasRefusedIsNotMade(t *testing.T) {
	task := fresh()
	whole := &Whole{Type: task.Type, Tasklist: "other"}
	for i := range int64(requestsMost + 1) {
		if v := sent(task, t0+i, Update{IfRevision: 2, Priority: 2, Request: uint64(100 + i), Since: t0 + i}); v.Code != fault.Stale {
			t.Fatalf("%+v", v)
		}
	}
	if v := sent(task, t0+900, Update{Priority: 2, Request: 100, Since: t0, Whole: whole}); v.Code != fault.FailedPrecondition {
		t.Errorf("a copy that is refused by what the task is: %+v", v)
	}
	crowd(t, task, 1, t0+1000)
	if v := sent(task, t0+2000, Update{IfRevision: 2, Priority: 1, Request: 101, Since: t0 + 1}); v != untold(2) || task.Priority == 1 {
		t.Errorf("a copy of one that is forgotten: %+v", v)
	}
	if v := sent(task, t0+2001, Update{IfRevision: 2, Priority: 1, Request: 164, Since: t0 + 64}); v.Code != fault.FailedPrecondition {
		t.Errorf("a copy of one that is not: %+v", v)
	}
	if v := sent(task, t0+2002, Update{IfRevision: 2, Priority: 1, Request: 300, Since: t0 + 1500}); v != (Verdict{Revision: 3}) {
		t.Errorf("another: %+v", v)
	}
}

// TestRequestsOfAnOlderOwner: it has noted no times, and what it has forgotten may be anything up to the next update.
func TestRequestsOfAnOlderOwner(t *testing.T) {
	older := func() *Task {
		task := fresh()
		task.extra().Updates = &Updates{Applied: 9, Requests: Requests{Last: []Request{{9, 0}, {8, 0}, {7, 0}, {6, 0}}, ForgottenAt: ForgottenAnyTime}}
		return task
	}
	task := older()
	if v := sent(task, t0, Update{Priority: 1, Request: 5, Since: t0 - 1}); v != untold(10) {
		t.Errorf("one that may be forgotten: %+v", v)
	}
	if v := sent(task, t0, Update{Priority: 1, Request: 6, Since: t0 - 1}); v != (Verdict{Revision: 7}) {
		t.Errorf("one that is recognised: %+v", v)
	}
	crowd(t, task, requestsMost-4, t0+1000)
	if u := task.updates(); u.Requests.ForgottenAt != t0+1000 || u.Requests.Last[requestsMost-1] != (Request{6, t0 + 1000}) {
		t.Errorf("it has forgotten up to %d, and has %+v", u.Requests.ForgottenAt, u.Requests.Last)
	}
	if v := sent(task, t0+5000, Update{Priority: 1, Request: 5, Since: t0 + 1000}); v.Code != fault.Unknown {
		t.Errorf("one that may be forgotten: %+v", v)
	}
	if v := sent(task, t0+5000, Update{Priority: 1, Request: 4, Since: t0 + 1001}); v.Code != "" {
		t.Errorf("one that is younger: %+v", v)
	}
}

// TestAnEventThatSaysNotSinceWhen is decided as an owner of log version 10 does: it knows four, and makes what it does not know.
func TestAnEventThatSaysNotSinceWhen(t *testing.T) {
	task := fresh()
	crowd(t, task, 3*requestsMost, t0)
	last := uint64(1_000_000 + t0 + 3*requestsMost - 1)
	for n, again := range map[uint64]bool{last: true, last - 3: true, last - 4: false} {
		at := *task
		if v := sent(&at, t0+5000, Update{Priority: 1, Request: n}); v.Code != "" || (at.Revision() == task.Revision()) != again {
			t.Errorf("request %d: %+v, revision %d", last-n, v, at.Revision())
		}
	}
}

// TestCopiesOfATaskKeepTheirRequests: they share what no one changes.
func TestCopiesOfATaskKeepTheirRequests(t *testing.T) {
	task := fresh()
	crowd(t, task, 3, t0)
	before, one, other := *task, *task, *task
	sent(&one, t0+10, Update{Priority: 1, Request: 1, Since: t0 + 10})
	sent(&other, t0+11, Update{Priority: 1, Request: 2, Since: t0 + 11})
	for name, c := range map[string]struct {
		task *Task
		want uint64
	}{"one": {&one, 1}, "other": {&other, 2}, "before": {&before, uint64(1_000_000 + t0 + 2)}} {
		if got := c.task.updates().Requests.Last[0].Name; got != c.want {
			t.Errorf("%s has %d, not %d", name, got, c.want)
		}
	}
}

// TestRequestsTakeMemory, and a task without any takes none.
func TestRequestsTakeMemory(t *testing.T) {
	task := fresh()
	none, steps := task.Footprint(), cap(task.Steps)
	crowd(t, task, 2*requestsMost, t0)
	if more := task.Footprint() - none - 88*(cap(task.Steps)-steps) - int(task.stepsBytes); more < 16*requestsMost || more > 20*requestsMost {
		t.Errorf("%d bytes more", more)
	}
}
