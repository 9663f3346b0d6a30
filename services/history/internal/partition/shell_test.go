package partition_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/memhistory"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// shell is a world, what owners on it have said, and a worker that does what they trigger.
type shell struct {
	t       *testing.T
	world   *memhistory.World
	archive partition.Archive

	mu          sync.Mutex
	triggered   map[ids.TaskID]int
	verdicts    []*logv1.EventVerdict
	quarantined []partition.Quarantined
	worker      func(ids.Trigger)
}

func newShell(t *testing.T) *shell {
	s := &shell{t: t, triggered: map[ids.TaskID]int{}}
	s.world = memhistory.NewWorld(s.hear, func(subject string, data []byte) bool { s.hear(subject, data); return true })
	s.archive = shellOn(s.world).archive
	return s
}

// shellOn hears nothing of its world.
func shellOn(w *memhistory.World) *shell {
	return &shell{world: w, archive: memhistory.Archive{World: w, Retention: func(*taskstate.Task) time.Duration { return time.Hour }}}
}

// inBubble runs a test in a bubble, on a world of its own.
func inBubble(t *testing.T, test func(t *testing.T, s *shell)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newShell(t)) })
}

func (s *shell) hear(subject string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if subject == "asker" {
		var v logv1.VerdictBatch
		testkit.Check(s.t, v.UnmarshalVT(data))
		s.verdicts = append(s.verdicts, v.Verdicts...)
		return
	}
	var h logv1.Hints
	if h.UnmarshalVT(data) != nil {
		return // a load report
	}
	for _, g := range h.Triggers {
		for i := range len(g.Triggers) / ids.TriggerBytes {
			tr := ids.TriggerAt(g.Triggers, i)
			s.triggered[tr.ID]++
			if s.worker != nil {
				go s.worker(tr)
			}
		}
	}
}

func (s *shell) deps(node string) partition.Deps {
	w, cfg := s.world, partition.DefaultConfig()
	cfg.SnapshotEvery = 5 * time.Second
	return partition.Deps{
		Partitioning: topology.Partitioning{History: 1, Matching: 1}, Node: node, Config: cfg,
		Log: w, Archive: s.archive, Reader: memhistory.Reader{World: w}, TimerStore: w, Timer: w, Checkpoints: w, Snapshots: memhistory.Snapshots{World: w}, Wire: w,
		Quarantine: func(_ context.Context, q partition.Quarantined) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.quarantined = append(s.quarantined, q)
			return nil
		},
		LogVersion: func() uint32 { return 1 }, Tokens: ids.NewTokens([ids.TokenSecretBytes]byte{}),
		Logger: slog.New(slog.DiscardHandler), Metrics: partition.NewMetrics(nil),
	}
}

// run runs an owner; stop lets it drain and returns how it ended.
func run(d partition.Deps) (o *partition.Owner, stop func() error) {
	o = partition.New(d)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	return o, func() error { cancel(); return <-ended }
}

// ready is run, and waits until the owner is ready.
func ready(d partition.Deps) (o *partition.Owner, stop func() error) {
	o, stop = run(d)
	<-o.Ready()
	return o, stop
}

// serves is ready, of an owner that drains when the test is over.
func (s *shell) serves(d partition.Deps) *partition.Owner {
	o, stop := ready(d)
	s.t.Cleanup(func() { testkit.Check(s.t, stop()) })
	return o
}

// submit returns once an owner that serves has admitted the tasks, if it has room.
func (s *shell) submit(lane ids.Lane, all ...*logv1.Record) (seq uint64) {
	seq = s.world.AppendSubmit(lane, encoded(s.t, &logv1.Batch{Tasks: all}))
	synctest.Wait()
	return seq
}

func (s *shell) event(e *logv1.Event) {
	s.world.SendEvents(encoded(s.t, &logv1.EventBatch{ReplyTo: "asker", Events: []*logv1.Event{e}}))
}

// works makes a worker that starts each trigger, and ends the attempt at once.
func (s *shell) works(end logv1.EventKind) {
	s.worker = func(tr ids.Trigger) {
		for _, kind := range []logv1.EventKind{logv1.EventKind_EVENT_KIND_STARTED, end} {
			s.event(outcome(tr, kind))
		}
	}
}

func outcome(tr ids.Trigger, kind logv1.EventKind) *logv1.Event {
	return &logv1.Event{Kind: kind, TaskId: tr.ID[:], Position: uint64(tr.Position), Version: tr.Version, Nonce: 1}
}

func task(id ids.TaskID, domain string) *logv1.Record {
	return &logv1.Record{
		Id: id[:], Domain: domain, Tasklist: "mail", Type: "t", Priority: 3,
		Policy: &logv1.Policy{MaxAttempts: 1, StartToCloseMs: 600_000},
	}
}

func newID(n uint64) ids.TaskID { return ids.NewTaskID(time.Now(), 0, n) }

func (s *shell) archived() map[ids.TaskID]int {
	all := map[ids.TaskID]int{}
	for _, r := range s.world.ArchivedTasks() {
		all[ids.TaskID(r.Id)]++
	}
	return all
}
