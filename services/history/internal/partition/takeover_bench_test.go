package partition_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/memhistory"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// takesOver is an owner that takes over, and how much memory that takes: all that is allocated, and
// what the heap has grown by.
func takesOver(tb testing.TB, w *memhistory.World) (total, grown uint64) {
	s := shellOn(w)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o := partition.New(s.deps("a"))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	select {
	case <-o.Ready():
	case err := <-ended:
		tb.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	cancel()
	testkit.NoError(tb, <-ended)
	return after.TotalAlloc - before.TotalAlloc, after.HeapSys - min(after.HeapSys, before.HeapSys)
}

func quietWorld() *memhistory.World {
	return memhistory.NewWorld(func(string, []byte) {}, func(string, []byte) bool { return true })
}

// BenchmarkTakeover reads the log of 250,000 tasks that have ended, without a snapshot.
func BenchmarkTakeover(b *testing.B) {
	w := quietWorld()
	for n := range uint64(2500) {
		m := &logv1.Batch{}
		for i := range uint64(100) {
			r := task(benchID(100*n+i), "shop")
			r.Payload = make([]byte, 256)
			m.Tasks = append(m.Tasks, r)
		}
		appendEnded(b, w, 100*n, w.AppendSubmit(3, encoded(b, m)))
	}
	testkit.NoError(b, testkit.Err(w.Save(b.Context(), &logv1.Checkpoint{}, 0)))
	for b.Loop() {
		total, grown := takesOver(b, w)
		b.ReportMetric(float64(total)/1e6, "allocated-MB")
		b.ReportMetric(float64(grown)/1e6, "grown-MB")
	}
}

func benchID(n uint64) ids.TaskID { return ids.NewTaskID(time.UnixMilli(1_700_000_000_000), 0, n) }

// appendEnded appends the grants and the ends of 100 tasks that were submitted at seq.
func appendEnded(tb testing.TB, w *memhistory.World, from, seq uint64) {
	for _, kind := range []logv1.EventKind{logv1.EventKind_EVENT_KIND_STARTED, logv1.EventKind_EVENT_KIND_COMPLETED} {
		m := &logv1.EventBatch{}
		for i := range uint64(100) {
			id := benchID(from + i)
			m.Events = append(m.Events, &logv1.Event{
				Kind: kind, TaskId: id[:], Position: uint64(ids.NewPosition(seq, 3)), Version: 1, Nonce: from + i, Limits: []string{"type/t"},
			})
		}
		w.AppendTurn(encoded(tb, &logv1.Turn{Admitted: []*logv1.Admission{{Lane: 3, ToSeq: seq}}, Batches: []*logv1.EventBatch{m}}))
	}
}

func encoded(tb testing.TB, m interface{ MarshalVT() ([]byte, error) }) []byte {
	data, err := m.MarshalVT()
	testkit.NoError(tb, err)
	return data
}
