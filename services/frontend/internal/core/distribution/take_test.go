package distribution

import (
	"testing"
	"time"
)

// TestTakeProbesItsPartitionSoon: who may go to one partition only finds out that it is well again, though others are well; one at a time.
func TestTakeProbesItsPartitionSoon(t *testing.T) {
	b := New(2)
	if !b.Take(0, t0, 7) || b.partitions[0].sent != 7 {
		t.Fatalf("%+v", b.partitions[0])
	}
	for range 4 { // it is set aside for long
		b.Failed(0, 1, t0)
		b.partitions[0].probing = true
	}
	b.Returned(0, 0)
	if b.Take(0, t0.Add(SetAsideMin-1), 1) {
		t.Error("taken while it is set aside")
	}
	at := t0.Add(SetAsideMin)
	if !b.Take(0, at, 1) {
		t.Fatal("no probe")
	}
	if b.Take(0, at, 1) {
		t.Error("two probes at a time")
	}
	if b.Stored(0); !b.Take(0, at, 1) || !b.HasRoom(0, at) {
		t.Error("it is well again")
	}
	b.ReportFull(0, true)
	if b.Take(0, at.Add(time.Hour), 1) || b.HasRoom(0, at) {
		t.Error("taken, and it is full")
	}
}
