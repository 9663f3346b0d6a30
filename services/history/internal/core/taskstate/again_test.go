package taskstate

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// sent has the log take an update at a time.
func sent(t *Task, at int64, u Update) Verdict {
	v, _ := Apply(t, &Event{Kind: Changed, ID: t.ID, Domain: t.Domain, Update: &u, At: at}, at)
	return v
}

// another has somebody else update t at a time.
func another(t *testing.T, task *Task, at int64) {
	t.Helper()
	if v := sent(task, at, Update{Priority: 2, Request: uint64(at), Since: at, SoleUntil: at + 1}); v.Code != "" {
		t.Fatalf("another update: %+v", v)
	}
}

// mayBeCopy tells whether v is the verdict on an update that may be a copy, and for good.
func mayBeCopy(v Verdict) bool { return v.Code == fault.Unknown && v.Final }

// TestARepeatOfTheLastUpdate gets the same verdict; a copy that may have been decided before the last one changes nothing; one that is certainly younger
// is applied.
func TestARepeatOfTheLastUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		others  []int64 // after it
		since   int64
		again   bool
		applied bool
	}{
		"the last one":              {nil, 0, true, false},
		"not the last one":          {[]int64{100}, 0, false, false},
		"many others":               {[]int64{100, 101, 102, 103}, 0, false, false},
		"sent when another came":    {[]int64{100}, 100, false, false},
		"sent after all the others": {[]int64{100, 101}, 102, false, true},
	} {
		task := fresh()
		sent(task, t0, Update{Priority: 1, Request: 7, Since: t0, SoleUntil: t0 + 500})
		for _, at := range c.others {
			another(t, task, t0+at)
		}
		revision := task.Revision()
		v := sent(task, t0+2000, Update{Priority: 1, Request: 7, Since: t0 + c.since})
		if again := v == (Verdict{Revision: 2}); again != c.again || mayBeCopy(v) != (!c.again && !c.applied) || (task.Revision() != revision) != c.applied {
			t.Errorf("%s: %+v, revision %d after %d", name, v, task.Revision(), revision)
		}
	}
}

// TestTheFirstSendingIsDecided while it has no copy, whatever was decided just now; later it may be its own copy.
func TestTheFirstSendingIsDecided(t *testing.T) {
	for at, certain := range map[int64]bool{t0 + 499: true, t0 + 500: false} {
		task := fresh()
		another(t, task, t0)
		v := sent(task, at, Update{Priority: 1, Request: 7, Since: t0 - 1500, SoleUntil: t0 + 500})
		if certain != (v == (Verdict{Revision: 3})) || certain == mayBeCopy(v) {
			t.Errorf("at %+d: %+v", at-t0, v)
		}
	}
}

// TestACopyOfAnUpdateThatWasRefused is refused while that is the last one, and changes nothing afterwards, though the task would take it by now.
func TestACopyOfAnUpdateThatWasRefused(t *testing.T) {
	for name, u := range map[string]Update{
		"of what runs":       {HasPayload: true, Request: 7, Since: t0, SoleUntil: t0 + 500},
		"for a revision":     {IfRevision: 2, Priority: 1, Request: 7, Since: t0, SoleUntil: t0 + 500},
		"of another type":    {Request: 7, Since: t0, SoleUntil: t0 + 500, Whole: &Whole{Type: "other"}},
		"of another, and if": {IfRevision: 1, Request: 7, Since: t0, SoleUntil: t0 + 500, Whole: &Whole{Type: "other"}},
	} {
		task := fresh()
		if name == "of what runs" {
			grab(task, t0)
		}
		first := sent(task, t0, u)
		if first.Code != fault.FailedPrecondition && first.Code != fault.Stale {
			t.Errorf("%s: %+v", name, first)
		}
		if task.State == Running {
			failWith(task, "", 1)
		}
		u.SoleUntil = 0
		if v := sent(task, t0+1000, u); v.Code != first.Code || v.Revision != 1 {
			t.Errorf("%s: a copy: %+v", name, v)
		}
		another(t, task, t0+1500)
		if v := sent(task, t0+2000, u); !mayBeCopy(v) || task.Revision() != 2 {
			t.Errorf("%s: a copy, after another: %+v, revision %d", name, v, task.Revision())
		}
	}
}

// TestACopyOfAnUpdateFromBeforeARedrive was refused perhaps, since the task was dead; one that is younger than the redrive is applied.
func TestACopyOfAnUpdateFromBeforeARedrive(t *testing.T) {
	for since, copied := range map[int64]bool{t0 - 1: true, t0: true, t0 + 1: false} {
		task := deadTask()
		Bring(task, redriveOf(1), t0)
		was := task.Revision()
		v := sent(task, t0+2000, Update{Priority: 1, Request: 7, Since: since})
		if mayBeCopy(v) != copied || (v.Code == "") == copied || (task.Revision() == was) != copied {
			t.Errorf("since %+d: %+v, revision %d", since-t0, v, task.Revision())
		}
	}
}

// TestACopyOfAnUpdateOfATaskThatHasEnded, or runs, is not refused for that: it may have been applied.
func TestACopyOfAnUpdateOfATaskThatHasEnded(t *testing.T) {
	for name, then := range map[string]func(*Task){
		"runs":      func(task *Task) { grab(task, t0+1000) },
		"has ended": func(task *Task) { Apply(task, &Event{Kind: Cancel, ID: task.ID}, t0+1000) },
	} {
		task := fresh()
		u := Update{HasPayload: true, Request: 7, Since: t0}
		sent(task, t0, u)
		then(task)
		if v := sent(task, t0+2000, u); v != (Verdict{Revision: 2}) {
			t.Errorf("%s: the last one: %+v", name, v)
		}
		if v := sent(task, t0+2001, Update{HasPayload: true, Request: 6, Since: t0}); !mayBeCopy(v) {
			t.Errorf("%s: one before: %+v", name, v)
		}
		if v := sent(task, t0+2002, Update{HasPayload: true, Request: 8, Since: t0 + 1900}); v.Code != fault.FailedPrecondition {
			t.Errorf("%s: a new one: %+v", name, v)
		}
	}
}

// TestTheLogsClockIsSetBack: an update that was decided before that is no younger than the last one.
func TestTheLogsClockIsSetBack(t *testing.T) {
	task := fresh()
	sent(task, t0+9000, Update{Priority: 1, Request: 7, Since: t0 + 9000})
	another(t, task, t0)
	if v := sent(task, t0+100, Update{Priority: 1, Request: 7, Since: t0 + 9000}); !mayBeCopy(v) {
		t.Errorf("%+v", v)
	}
}

// TestNoCopyIsAppliedOverALaterUpdate: clients send updates at random times; the log takes the first sending, and any copies, when it likes; owners take over and
// read it again. Each update is applied once at most, none is applied once it was refused, what was confirmed holds until the next one, and the
// first sending is decided if the log takes it in time.
func TestNoCopyIsAppliedOverALaterUpdate(t *testing.T) {
	const alone = 500
	rapid.Check(t, func(t *rapid.T) {
		var log []Event
		for n := range rapid.IntRange(1, 12).Draw(t, "updates") {
			asked := t0 + rapid.Int64Range(0, 5_000).Draw(t, "asked")
			u := Update{Priority: int32(n%5) + 1, Request: uint64(n + 1), Since: asked, IfRevision: rapid.SampledFrom([]uint64{0, 0, 0, 1, 2, 3}).Draw(t, "if revision")}
			take := func(u Update, at int64) {
				log = append(log, Event{Kind: Changed, ID: fresh().ID, Domain: fresh().Domain, Update: &u, At: at})
			}
			first := u
			first.SoleUntil = asked + alone
			take(first, asked+rapid.Int64Range(0, 3*alone).Draw(t, "first taken after"))
			for range rapid.IntRange(0, 3).Draw(t, "copies") {
				take(u, asked+alone+rapid.Int64Range(0, 5_000).Draw(t, "copy taken after"))
			}
		}
		slices.SortStableFunc(log, func(a, b Event) int { return int(a.At - b.At) })
		task, last := fresh(), uint64(0)
		applied, refused := map[uint64]uint64{}, map[uint64]bool{}
		for i := range log {
			e := &log[i]
			e.Seq = uint64(i + 1)
			before := task.Revision()
			v, _ := Apply(task, e, e.At)
			n := e.Update.Request
			switch {
			case task.Revision() > before:
				if applied[n] > 0 || refused[n] || v.Code != "" {
					t.Fatalf("update %d: %+v, it made revision %d, refused %v", n, v, applied[n], refused[n])
				}
				applied[n], last = task.Revision(), n
			case v.Code == "" && v.Revision != applied[n]:
				t.Fatalf("update %d: %+v, it made revision %d", n, v, applied[n])
			case v.Code == fault.Unknown && (e.At < e.Update.SoleUntil || !v.Final):
				t.Fatalf("update %d is not decided: %+v", n, v)
			case v.Code == fault.Stale, v.Code == fault.FailedPrecondition:
				if applied[n] > 0 {
					t.Fatalf("update %d: %+v, it made revision %d", n, v, applied[n])
				}
				refused[n] = true
			}
			if from := rapid.IntRange(0, i).Draw(t, "read again from"); i%4 == 0 {
				was := *task
				for k := from; k <= i; k++ {
					Apply(task, &log[k], e.At)
				}
				if task.Revision() != was.Revision() || task.Priority != was.Priority || task.updates().Seq != was.updates().Seq {
					t.Fatalf("read again from %d to %d: revision %d after %d", from, i, task.Revision(), was.Revision())
				}
			}
			if last > 0 && task.Priority != int32((last-1)%5)+1 {
				t.Fatalf("the last update is %d, and the priority %d", last, task.Priority)
			}
		}
	})
}
