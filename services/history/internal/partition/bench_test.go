package partition_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/memhistory"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// BenchmarkOwner is what history itself costs per task, without a server: read, trigger, grant,
// complete and archive, in batches of 100 with payloads of 256 bytes.
func BenchmarkOwner(b *testing.B) {
	const size = 100
	answers := make(chan *logv1.VerdictBatch, 64)
	hints := make(chan *logv1.Hints, 64)
	take := func(subject string, data []byte) {
		if subject == "asker" {
			v := &logv1.VerdictBatch{}
			if v.UnmarshalVT(data) == nil {
				answers <- v
			}
			return
		}
		h := &logv1.Hints{}
		if h.UnmarshalVT(data) == nil && len(h.Triggers) > 0 {
			hints <- h
		}
	}
	w := memhistory.NewWorld(take, func(subject string, data []byte) bool { take(subject, data); return true })
	o := partition.New(partition.Deps{
		Shards: 1, Node: "bench", Config: partition.DefaultConfig(),
		Log: w, Store: w, Timer: w, Finder: w, Checkpoints: w, Wire: w,
		Logger: slog.New(slog.DiscardHandler), Metrics: partition.NewMetrics(new(telemetry.Metrics)),
	})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	<-o.Ready()
	payload := make([]byte, 256)
	batch := &logv1.Batch{}
	for range size {
		batch.Tasks = append(batch.Tasks, &logv1.Record{
			Domain: "shop", Tasklist: "mail", Type: "email.send", Priority: 3, Payload: payload,
			Policy: &logv1.Policy{MaxAttempts: 5, StartToCloseMs: 60_000},
		})
	}
	n := uint64(0)
	events := func(kind logv1.EventKind, h *logv1.Hints) []byte {
		m := &logv1.EventBatch{ReplyTo: "asker"}
		for _, g := range h.Triggers {
			for i := range len(g.Triggers) / ids.TriggerBytes {
				t := ids.TriggerAt(g.Triggers, i)
				m.Events = append(m.Events, &logv1.Event{
					Kind: kind, TaskId: t.ID[:], Position: uint64(t.Position), Version: t.Version, Nonce: 7, Worker: "w",
				})
			}
		}
		data, err := m.MarshalVT()
		if err != nil {
			b.Fatal(err)
		}
		return data
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N/size + 1 {
		now := time.Now()
		for _, r := range batch.Tasks {
			n++
			id := ids.NewTaskID(now, 0, n)
			r.Id = id[:]
		}
		data, err := batch.MarshalVT()
		if err != nil {
			b.Fatal(err)
		}
		w.AppendSubmit(3, data)
		h := <-hints
		w.AppendForeignEvents(events(logv1.EventKind_EVENT_KIND_STARTED, h))
		<-answers
		w.AppendForeignEvents(events(logv1.EventKind_EVENT_KIND_COMPLETED, h))
		<-answers
	}
	b.StopTimer()
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
