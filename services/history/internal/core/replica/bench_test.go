package replica

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

var benchPolicy = &taskstate.Policy{MaxAttempts: 5, StartToCloseMS: 60_000}

func benchConfig() Config {
	return Config{
		Shards: 4, WindowTasks: 1 << 20, WindowBytes: 1 << 40, CheckpointEveryMS: 500, PurgeEveryMS: 10_000,
		SnapshotBytes: 1 << 50, SnapshotEveryMS: 1 << 50,
	}
}

// benchSubmits is a message of n tasks.
func benchSubmits(seq uint64, n int, now Now) *Submits {
	in := &Submits{Lane: 3, Seq: seq, At: now.MS, Bytes: 300 * n}
	for i := range n {
		in.Tasks = append(in.Tasks, &Entry{Task: taskstate.Task{
			ID:     ids.NewTaskID(time.UnixMilli(now.MS), 0, seq<<16|uint64(i)),
			Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: benchPolicy,
		}})
	}
	return in
}

// readyTasks is a replica with n ready tasks.
func readyTasks(n int) (*Replica, Now) {
	r, now, fx := New(benchConfig(), begin(time.Hour)), Now{MS: scenarioStart}, new(Effects)
	r.Step(Recovered{}, now, fx)
	for seq := uint64(1); r.Len() < n; seq++ {
		r.Step(benchSubmits(seq, 1000, now), now, fx)
		r.Flush(now, fx)
		fx.Reset()
	}
	return r, now
}

// BenchmarkHungry is a hint about a tasklist with 120,000 ready tasks, which come a thousand in a
// second; each of them is triggered again every 2 s or so.
func BenchmarkHungry(b *testing.B) {
	r, now := readyTasks(120_000)
	fx := new(Effects)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		now.MS++
		r.Hungry("shop", "mail", nil, now, fx)
		r.Flush(now, fx)
		fx.Reset()
	}
}

// BenchmarkSnapshot is how long the loop stands still for a snapshot: the copy of a full window of one lane, and of six.
func BenchmarkSnapshot(b *testing.B) {
	for name, tasks := range map[string]int{"20,000": 20_000, "120,000": 120_000} {
		b.Run(name, func(b *testing.B) {
			r, now := readyTasks(tasks)
			for b.Loop() {
				step{r, now, new(Effects)}.snapshot()
			}
		})
	}
}

// BenchmarkTick is a tick with 120,000 ready tasks.
func BenchmarkTick(b *testing.B) {
	r, now := readyTasks(120_000)
	fx := new(Effects)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		now.MS += 250
		r.Step(Tick{}, now, fx)
		r.Flush(now, fx)
		fx.Reset()
	}
}

// BenchmarkStep is the life of a task: submitted, started, completed and archived, by the hundred.
func BenchmarkStep(b *testing.B) {
	r, now := readyTasks(0)
	fx, archived := new(Effects), uint64(0)
	b.ReportAllocs()
	b.ResetTimer()
	for n, seq := 0, uint64(1); n < b.N; n, seq = n+100, seq+3 {
		b.StopTimer()
		submits := benchSubmits(seq, 100, now)
		var events [2]*Events
		for k, kind := range []taskstate.Kind{taskstate.Started, taskstate.Succeeded} {
			events[k] = &Events{Seq: seq + 1 + uint64(k), At: now.MS, Bytes: 6000, ReplyTo: "asker", Events: make([]taskstate.Event, 100)}
			for i, e := range submits.Tasks {
				fence := ids.Token{Position: ids.NewPosition(seq, 3), Version: 1, Nonce: 7}
				events[k].Events[i] = taskstate.Event{Kind: kind, ID: e.ID, Fence: fence, Worker: taskstate.NewWorker("w", "", 0)}
			}
		}
		b.StartTimer()
		for _, in := range []Input{submits, events[0], events[1]} {
			now.MS++
			r.Step(in, now, fx)
			if r.Flush(now, fx); fx.Archive != nil {
				archived += uint64(len(fx.Archive))
				r.Step(Stored{Kind: JobArchive, Seq: archived}, now, fx)
			}
			fx.Reset()
		}
	}
}
