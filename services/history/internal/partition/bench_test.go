package partition_test

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/memhistory"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// bench is an owner on a world in memory, and what it says.
type bench struct {
	world   *memhistory.World
	answers chan *logv1.VerdictBatch
	hints   chan *logv1.Hints
}

func (s *bench) take(subject string, data []byte) {
	if subject == "asker" {
		v := &logv1.VerdictBatch{}
		if v.UnmarshalVT(data) == nil {
			s.answers <- v
		}
		return
	}
	h := &logv1.Hints{}
	if h.UnmarshalVT(data) == nil && len(h.Triggers) > 0 {
		s.hints <- h
	}
}

// start runs the owner; stop ends it.
func (s *bench) start(b *testing.B) (stop func()) {
	w := memhistory.NewWorld(s.take, func(subject string, data []byte) bool { s.take(subject, data); return true })
	s.world = w
	d := shellOn(w).deps("bench")
	d.Config = partition.DefaultConfig()
	_, end := ready(d)
	return func() { testkit.NoError(b, end()) }
}

// events says the same of all that h triggers, and waits for the verdicts.
func (s *bench) events(b *testing.B, kind logv1.EventKind, h *logv1.Hints) {
	m := &logv1.EventBatch{ReplyTo: "asker"}
	for _, g := range h.Triggers {
		for i := range len(g.Triggers) / ids.TriggerBytes {
			t := ids.TriggerAt(g.Triggers, i)
			m.Events = append(m.Events, &logv1.Event{
				Kind: kind, TaskId: t.ID[:], Position: uint64(t.Position), Version: t.Version, Nonce: 7,
			})
		}
	}
	data, err := m.MarshalVT()
	testkit.NoError(b, err)
	s.world.SendEvents(data)
	<-s.answers
}

// BenchmarkOwner is what history itself costs per task, without a server: read, trigger, grant,
// complete and archive, in batches of 100 with payloads of 256 bytes.
func BenchmarkOwner(b *testing.B) {
	s := &bench{answers: make(chan *logv1.VerdictBatch, 64), hints: make(chan *logv1.Hints, 64)}
	stop := s.start(b)
	batch := &logv1.Batch{}
	for range 100 {
		batch.Tasks = append(batch.Tasks, &logv1.Record{
			Domain: "shop", Tasklist: "mail", Type: "email.send", Priority: 3, Payload: make([]byte, 256),
			Policy: &logv1.Policy{MaxAttempts: 5, StartToCloseMs: 60_000},
		})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += len(batch.Tasks) {
		now := time.Now()
		for i, r := range batch.Tasks {
			id := ids.NewTaskID(now, 0, uint64(n+i))
			r.Id = id[:]
		}
		data, err := batch.MarshalVT()
		testkit.NoError(b, err)
		s.world.AppendSubmit(3, data)
		h := <-s.hints
		s.events(b, logv1.EventKind_EVENT_KIND_STARTED, h)
		s.events(b, logv1.EventKind_EVENT_KIND_COMPLETED, h)
	}
	b.StopTimer()
	stop()
}
