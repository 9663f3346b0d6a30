package distribution

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Where everything is set aside, a partition that failed its probes is tried as
// soon as one that failed once.
func TestNobodyIsLeftAloneForLongWhereAllFail(t *testing.T) {
	b := New(2)
	now := t0
	b.Failed(0, 0, now)
	for range 3 { // failed probes: four times the first wait
		now = now.Add(SetAsideMax)
		testkit.MustEqual(t, "no probe", pick(t, b, now, 1, 0), 0)
		b.Failed(0, 1, now)
	}
	testkit.MustEqual(t, "a partition was not left alone for longer each time", pick(t, b, now.Add(SetAsideMin), 1, 0), 1)
	b.Failed(1, 1, now)
	testkit.MustEqual(t, "got", pick(t, b, now.Add(SetAsideMin), 1, 0), 0)
	if _, ok := b.Pick(now.Add(SetAsideMin-time.Nanosecond), 1, 0); ok {
		t.Fatal("a partition was chosen early")
	}
}

func TestReportsOfUnknownProcessesAreIgnored(t *testing.T) {
	b := New(2)
	b.Report(0, 10_000, 0, t0)
	for _, report := range []struct {
		p               int
		active, batches int64
	}{{-1, 1, 1}, {2, 1, 1}, {0, -1, 1}, {0, 1, -1}} {
		b.Report(report.p, report.active, report.batches, t0)
		if p := pick(t, b, t0, 1, 0); p != 1 {
			t.Fatalf("after the report %+v: got %d", report, p)
		}
	}
	b.Report(1, 0, 120, t0) // the smallest values that count are 0
	testkit.MustEqual(t, "got where 12,000 are queued", pick(t, b, t0, 1, 0), 0)
	b.Report(1, 8_000, 0, t0)
	testkit.MustEqual(t, "got where 10,001 are queued", pick(t, b, t0, 1, 0), 1)
}

func TestWhatWasNotSentDoesNotCountAsQueued(t *testing.T) {
	for name, giveBack := range map[string]func(b *Balancer){
		"failed":   func(b *Balancer) { b.Failed(0, 1000, t0); b.Stored(0) },
		"returned": func(b *Balancer) { b.Returned(0, 1000) },
	} {
		b := New(2)
		if p := pick(t, b, t0, 1000, 0); p != 0 {
			t.Fatalf("%s: got %d first", name, p)
		}
		giveBack(b)
		b.Report(1, StayTasks+1, 0, t0)
		if p := pick(t, b, t0, 1, 1); p != 0 {
			t.Errorf("%s: got %d, with nothing queued at 0", name, p)
		}
	}
}

// A failure of what was sent before the partition was set aside says nothing
// new: the wait neither starts again nor doubles.
func TestLateFailuresOfAnOutageDoNotProlongIt(t *testing.T) {
	b := New(2)
	b.Failed(0, 0, t0)
	b.Failed(0, 0, t0.Add(SetAsideMin/2))
	testkit.MustEqual(t, "no probe", pick(t, b, t0.Add(SetAsideMin), 1, 0), 0)
}

func TestTheWaitIsBounded(t *testing.T) {
	b := New(2)
	now := t0
	b.Failed(0, 0, now)
	for range 8 {
		now = now.Add(SetAsideMax)
		if p := pick(t, b, now, 1, 0); p != 0 {
			t.Fatalf("no probe after %v", SetAsideMax)
		}
		b.Failed(0, 1, now)
	}
	testkit.MustEqual(t, "the wait is shorter than its bound", pick(t, b, now.Add(SetAsideMax-1), 1, 0), 1)
	if SetAsideMin != time.Second || SetAsideMax != 30*time.Second {
		t.Errorf("left alone for %v to %v", SetAsideMin, SetAsideMax)
	}
}

// A probe that was not sent is free for another request.
func TestAReturnedProbeIsTriedAgain(t *testing.T) {
	b := New(1)
	b.Failed(0, 0, t0)
	now := t0.Add(SetAsideMin)
	if p := pick(t, b, now, 5, 0); p != 0 || !b.Healthy(0) {
		t.Fatal("no probe")
	}
	if _, ok := b.Pick(now, 5, 0); ok {
		t.Fatal("a second probe at the same time")
	}
	b.Returned(0, 5)
	testkit.MustEqual(t, "no second probe", pick(t, b, now, 5, 0), 0)
}

func TestABalancerOfNothingIsABug(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New(0) returned")
		}
	}()
	New(0)
}
