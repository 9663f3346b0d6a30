package window

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestSpanAndHalf: the span is what a takeover reads again; below half of it lies half of
// its tasks or of its bytes, whichever comes first.
func TestSpanAndHalf(t *testing.T) {
	lane := NewLane(0)
	if tasks, bytes := lane.Span(); tasks+bytes != 0 || lane.Half() != 1 {
		t.Errorf("an empty lane spans %d tasks, half at %d", tasks, lane.Half())
	}
	for seq := uint64(10); seq <= 40; seq += 10 {
		lane.Read(seq, 2, 100, seq, "")
	}
	lane.Read(45, 0, 100, 45, "")
	if tasks, bytes := lane.Span(); tasks != 8 || bytes != 400 {
		t.Errorf("it spans %d tasks, %d bytes", tasks, bytes)
	}
	testkit.Equal(t, "half by tasks is at", lane.Half(), 30)
	lane.Read(50, 1, 10_000, 50, "")
	testkit.Equal(t, "with one large message, half is at", lane.Half(), 40)
	lane.Done(10)
	lane.Done(20)
	lane.Done(20)
	if tasks, _ := lane.Span(); tasks != 9 {
		t.Errorf("what is done behind an open message counts: %d", tasks)
	}
	lane.Done(10)
	if tasks, bytes := lane.Span(); tasks != 5 || bytes != 10_200 {
		t.Errorf("it spans %d tasks, %d bytes", tasks, bytes)
	}
	if f, ok := lane.FloorOf(30); !ok || f != 30 {
		t.Errorf("floor %d %v", f, ok)
	}
	if _, ok := lane.FloorOf(31); ok {
		t.Error("31 is no message")
	}
	lane.Skip(45)
	if lane.ReadLevel() != 50 {
		t.Error("Skip went back")
	}
	lane.Skip(60)
	if lane.ReadLevel() != 60 || lane.AckLevel() != 29 {
		t.Errorf("read %d, ack %d", lane.ReadLevel(), lane.AckLevel())
	}
}

// TestHalfIsReachedExactly: by tasks or by bytes alone, the message behind just half of them.
func TestHalfIsReachedExactly(t *testing.T) {
	for what, messages := range map[string][3]message{
		"tasks": {{tasks: 2, bytes: 10}, {tasks: 1, bytes: 45}, {tasks: 1, bytes: 45}},
		"bytes": {{tasks: 1, bytes: 50}, {tasks: 2, bytes: 25}, {tasks: 2, bytes: 25}},
	} {
		lane := NewLane(0)
		for i, m := range messages {
			lane.Read(uint64(i+1), m.tasks, m.bytes, 0, "")
		}
		if got := lane.Half(); got != 2 {
			t.Errorf("half by %s is at %d", what, got)
		}
	}
}

func TestReadBackwardsPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	lane := NewLane(5)
	lane.Read(5, 1, 1, 0, "")
}
