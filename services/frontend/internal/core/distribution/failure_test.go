package distribution

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

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

func TestABalancerOfNothingIsABug(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New(0) returned")
		}
	}()
	New(0)
}
