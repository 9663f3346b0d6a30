package due

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// BenchmarkFarTasks is a takeover with ten million tasks that wait for 30 days, in messages of one bucket: how long the index takes, and how many bytes a
// task, how long a lookup takes, and a bucket that comes near.
func BenchmarkFarTasks(b *testing.B) {
	const tasks, days, perMessage = 10_000_000, 30, 10
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		random := rand.New(rand.NewPCG(1, 2))
		before := heap()
		table := New(farConfig(1_000_000))
		table.Resume(Cursor{}, 1, 0)
		began := time.Now()
		var near []Message
		m := Message{}
		for seq := range tasks / perMessage {
			m.Seq, m.Bucket, m.Tasks = uint64(seq+1), random.Int64N(days*24*60), m.Tasks[:0]
			for range perMessage {
				id := testID(int(m.Seq)*perMessage + len(m.Tasks))
				m.Tasks = append(m.Tasks, Task{ID: id, DueMS: m.Bucket*testMinute + random.Int64N(testMinute), Parkings: 1, Bytes: 300, Group: Group{Domain: "a", Tasklist: "x", Priority: 3}})
			}
			if table.Load(m); m.Bucket == 1000 {
				near = append(near, Message{Seq: m.Seq, Bucket: m.Bucket, Tasks: append([]Task(nil), m.Tasks...)})
			}
		}
		table.Loaded()
		b.ReportMetric(time.Since(began).Seconds(), "s/load")
		b.ReportMetric(float64(heap()-before)/tasks, "B/task")
		began = time.Now()
		for n := range 100_000 {
			if table.Far().Places(near[n%len(near)].Tasks[n%perMessage].ID) == nil {
				b.Fatal("not found")
			}
		}
		b.ReportMetric(float64(time.Since(began).Nanoseconds())/100_000, "ns/lookup")
		buckets, _ := table.Approach(1000 * testMinute)
		began = time.Now()
		for _, m := range near {
			table.LoadBucket(m)
		}
		table.Loaded()
		b.ReportMetric(float64(time.Since(began).Microseconds()), "us/bucket")
		testkit.Equal(b, "buckets", len(buckets) > 0, true)
		runtime.KeepAlive(table)
	}
}
