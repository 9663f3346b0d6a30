package doctor

import (
	"runtime"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// bytesPerTask is what a pass takes per task at most: one that is in the log or in the timer store takes the most.
const bytesPerTask = 140

// TestTheMemoryOfAPass holds what the package promises per task.
func TestTheMemoryOfAPass(t *testing.T) {
	testkit.Slow(t, "damages a system of its own in many ways")
	const n = 200_000
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for what, add := range map[string]func(p *pass, id ids.TaskID, i uint64){
		"finished": func(p *pass, id ids.TaskID, i uint64) { p.ended(id, i, time.Time{}, &logv1.Record{State: 1}) },
		"logged":   func(p *pass, id ids.TaskID, i uint64) { p.task(id, "shop").submit = submit{seq: i} },
	} {
		p := newPass(0, part{0, 1}, nil, n)
		before := heap()
		for i := range uint64(n) {
			add(p, ids.NewTaskID(time.UnixMilli(int64(i)), 0, i), i)
		}
		bytes := (heap() - before) / n
		t.Logf("%s: %d bytes per task", what, bytes)
		if bytes > bytesPerTask {
			t.Errorf("%s: %d bytes per task, promised are %d", what, bytes, bytesPerTask)
		}
		runtime.KeepAlive(p)
	}
}

// TestWhatIsNotThereEachTimeIsNoFinding: neither what was there once, nor what is there at another place.
func TestWhatIsNotThereEachTimeIsNoFinding(t *testing.T) {
	first := []Finding{{Code: TaskLost, Where: "a #1", Task: "x"}, {Code: TaskLost, Where: "a #2", Task: "y"}, {Code: Overdue, Where: "a #3", Task: "z"}}
	last := []Finding{{Code: TaskLost, Where: "a #1", Task: "x"}, {Code: TaskLost, Where: "a #9", Task: "y"}, {Code: TwoHomes, Where: "a #3", Task: "z"}}
	if both := inBoth(first, last); len(both) != 1 || both[0].Task != "x" {
		t.Errorf("it keeps %+v", both)
	}
}

// TestPartsCoverAll: each id is in one of the parts.
func TestPartsCoverAll(t *testing.T) {
	parts := []part{{0, 1}}
	for range 3 {
		parts = append(parts[1:], parts[0].halves()...)
	}
	for i := range uint64(1000) {
		n := 0
		for _, p := range parts {
			if p.has(ids.NewTaskID(time.UnixMilli(5), 0, i*0x9e3779b97f4a7c15)) {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("task %d is in %d of %v", i, n, parts)
		}
	}
}
