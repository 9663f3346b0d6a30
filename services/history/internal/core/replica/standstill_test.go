package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// leased is a bench with a running task whose lease ends a minute after the start.
func leased(t *testing.T) *bench {
	b := newBench(t, Config{})
	b.submit(func(t *taskstate.Task) { t.Policy = &taskstate.Policy{MaxAttempts: 1, StartToCloseMS: 60_000} }, 1)
	b.start(1)
	b.silent = true
	return b
}

// at gives a tick at a time after the start.
func (b *bench) at(ms int64) *Effects {
	b.Helper()
	b.now.MS = scenarioStart + ms
	return b.step(Tick{})
}

// TestASilentLogIsAskedBeforeALeaseEnds, in time for the grace to be over then; not again until that is stored, and not
// by an owner that leaves.
func TestASilentLogIsAskedBeforeALeaseEnds(t *testing.T) {
	b := leased(t)
	asked := func(fx *Effects) bool { return fx.Append != nil && len(fx.Append) == 0 }
	if asked(b.at(60_000 - leaseNearMS - 1)) {
		t.Error("asked too early")
	}
	if !asked(b.at(60_000-leaseNearMS)) || b.r.Idle() {
		t.Error("not asked")
	}
	if fx := b.at(60_000 - leaseNearMS + quietMS); fx.Append != nil {
		t.Errorf("asked twice: %v", fx.Append)
	}
	b.step(Stored{Kind: JobAppend})
	b.step(Draining{})
	if fx := b.at(60_000); fx.Append != nil || !b.r.Idle() {
		t.Errorf("an owner that leaves appends %v", fx.Append)
	}
}

// TestAnExpiryIsHeldBackForAMinute at most: then its date has to do.
func TestAnExpiryIsHeldBackForAMinute(t *testing.T) {
	b := leased(t)
	b.at(60_000) // asks the log
	b.step(Stored{Kind: JobAppend})
	if fx := b.at(60_000 + heldBackMaxMS - 1); len(fx.Append) != 0 {
		t.Errorf("proposed %v", fx.Append)
	}
	b.step(Stored{Kind: JobAppend})
	b.r.wake.Set(b.r.tasks[id(1)], b.now.MS+1)
	fx := b.at(60_000 + heldBackMaxMS)
	if len(fx.Append) != 1 || fx.Append[0].NotAfter != b.now.MS+standsStillMS {
		t.Errorf("proposed %v", fx.Append)
	}
}

// TestEachStandstillIsSurvived: an attempt whose expiry was void once, and whose worker was heard since, is as new for the
// next standstill.
func TestEachStandstillIsSurvived(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(func(t *taskstate.Task) {
		t.Policy = &taskstate.Policy{MaxAttempts: 1, StartToCloseMS: 1 << 40, HeartbeatTimeoutMS: 60_000}
	}, 1)
	b.start(1)
	expiry := func(at int64) taskstate.Event {
		t.Helper()
		own := b.at(at).Append
		if len(own) != 1 || own[0].NotAfter != b.now.MS+standsStillMS {
			t.Fatalf("proposed %v", own)
		}
		b.step(Stored{Kind: JobAppend})
		p := own[0]
		return taskstate.Event{Kind: p.Kind, ID: p.ID, Fence: p.Fence, NotAfter: p.NotAfter}
	}
	read := func(at int64, ev taskstate.Event) {
		t.Helper()
		b.at(at)
		b.seq++
		b.step(&Events{Seq: b.seq, At: b.now.MS, Events: []taskstate.Event{ev}})
		if got := b.r.Get(id(1)); got.State != taskstate.Running {
			t.Fatalf("the task is %s", got.State)
		}
	}
	read(61_001, expiry(60_000))
	read(62_000, taskstate.Event{Kind: taskstate.Heartbeat, ID: id(1), Fence: b.r.tasks[id(1)].Token()})
	read(123_001, expiry(122_000))
}
