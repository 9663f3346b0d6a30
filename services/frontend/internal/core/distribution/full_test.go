package distribution

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestR43_FullPartitionsAreLeftOut: others get what is for a partition whose owner says that it has no
// room, or whose log has refused; when none is left, Pick says so at once.
func TestR43_FullPartitionsAreLeftOut(t *testing.T) {
	b := New(3)
	b.Report(0, 0, 0, t0)
	if p := pick(t, b, t0, 1, 0); p != 0 { // it would stay there
		t.Fatalf("began with %d", p)
	}
	b.ReportFull(0, true)
	b.Report(1, 5000, 0, t0)
	b.Refused(2, 0, t0)
	for tie := range uint64(5) {
		testkit.MustEqual(t, "a task went to the full partition", pick(t, b, t0, 100, tie), 1)
	}
	testkit.Equal(t, "are full", b.Full(t0), 2)
	b.ReportFull(1, true)
	if p, ok := b.Pick(t0, 1, 0); ok {
		t.Errorf("all are full, and %d was chosen", p)
	}
	testkit.Equal(t, "not all are full", b.Full(t0), 3)
	testkit.Equal(t, "was chosen when the log that refused may have room", pick(t, b, t0.Add(FullFor), 1, 0), 2)
	b.ReportFull(0, false)
	b.Refused(2, 0, t0.Add(FullFor))
	testkit.Equal(t, "was chosen when 0 had room again", pick(t, b, t0.Add(FullFor), 1, 0), 0)
	b.ReportFull(7, true) // a hint from an unknown process
}

// A partition that is set aside and full is not probed; one that is set aside is, though the others are full.
func TestR43_ProbesGoWhereThereIsRoom(t *testing.T) {
	b := New(2)
	b.Failed(0, 0, t0)
	b.ReportFull(0, true)
	later := t0.Add(time.Minute)
	testkit.Equal(t, "a full partition was probed", pick(t, b, later, 1, 0), 1)
	b.ReportFull(0, false)
	b.ReportFull(1, true)
	testkit.Equal(t, "no probe", pick(t, b, later, 1, 0), 0)
}

// A probe that the log refuses for want of room has found it well: the partition is in the choice again, as soon as it
// may have room, and what was meant for it is not counted as queued there.
func TestR43_ARefusedProbeEndsASetAside(t *testing.T) {
	b := New(2)
	b.Report(1, 500, 0, t0)
	b.Failed(0, 0, t0)
	now := t0.Add(SetAsideMin)
	testkit.MustEqual(t, "no probe", pick(t, b, now, 1000, 0), 0)
	b.Refused(0, 1000, now)
	testkit.MustEqual(t, "was chosen, which has refused", pick(t, b, now, 1, 0), 1)
	testkit.Equal(t, "was chosen when the one that refused, which is empty, may have room", pick(t, b, now.Add(FullFor), 1, 0), 0)
}

// Where the others are full, one that failed several probes is the way there, and is tried as soon as one that failed once.
func TestR43_NobodyIsLeftAloneForLongWhereTheOthersAreFull(t *testing.T) {
	b, now := New(2), t0
	b.Failed(0, 0, now)
	for range 3 { // failed probes
		now = now.Add(SetAsideMax)
		testkit.MustEqual(t, "no probe", pick(t, b, now, 1, 0), 0)
		b.Failed(0, 1, now)
	}
	b.ReportFull(1, true)
	if p, ok := b.Pick(now.Add(SetAsideMin), 1, 0); !ok || p != 0 {
		t.Errorf("chosen: %d, %v", p, ok)
	}
}
