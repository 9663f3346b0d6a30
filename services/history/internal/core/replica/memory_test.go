package replica

import (
	"runtime"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// heap is what the heap holds, in MB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// TestFailuresOfLongStandingAreBounded: 400 tasks fail 300 times each, and each time with
// another message of 4 KB.
func TestFailuresOfLongStandingAreBounded(t *testing.T) {
	testkit.Slow(t, "reads tens of thousands of tasks")
	r, now := readyTasks(0)
	fx := new(Effects)
	before := heap()
	submits := benchSubmits(1, 400, now)
	for _, e := range submits.Tasks {
		e.Policy = &taskstate.Policy{MaxAttempts: 1000, StartToCloseMS: 60_000, InitialIntervalMS: 1, Backoff: 1, MaxIntervalMS: 1}
	}
	r.Step(submits, now, fx)
	text := strings.Repeat("what happened. ", 1000)
	for n := range uint32(600) {
		now.MS += 5
		in := &Events{Seq: uint64(n) + 2, At: now.MS, Bytes: 100, ReplyTo: "asker"}
		for i, e := range submits.Tasks {
			fence := ids.Token{Position: ids.NewPosition(1, 3), Version: n/2 + 1, Nonce: 1}
			ev := taskstate.Event{Kind: taskstate.Started, ID: e.ID, Fence: fence, Worker: taskstate.NewWorker("w", "", 0)}
			if n%2 == 1 {
				ev.Kind, ev.Message = taskstate.Failed, strings.Clone(text[i+int(n):][:4<<10])
			}
			in.Events = append(in.Events, ev)
		}
		r.Step(in, now, fx)
		r.Flush(now, fx)
		fx.Reset()
	}
	testkit.MustEqual(t, "failed times", submits.Tasks[0].Failures, 300)
	if grown := heap() - before; grown > 50 {
		t.Errorf("%.0f MB", grown)
	}
	runtime.KeepAlive(r)
}

// TestATakeoverHoldsWhatIsActive: of the tasks behind the snapshot that the archive has, only the
// latest are kept.
func TestATakeoverHoldsWhatIsActive(t *testing.T) {
	testkit.Slow(t, "reads tens of thousands of tasks")
	const messages, each = 1500, 100
	start, now, fx := begin(1<<50), Now{MS: scenarioStart}, new(Effects)
	start.Archived = Ends{}
	for seq := uint64(1); seq < 3*messages; seq += 3 {
		for _, e := range benchSubmits(seq, each, now).Tasks {
			start.Archived.Add(Stay{ID: e.ID})
		}
	}
	r := New(benchConfig(), start)
	before := heap()
	for seq := uint64(1); seq < 3*messages; seq += 3 {
		submits := benchSubmits(seq, each, now)
		r.Step(submits, now, fx)
		for k, kind := range []taskstate.Kind{taskstate.Started, taskstate.Succeeded} {
			in := &Events{Seq: seq + 1 + uint64(k), At: now.MS}
			for _, e := range submits.Tasks {
				if seq > 1 || e.Index > 0 { // the first one is unfinished
					in.Events = append(in.Events, taskstate.Event{Kind: kind, ID: e.ID, Fence: ids.Token{Position: ids.NewPosition(seq, 3), Version: 1, Nonce: 7}})
				}
			}
			r.Step(in, now, fx)
		}
	}
	testkit.Equal(t, "tasks are in memory", r.Len(), 1)
	if grown := heap() - before; grown > 40 {
		t.Errorf("%.0f MB", grown)
	}
	testkit.Check(t, r.Check())
	r.Step(Recovered{}, now, fx)
	if r.Flush(now, fx); len(fx.Archive) != 0 || len(fx.Triggers) != 1 || r.Len() != 1 {
		t.Errorf("%d to be archived, %d groups of triggers, %d tasks", len(fx.Archive), len(fx.Triggers), r.Len())
	}
	runtime.KeepAlive(r)
}
