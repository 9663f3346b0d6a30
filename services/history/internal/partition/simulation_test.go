package partition_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/memhistory"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// life is one owner's connection to the world. A killed one reaches nothing any more,
// like a process that got SIGKILL.
type life struct {
	*memhistory.World
	killed atomic.Bool
}

var errKilled = errors.New("killed")

func (l *life) AppendEvents(ctx context.Context, b []byte) error {
	if l.killed.Load() {
		return errKilled
	}
	return l.World.AppendEvents(ctx, b)
}

func (l *life) Park(ctx context.Context, bucket int64, b []byte) (uint64, error) {
	if l.killed.Load() {
		return 0, errKilled
	}
	return l.World.Park(ctx, bucket, b)
}

func (l *life) Archive(ctx context.Context, domain string, minute int64, b []byte) error {
	if l.killed.Load() {
		return errKilled
	}
	return l.World.Archive(ctx, domain, minute, b)
}

func (l *life) Bury(ctx context.Context, domain, list string, id ids.TaskID, b []byte) error {
	if l.killed.Load() {
		return errKilled
	}
	return l.World.Bury(ctx, domain, list, id, b)
}

func (l *life) Save(ctx context.Context, cp *logv1.Checkpoint, rev uint64) (uint64, error) {
	if l.killed.Load() {
		return 0, errKilled
	}
	return l.World.Save(ctx, cp, rev)
}

func (l *life) Publish(subject string, data []byte) {
	if !l.killed.Load() {
		l.World.Publish(subject, data)
	}
}

func (l *life) Answer(subject string, data []byte, bounced func()) {
	if !l.killed.Load() {
		l.World.Answer(subject, data, bounced)
	}
}

// simulation is the rest of the system: a matching that loses triggers, workers
// that fail, fall silent and repeat themselves, a timer, and owners that are killed.
type simulation struct {
	t     *testing.T
	world *memhistory.World

	mu     sync.Mutex
	rng    *rand.Rand
	calls  map[uint64]*logv1.EventBatch // by request id
	nextID uint64
	// succeeded counts, per task, the attempts whose success was accepted.
	succeeded map[ids.TaskID]map[ids.Token]bool
	cancelled map[ids.TaskID]bool
	// released are the bookings that history told of.
	released map[string]bool
}

func (s *simulation) chance(percent int) bool { return s.rng.IntN(100) < percent }

// call appends events and remembers them for their verdicts.
func (s *simulation) call(events ...*logv1.Event) {
	s.nextID++
	batch := &logv1.EventBatch{Events: events, ReplyTo: "asker", RequestId: s.nextID}
	s.calls[s.nextID] = batch
	data, err := batch.MarshalVT()
	if err != nil {
		s.t.Error(err)
	}
	times := 1
	if s.chance(10) {
		times = 2 // the asker repeats what was not answered
	}
	for range times {
		go s.world.AppendForeignEvents(data)
	}
}

func (s *simulation) published(subject string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.HasPrefix(subject, "yard.matching."):
		var h logv1.Hints
		if err := h.UnmarshalVT(data); err != nil {
			s.t.Errorf("hints: %v", err)
		}
		for _, g := range h.Triggers {
			s.triggered(g)
		}
		for _, r := range h.Releases {
			for b := r.Bookings; len(b) > 0; b = b[ids.BookingBytes:] {
				s.released[string(b[:ids.BookingBytes])] = true
			}
		}
	case subject == "asker":
		s.verdicts(data)
	}
}

// triggered grabs most of what is triggered and loses the rest (I5).
func (s *simulation) triggered(g *logv1.TriggerGroup) {
	var events []*logv1.Event
	for i := range len(g.Triggers) / ids.TriggerBytes {
		if s.chance(10) {
			continue
		}
		tr := ids.TriggerAt(g.Triggers, i)
		events = append(events, &logv1.Event{
			Kind: logv1.EventKind_EVENT_KIND_STARTED, TaskId: tr.ID[:], Position: uint64(tr.Position), Version: tr.Version,
			Nonce: s.rng.Uint64(), Worker: "sim", Booked: true,
		})
	}
	if len(events) > 0 {
		s.call(events...)
	}
}

func (s *simulation) answered(subject string, data []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chance(5) {
		return false // the poller went away
	}
	s.verdicts(data)
	return true
}

func (s *simulation) verdicts(data []byte) {
	var v logv1.VerdictBatch
	if err := v.UnmarshalVT(data); err != nil {
		s.t.Errorf("verdicts: %v", err)
		return
	}
	batch, ok := s.calls[v.RequestId]
	if !ok {
		return
	}
	delete(s.calls, v.RequestId)
	for i, verdict := range v.Verdicts {
		ev := batch.Events[int(v.First)+i]
		if verdict.Code != "" {
			continue
		}
		switch ev.Kind {
		case logv1.EventKind_EVENT_KIND_STARTED:
			s.work(ev)
		case logv1.EventKind_EVENT_KIND_COMPLETED:
			s.success(ev)
		}
	}
}

func (s *simulation) success(ev *logv1.Event) {
	id := ids.TaskID(ev.TaskId)
	if s.succeeded[id] == nil {
		s.succeeded[id] = map[ids.Token]bool{}
	}
	s.succeeded[id][ids.Token{Position: ids.Position(ev.Position), Version: ev.Version, Nonce: ev.Nonce}] = true
}

// work ends a granted attempt some way or other, after a while.
func (s *simulation) work(grab *logv1.Event) {
	out := &logv1.Event{TaskId: grab.TaskId, Position: grab.Position, Version: grab.Version, Nonce: grab.Nonce}
	switch n := s.rng.IntN(100); {
	case n < 70:
		out.Kind = logv1.EventKind_EVENT_KIND_COMPLETED
	case n < 80:
		out.Kind, out.Message = logv1.EventKind_EVENT_KIND_FAILED, "flaky"
	case n < 85:
		out.Kind, out.DelayMs = logv1.EventKind_EVENT_KIND_FAILED, 15_000 // parked
	case n < 90:
		out.Kind = logv1.EventKind_EVENT_KIND_RELEASED
	default:
		return // silent: the lease runs out
	}
	after := time.Duration(s.rng.IntN(400)) * time.Millisecond
	time.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.call(out)
	})
}

// fireTimers is the timer service: each stay fires once, when due.
func (s *simulation) fireTimers(ctx context.Context) {
	for ctx.Err() == nil {
		for _, r := range s.world.Fire(time.Now().UnixMilli()) {
			out, err := (&logv1.Batch{Tasks: []*logv1.Record{r}}).MarshalVT()
			if err != nil {
				s.t.Error(err)
			}
			s.world.AppendSubmit(ids.Lane(r.Priority), out)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *simulation) owner(l *life) *partition.Owner {
	cfg := partition.DefaultConfig()
	cfg.WindowTasks, cfg.CarryAfter, cfg.PurgeEvery = 40, 60, time.Second
	return partition.New(partition.Deps{
		Partition: 0, Shards: 1, Node: "sim", Config: cfg,
		Log: l, Store: l, Timer: l, Finder: l, Checkpoints: l, Wire: l,
		Logger: slog.New(slog.DiscardHandler), Metrics: partition.NewMetrics(new(telemetry.Metrics)),
		Tokens: ids.NewTokens([ids.TokenSecretBytes]byte{}),
	})
}

func record(rng *rand.Rand, delayed bool) *logv1.Record {
	now := time.Now()
	id := ids.NewTaskID(now, 0, rng.Uint64())
	r := &logv1.Record{
		Id: id[:], Domain: "sim", Tasklist: "list", Type: "t", Priority: int32(1 + rng.IntN(5)), Payload: []byte(`{"a":1}`),
		Policy: &logv1.Policy{
			MaxAttempts: 50, InitialIntervalMs: 100, Backoff: 1.5, MaxIntervalMs: 2000, StartToCloseMs: 3000, HeartbeatTimeoutMs: 1000,
		},
	}
	if delayed {
		r.DueAtMs = now.UnixMilli() + rng.Int64N(5000)
	}
	return r
}

// run drives n tasks through owners that die at random and returns their ids.
func (s *simulation) run(n int) map[ids.TaskID]bool {
	accepted := map[ids.TaskID]bool{}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go s.fireTimers(ctx)
	var current *life
	var stop context.CancelFunc
	var done chan error
	begin := func() {
		current = &life{World: s.world}
		o := s.owner(current)
		var octx context.Context
		octx, stop = context.WithCancel(ctx)
		ended := make(chan error, 1)
		done = ended
		go func() { ended <- o.Run(octx) }()
		go func() {
			for octx.Err() == nil {
				time.Sleep(500 * time.Millisecond)
				o.Hungry(octx, &rpcv1.Hungry{Domain: "sim", Tasklist: "list"})
			}
		}()
	}
	begin()
	for turn := 0; len(accepted) < n || s.open(accepted) > 0; turn++ {
		if turn > 4000 {
			s.t.Errorf("%d of %d tasks never ended", s.open(accepted), n)
			break
		}
		s.mu.Lock()
		if len(accepted) < n {
			s.submit(accepted)
		}
		kill, gentle := s.chance(4), s.chance(50)
		s.world.FailWrites(s.chance(3))
		s.mu.Unlock()
		time.Sleep(100 * time.Millisecond)
		if kill {
			current.killed.Store(!gentle)
			stop()
			if err := <-done; err != nil && !errors.Is(err, partition.ErrTakenOver) && !errors.Is(err, errKilled) {
				s.t.Errorf("owner ended with %v", err)
			}
			begin()
		}
	}
	s.world.FailWrites(false)
	stop()
	if err := <-done; err != nil && !errors.Is(err, partition.ErrTakenOver) && !errors.Is(err, errKilled) {
		s.t.Errorf("the last owner ended with %v", err)
	}
	return accepted
}

// submit appends a batch, and sometimes cancels a task of it.
func (s *simulation) submit(accepted map[ids.TaskID]bool) {
	lane, batch := ids.Lane(1+s.rng.IntN(5)), &logv1.Batch{}
	delayed := s.chance(20)
	if delayed {
		lane = ids.LaneLater
	}
	for range 1 + s.rng.IntN(20) {
		r := record(s.rng, delayed)
		batch.Tasks = append(batch.Tasks, r)
		accepted[ids.TaskID(r.Id)] = true
	}
	data, err := batch.MarshalVT()
	if err != nil {
		s.t.Error(err)
	}
	s.world.AppendSubmit(lane, data)
	if s.chance(20) {
		id := batch.Tasks[0].Id
		s.cancelled[ids.TaskID(id)] = true
		s.call(&logv1.Event{Kind: logv1.EventKind_EVENT_KIND_CANCEL, TaskId: id, Domain: "sim", Message: "sim"})
	}
}

func (s *simulation) open(accepted map[ids.TaskID]bool) int {
	ended := map[ids.TaskID]bool{}
	for _, r := range s.world.ArchivedTasks() {
		ended[ids.TaskID(r.Id)] = true
	}
	n := 0
	for id := range accepted {
		if !ended[id] {
			n++
		}
	}
	return n
}

// TestI1_I4_I5_NothingIsLostOrDoubledWhenOwnersDie is the main promise of history: with
// owners killed at random points, triggers lost, askers that repeat themselves, workers that
// vanish and stores that fail, every accepted task ends exactly one way, and at most one
// attempt of it succeeds; and word is given of every slot that comes free (I8).
func TestI1_I4_I5_NothingIsLostOrDoubledWhenOwnersDie(t *testing.T) {
	seeds := testkit.Seed(t)
	for round := range 6 {
		seed := seeds.Uint64()
		t.Run(fmt.Sprintf("%d/seed=%d", round, seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &simulation{
					t: t, rng: rand.New(rand.NewPCG(seed, seed)), calls: map[uint64]*logv1.EventBatch{},
					succeeded: map[ids.TaskID]map[ids.Token]bool{}, cancelled: map[ids.TaskID]bool{},
					released: map[string]bool{},
				}
				s.world = memhistory.NewWorld(s.published, s.answered)
				accepted := s.run(400)
				s.check(accepted)
				time.Sleep(time.Minute) // the bubble's time: lets what still sleeps see the end
			})
		})
	}
}

func (s *simulation) check(accepted map[ids.TaskID]bool) {
	ends := map[ids.TaskID]int32{}
	for _, r := range s.world.ArchivedTasks() {
		id := ids.TaskID(r.Id)
		if !accepted[id] {
			s.t.Errorf("archived %s, which was never submitted", id)
		}
		if end, again := ends[id]; again && end != r.State {
			s.t.Errorf("%s ended twice: %d and %d", id, end, r.State)
			for _, r := range s.world.ArchivedTasks() {
				if ids.TaskID(r.Id) == id {
					s.t.Logf("  %v", r)
				}
			}
		}
		ends[id] = r.State
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.world.ArchivedTasks() {
		for version := range r.Version {
			if id := ids.TaskID(r.Id); !s.released[string(ids.Booking(id, version+1))] {
				s.t.Errorf("attempt %d of %s is over, and nobody said that its slot is free", version+1, id)
			}
		}
	}
	for id := range accepted {
		state, ended := ends[id]
		if !ended {
			s.t.Errorf("%s never ended", id)
		}
		if len(s.succeeded[id]) > 1 {
			s.t.Errorf("%s succeeded in %d attempts", id, len(s.succeeded[id]))
			for tok := range s.succeeded[id] {
				s.t.Logf("  fence %+v", tok)
			}
			for _, m := range s.world.Dump(id) {
				s.t.Log(m)
			}
		}
		if len(s.succeeded[id]) == 1 && taskstate.State(state) != taskstate.Completed {
			s.t.Errorf("%s: its worker was told that it succeeded, but it is %s", id, taskstate.State(state))
		}
		if !s.cancelled[id] && taskstate.State(state) == taskstate.Cancelled {
			s.t.Errorf("%s is cancelled, though nobody asked", id)
		}
	}
}
