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
				r.snapshot(now)
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

// BenchmarkFindOldest is one look for the oldest of 20,000 ready tasks, a window of one lane.
func BenchmarkFindOldest(b *testing.B) {
	r, now := readyTasks(20_000)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		now.Mono += time.Hour
		r.findOldest(now)
	}
}

// BenchmarkStep is the life of a task: submitted, started, completed and archived, by the hundred.
func BenchmarkStep(b *testing.B) { benchStep(b, func(*Events, uint64) {}) }

// BenchmarkStepDelivered is the same with grabs that say which batches have been delivered.
func BenchmarkStepDelivered(b *testing.B) {
	benchStep(b, func(in *Events, n uint64) {
		in.Shard, in.Epoch, in.RequestID, in.Delivered = 1, 1, n, max(n, 5)-5
		in.Polls = []Poll{{Worker: taskstate.NewWorker("w", ""), ReplyTo: "inbox"}}
		for i := range in.Events {
			in.Events[i].Poll = 1
		}
	})
}

// BenchmarkStepSpread is the same with a tasklist of eight partitions, at four shards.
func BenchmarkStepSpread(b *testing.B) {
	benchStep(b, func(*Events, uint64) {}, func(cfg *Config) { cfg.Partitions = func(string, string) int { return 8 } })
}

// benchStep is a benchmark of lives; grab changes the message of the n-th hundred's grabs.
func benchStep(b *testing.B, grab func(in *Events, n uint64), change ...func(*Config)) {
	r, now := readyTasks(0)
	for _, c := range change {
		c(&r.cfg)
	}
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
				events[k].Events[i] = taskstate.Event{Kind: kind, ID: e.ID, Fence: fence, Worker: taskstate.NewWorker("w", "")}
			}
		}
		grab(events[0], seq/3+1)
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

// BenchmarkRunning is the question which attempts of a type run, of a domain that has none, beside 120,000 tasks
// of another one.
func BenchmarkRunning(b *testing.B) {
	r, _ := readyTasks(120_000)
	q := BookingsQuery{Shard: r.order[0].shard, Domain: "bank", Types: []string{"send"}, BytesMax: 512 << 10}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if page := r.Bookings(q); len(page.Groups) != 0 {
			b.Fatal("it has some")
		}
	}
}

// BenchmarkBookings is a page of 40,000 attempts that hold slots, beside 80,000 tasks that are ready.
func BenchmarkBookings(b *testing.B) { benchBookings(b, 1) }

// BenchmarkBookingsOfOneShard is the same where four shards hold the slots, one of which is asked for.
func BenchmarkBookingsOfOneShard(b *testing.B) { benchBookings(b, 4) }

// benchBookings asks for the bookings of the last shard of those that hold some.
func benchBookings(b *testing.B, shards int) {
	r, now := readyTasks(120_000)
	fx, n := new(Effects), 0
	limits := taskstate.NewPath("type/send")
	l := r.order[0]
	asked := (l.shard + shards - 1) % r.cfg.Shards
	for shard := range shards {
		in := &Events{At: now.MS, Seq: 1_000_000 + uint64(shard), Shard: uint32((l.shard+shard)%r.cfg.Shards) + 1}
		e := l.sent.first
		for n = 0; n < 40_000/shards; e, n = e.after, n+1 {
			fence := ids.Token{Position: e.Position, Version: 1, Nonce: 7}
			in.Events = append(in.Events, taskstate.Event{Kind: taskstate.Started, ID: e.ID, Fence: fence, Limits: limits})
		}
		r.Step(in, now, fx)
	}
	r.Flush(now, fx)
	q := BookingsQuery{Shard: asked, BytesMax: 512 << 10}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if page := r.Bookings(q); len(page.Groups) != 1 || page.Last.IsZero() != (shards > 1) {
			b.Fatal("not a full page, or more than that")
		}
	}
}
