package replica

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

var storyPolicy = &taskstate.Policy{
	MaxAttempts: 4, InitialIntervalMS: 1000, Backoff: 6, MaxIntervalMS: 60_000, StartToCloseMS: 9_000, HeartbeatTimeoutMS: 4_000,
}

func smallConfig() Config {
	return Config{
		Shards: 1, WindowTasks: 1000, WindowBytes: 1 << 20, CheckpointEveryMS: 1 << 50, PurgeEveryMS: 1, SnapshotBytes: 1 << 50, SnapshotEveryMS: 1 << 50,
	}
}

// begin is the start of a partition that has nothing, claimed at a time.
func begin(claimedAt time.Duration) *Start {
	return &Start{Snapshot: new(Snapshot), ClaimedAt: claimedAt}
}

// message is one message of a lane, or of events.
type message struct {
	seq    uint64
	at     int64
	events bool
	lane   ids.Lane
	// place is where it is filed.
	place ids.Place
	// Of a lane: the records, whose Position is that of the stay before.
	tasks []taskstate.Task
	// Of the events.
	list    []taskstate.Event
	request uint64
	// Of matching.
	shard            uint32
	epoch, delivered uint64
	polls            []dispatch.Poll
}

func (m *message) position() ids.Position {
	pos := ids.NewPosition(m.seq, m.lane)
	switch {
	case m.place == "":
		pos = pos.InShared()
	case m.place.Tasklist() == "":
		pos = pos.InMixed()
	}
	return pos
}

// input is a fresh copy of a message, as if decoded.
func (m *message) input() Input {
	if !m.events {
		in := &Submits{Lane: m.lane, Place: m.place, Seq: m.seq, At: m.at, Bytes: 100}
		for i := range m.tasks {
			in.Tasks = append(in.Tasks, &Entry{Task: cloneTask(&m.tasks[i])})
		}
		return in
	}
	in := &Events{
		Bytes: 100, RequestID: m.request, Events: slices.Clone(m.list),
		Shard: m.shard, Epoch: m.epoch, Delivered: m.delivered, Polls: m.polls,
	}
	if len(m.list) > 0 || m.shard > 0 {
		in.ReplyTo = fmt.Sprint(m.seq)
	}
	return &Turn{Seq: m.seq, At: m.at, Batches: []*Events{in}}
}

// outside is what outlives an owner: the log, the other stores and the checkpoint.
type outside struct {
	lanes []*message
	turns []*Turn
	// timer and archive have what was stored, at a sequence of both.
	timer, archive map[Stay]*stored
	storeSeq       uint64
	snapshots      map[uint64]*Snapshot
	saved          Checkpoint
}

func newOutside() outside {
	return outside{timer: make(map[Stay]*stored), archive: make(map[Stay]*stored), snapshots: map[uint64]*Snapshot{0: {}}}
}

// next is the message of a lane or a queue behind a sequence.
func (o *outside) next(at Queue, behind uint64) *message {
	for _, m := range o.lanes {
		if m.seq > behind && m.lane == at.Lane && at.Place.Has(m.place) {
			return m
		}
	}
	return nil
}

// takeOver makes the next owner, as of the last turn.
func (o *outside) takeOver(cfg Config, now Now, fx *Effects) *Replica {
	snap := o.snapshots[o.saved.Snapshot.Seq].copied()
	start := &Start{
		Checkpoint: o.saved, Snapshot: snap, Parked: make(map[Stay]bool), Archived: make(Ends), TimerSeq: o.storeSeq, ArchiveSeq: o.storeSeq, ClaimedAt: now.Mono,
	}
	for stay, kept := range o.timer {
		if kept.seq > snap.TimerSeq {
			start.Parked[stay] = true
		}
	}
	for stay, kept := range o.archive {
		if kept.seq > snap.ArchiveSeq {
			start.Archived.Add(stay)
		}
	}
	r := New(cfg, start)
	for _, turn := range o.turns {
		if turn.Seq <= snap.Seq {
			continue
		}
		for _, step := range turn.Admitted {
			if step.Kind != Read {
				r.Replay(step)
			}
			passed := uint64(0)
			for step.Kind == Read && r.ReadLevel(step.Queue) < step.To {
				m := o.next(step.Queue, max(passed, r.ReadLevel(step.Queue)))
				in := m.input().(*Submits)
				in.By, passed = step.Place, m.seq // a queue may have nothing to do with it
				r.Step(in, now, fx)
			}
		}
		r.Step(turn.copied(), now, fx)
	}
	return r
}

// copied is a snapshot as it is read back.
func (s *Snapshot) copied() *Snapshot {
	c := *s
	c.Tasks = slices.Clone(s.Tasks)
	for i := range c.Tasks {
		c.Tasks[i].Task = cloneTask(&c.Tasks[i].Task)
	}
	return &c
}

func (t *Turn) copied() *Turn {
	c := *t
	c.Batches = slices.Clone(t.Batches)
	for i, b := range t.Batches {
		batch := *b
		batch.Events = slices.Clone(b.Events)
		c.Batches[i] = &batch
	}
	return &c
}

// stored is a task as another store has it.
type stored struct {
	seq  uint64
	task taskstate.Task
}

func put[K comparable](store map[K]*stored, key K, seq uint64, t *taskstate.Task) {
	store[key] = &stored{seq, cloneTask(t)}
}

func cloneTask(t *taskstate.Task) taskstate.Task {
	c := *t
	c.SetSteps(slices.Clone(t.Steps), t.StepsDropped)
	if t.Extra != nil {
		extra := *t.Extra
		c.Extra = &extra
	}
	return c
}

// dump is all of a task that two owners have to agree about.
func dump(t *taskstate.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s v%d failures=%d lost=%d back=%d parkings=%d pos=%d/%s before=%d due=%d ready=%d finished=%d attempt=%+v cancel=%v expiry=%+v",
		name(t.ID), t.State, t.Version, t.Failures, t.Lost, t.HandedBack, t.Parkings, t.Position.Seq(), t.Position.Lane(), t.Before, t.DueAt, t.ReadyAt, t.FinishedAt,
		t.Attempt, t.CancelRequested, t.Expiry())
	for _, s := range t.Steps {
		fmt.Fprintf(&b, " %+v", s)
	}
	if o := t.Order(); o != nil {
		fmt.Fprintf(&b, " key=%+v", *o)
	}
	return b.String()
}

// archived are the tasks of an archive job.
func archived(fx *Effects) (numbers []int) {
	for _, e := range fx.Archive {
		numbers = append(numbers, int(e.ID[15]))
	}
	return numbers
}

// linger lets the tasks that have ended wait long enough for others.
func (b *bench) linger() *Effects {
	b.Helper()
	b.now.MS += archiveLingerMS
	return b.step(Tick{})
}

// turn stores a turn without events.
func (b *bench) turn() *Effects {
	b.Helper()
	b.seq++
	return b.step(&Turn{Seq: b.seq, At: b.now.MS})
}

// snapshot is the state as of a turn without events.
func (b *bench) snapshot() *Snapshot {
	b.Helper()
	b.r.snapshots.due = true
	return b.turn().Snapshot
}

func policyWith(change func(*taskstate.Policy)) *taskstate.Policy {
	p := *storyPolicy
	change(&p)
	return &p
}
