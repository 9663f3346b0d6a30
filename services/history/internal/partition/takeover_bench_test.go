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
	s := &shell{world: w, archive: memhistory.Archive{World: w, Retention: func(string) time.Duration { return time.Hour }}}
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

// BenchmarkTakeover reads what one old task holds: 1,000,000 events of tasks that have left, or
// 250,000 submits and 500,000 events of tasks that are in the archive.
func BenchmarkTakeover(b *testing.B) {
	b.Run("events", func(b *testing.B) {
		benchTakeover(b, func(w *memhistory.World) *logv1.Checkpoint {
			w.AppendSubmit(3, encoded(b, &logv1.Batch{}))
			for n := range uint64(5000) {
				appendEnded(b, w, 100*n, 1)
			}
			return &logv1.Checkpoint{EventFloor: 1, Lanes: []*logv1.LaneCursor{{Lane: 3, AckSeq: 1, ReadSeq: 1}}}
		})
	})
	b.Run("submits", func(b *testing.B) {
		benchTakeover(b, func(w *memhistory.World) *logv1.Checkpoint {
			first := ids.NewTaskID(time.UnixMilli(0), 0, 1)
			w.AppendSubmit(3, encoded(b, &logv1.Batch{Tasks: []*logv1.Record{task(first, "shop")}}))
			last := uint64(1)
			for n := range uint64(2500) {
				m := &logv1.Batch{}
				for i := range uint64(100) {
					r := task(benchID(100*n+i), "shop")
					r.Payload = make([]byte, 256)
					m.Tasks = append(m.Tasks, r)
				}
				last = appendEnded(b, w, 100*n, w.AppendSubmit(3, encoded(b, m)))
			}
			return &logv1.Checkpoint{
				Lanes:            []*logv1.LaneCursor{{Lane: 3, ReadSeq: last, ArchivedSeq: last, ParkedSeq: last}},
				ArchivedEventSeq: last, ParkedEventSeq: last,
			}
		})
	})
}

func benchID(n uint64) ids.TaskID { return ids.NewTaskID(time.UnixMilli(1_700_000_000_000), 0, n) }

// appendEnded appends the grants and the ends of 100 tasks that were submitted at seq.
func appendEnded(tb testing.TB, w *memhistory.World, from, seq uint64) (last uint64) {
	for _, kind := range []logv1.EventKind{logv1.EventKind_EVENT_KIND_STARTED, logv1.EventKind_EVENT_KIND_COMPLETED} {
		m := &logv1.EventBatch{}
		for i := range uint64(100) {
			id := benchID(from + i)
			m.Events = append(m.Events, &logv1.Event{
				Kind: kind, TaskId: id[:], Position: uint64(ids.NewPosition(seq, 3)), Version: 1, Nonce: from + i, Limits: []string{"type/t"},
			})
		}
		last = w.AppendTurn(encoded(tb, &logv1.Turn{Batches: []*logv1.EventBatch{m}}))
	}
	return last
}

func benchTakeover(b *testing.B, build func(*memhistory.World) *logv1.Checkpoint) {
	w := quietWorld()
	cp := build(w)
	testkit.NoError(b, testkit.Err(w.Save(b.Context(), cp, 0)))
	b.ResetTimer()
	for range b.N {
		total, grown := takesOver(b, w)
		b.ReportMetric(float64(total)/1e6, "allocated-MB")
		b.ReportMetric(float64(grown)/1e6, "grown-MB")
		b.StopTimer()
		_, revision, err := w.Load(b.Context())
		testkit.NoError(b, err)
		testkit.NoError(b, testkit.Err(w.Save(b.Context(), cp, revision)))
		b.StartTimer()
	}
}

func encoded(tb testing.TB, m interface{ MarshalVT() ([]byte, error) }) []byte {
	data, err := m.MarshalVT()
	testkit.NoError(tb, err)
	return data
}
