package replica

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// ownership is an owner of a partition, its log, the other stores, and what is on its way between them.
type ownership struct {
	*testing.T
	outside
	seed uint64
	rng  *rand.Rand
	cfg  Config
	r    *Replica
	now  Now
	// end is the last sequence of the log. asOf is the state as of the last turn.
	end  uint64
	asOf image
	// skipped is the last message that a queue's reader had for nothing.
	skipped map[Queue]uint64
	// under is the turn that is being stored. own is what the next one has of the owner, sent what this one has; nil = none.
	under     *Turn
	own, sent []Proposal
	// jobs are under way; those that are written are stored and not reported.
	jobs    [2][]*Entry
	written [2]bool
	looks   []Look
	// making is the snapshot that is not stored so far; images are what they had when they were made.
	making    *Snapshot
	images    map[uint64]string
	save      *Checkpoint
	fired     map[Stay]bool
	epochs    [3]uint64
	request   uint64
	submitted []ids.TaskID
	finishing bool
}

func newOwnership(t *testing.T, seed uint64) *ownership {
	h := &ownership{
		T: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), now: Now{MS: scenarioStart},
		cfg: Config{
			Shards: 2, WindowTasks: 5, WindowBytes: 1 << 20, CheckpointEveryMS: 1, PurgeEveryMS: 1000, SnapshotBytes: 1500, SnapshotEveryMS: 2000, JobTasks: 3,
			FullWeight: func(string) FullWeight { return FullWeight{PerSecond: float64(seed % 3)} },
		},
		outside: newOutside(), images: make(map[uint64]string), fired: make(map[Stay]bool),
	}
	h.goOn()
	return h
}

func (h *ownership) fail(format string, args ...any) {
	h.Helper()
	h.Fatalf("seed %d: %s", h.seed, fmt.Sprintf(format, args...))
}

// act does one thing that may happen.
func (h *ownership) act() {
	switch n := h.rng.IntN(100); {
	case n < 14:
		h.submit()
	case n < 36:
		h.admit(Queue{Lane: ids.Lane(3 + h.rng.IntN(2))})
		if all := h.r.Readings(); len(all) > 0 {
			h.admit(all[h.rng.IntN(len(all))].Queue)
		}
	case n < 50:
		h.begin()
	case n < 66:
		h.stored(h.rng.IntN(8) > 0)
	case n < 74:
		h.tick()
	case n < 84:
		kind := JobKind(h.rng.IntN(2))
		if h.write(kind); h.rng.IntN(3) > 0 {
			h.report(kind)
		}
	case n < 88:
		h.report(JobKind(h.rng.IntN(2)))
	case n < 92:
		h.fire()
	case n < 95 && h.making != nil:
		made := h.making
		h.making, h.snapshots[made.Seq] = nil, made
		h.step(Stored{Kind: JobSnapshot, Snapshot: SnapshotRef{Seq: made.Seq}})
	case n < 97:
		h.look()
	case n == 98:
		h.crash()
	}
}

// step gives an input and takes what follows from it.
func (h *ownership) step(in Input) {
	h.Helper()
	fx := new(Effects)
	if !h.r.Step(in, h.now, fx) {
		h.fail("the lease is over")
	}
	if _, ok := in.(*Turn); ok {
		h.asOf = imageOf(h.r)
	}
	if fx.Snapshot != nil {
		h.making, h.images[fx.Snapshot.Seq] = fx.Snapshot, fmt.Sprint(imageOf(New(h.cfg, &Start{Snapshot: fx.Snapshot.copied()})))
	}
	h.flush(fx)
}

func (h *ownership) flush(fx *Effects) {
	h.Helper()
	h.r.Flush(h.now, fx)
	if err := h.r.Check(); err != nil {
		h.fail("%v", err)
	}
	h.looks = append(h.looks, fx.Looks...)
	if fx.Append != nil {
		h.own = fx.Append
	}
	if fx.Archive != nil {
		h.jobs[JobArchive] = fx.Archive
	}
	if fx.Park != nil {
		h.jobs[JobPark] = fx.Park
	}
	if fx.Save != nil {
		h.save = fx.Save
	}
	if fx.Forget != nil {
		maps.DeleteFunc(h.snapshots, func(seq uint64, _ *Snapshot) bool { return seq < fx.Forget.Seq })
	}
	if fx.Purge != nil {
		h.lanes = slices.DeleteFunc(h.lanes, func(m *message) bool { return m.seq <= fx.Purge.PurgeTo(Queue{Lane: m.lane, Place: m.place}) })
		h.turns = slices.DeleteFunc(h.turns, func(turn *Turn) bool { return turn.Seq <= fx.Purge.Events })
		h.step(Purged{})
	}
}

// submit stores a message of a lane, of one domain or of several.
func (h *ownership) submit() {
	at := []ids.Place{"", "shop", "shop.mail", "shop.bulk", "flood"}[h.rng.IntN(5)]
	m := h.message(at)
	for range 1 + h.rng.IntN(3) {
		t := taskstate.Task{
			ID: ids.NewTaskID(time.UnixMilli(scenarioStart), 0, uint64(len(h.submitted)+1)), Domain: at.Domain(), Tasklist: at.Tasklist(), Type: "send", Priority: 3,
			Policy: storyPolicy,
		}
		if at == "" {
			t.Domain = []string{"shop", "flood"}[h.rng.IntN(2)]
		}
		if at.Tasklist() == "" {
			t.Tasklist = []string{"mail", "bulk"}[h.rng.IntN(2)]
		}
		switch h.rng.IntN(8) {
		case 0, 1:
			t.DueAt = h.now.MS + h.rng.Int64N(100_000)
		case 2:
			t.Extra = &taskstate.Extra{Expiry: taskstate.Expiry{StartWithinMS: 1 + h.rng.Int64N(20_000), FinishBy: h.now.MS - 5000 + h.rng.Int64N(60_000)}}
		case 3:
			if at != "" && at.Tasklist() == "" { // its key's tasks lie on one lane, in messages of their domain
				m.lane, t.Extra = 3, &taskstate.Extra{Order: &taskstate.Order{Key: fmt.Sprint("key-", h.rng.IntN(2))}}
			}
		}
		h.submitted, m.tasks = append(h.submitted, t.ID), append(m.tasks, t)
	}
}

func (h *ownership) message(at ids.Place) *message {
	h.end++
	m := &message{seq: h.end, at: h.now.MS, lane: ids.Lane(3 + h.rng.IntN(2)), place: at}
	h.lanes = append(h.lanes, m)
	return m
}

// fire brings back a stay from the timer store that is due.
func (h *ownership) fire() {
	for _, stay := range slices.SortedFunc(maps.Keys(h.timer), func(a, b Stay) int {
		return cmp.Or(bytes.Compare(a.ID[:], b.ID[:]), cmp.Compare(a.Parkings, b.Parkings))
	}) {
		if kept := h.timer[stay]; !h.fired[stay] && kept.task.DueAt <= h.now.MS {
			h.fired[stay] = true
			t := cloneTask(&kept.task)
			t.State, t.Before = taskstate.None, 0
			m := h.message([]ids.Place{"", ids.PlaceOf(t.Domain, t.Tasklist)}[h.rng.IntN(2)])
			m.tasks = []taskstate.Task{t}
			return
		}
	}
}

func (h *ownership) admit(at Queue) {
	level := h.r.ReadLevel(at)
	m := h.next(at, level)
	for m != nil && m.seq <= h.skipped[at] {
		m = h.next(at, m.seq)
	}
	if m == nil || !h.r.MayAdmit() || at.Place == "" && !h.r.Room(at.Lane) || at.Place != "" && !h.r.QueueRoom(at, m.seq) {
		return
	}
	in := m.input().(*Submits)
	in.By = at.Place
	if h.step(in); h.r.ReadLevel(at) == level { // a queue has nothing to do with it
		h.skipped[at] = m.seq
	}
}

// begin appends a turn.
func (h *ownership) begin() {
	if h.under != nil {
		return
	}
	h.end++
	h.under = &Turn{Seq: h.end, At: h.now.MS, Admitted: h.r.BeginTurn()}
	add := func(b Events) { h.under.Batches = append(h.under.Batches, &b) }
	h.sent, h.own = h.own, nil
	own := Events{Bytes: 10}
	for _, p := range h.sent {
		own.Events = append(own.Events, taskstate.Event{Kind: p.Kind, ID: p.ID, Fence: p.Fence, Undelivered: p.Undelivered, NotAfter: p.NotAfter})
	}
	add(own)
	shard := 1 + h.rng.IntN(2)
	if h.rng.IntN(10) == 0 {
		h.epochs[shard]++
		add(Events{Shard: uint32(shard), Epoch: h.epochs[shard], RequestID: 1, Events: []taskstate.Event{{Kind: taskstate.Fence}}})
	}
	h.request++
	grabs := Events{Bytes: 100, ReplyTo: "matching", Shard: uint32(shard), Epoch: h.epochs[shard] - min(h.epochs[shard], h.rng.Uint64N(6)/5), RequestID: h.request, Delivered: h.request / 2}
	others := Events{Bytes: 100, ReplyTo: "gateway"}
	for _, e := range slices.SortedFunc(maps.Values(h.r.tasks), func(a, b *Entry) int { return bytes.Compare(a.ID[:], b.ID[:]) }) {
		n := h.rng.IntN(12)
		if h.finishing {
			n = 0
		}
		ev := taskstate.Event{ID: e.ID, Domain: e.Domain, Fence: e.Token(), Worker: taskstate.NewWorker("w", "", 0)}
		switch {
		case e.left || n > 5:
		case n == 5 && e.State.Active():
			others.Events = append(others.Events, taskstate.Event{Kind: taskstate.Cancel, ID: e.ID, Domain: e.Domain})
		case e.State == taskstate.Running:
			ev.Kind = []taskstate.Kind{taskstate.Succeeded, taskstate.Failed, taskstate.Failed, taskstate.Heartbeat, taskstate.Released}[n]
			ev.DelayMS = []int64{0, 0, 30_000, 0, 0}[n]
			others.Events = append(others.Events, ev)
		case n < 3 && !e.HeldUp():
			ev.Kind, ev.Fence = taskstate.Started, ids.Token{Position: e.Position, Version: e.Version + 1, Nonce: h.rng.Uint64()}
			if n == 2 {
				ev.Limits = typeSend
			}
			grabs.Events = append(grabs.Events, ev)
		}
	}
	for _, m := range h.lanes[max(0, len(h.lanes)-2):] { // of a trigger that an owner before has sent
		if m.tasks[0].Order() == nil && h.rng.IntN(4) == 0 {
			grabs.Events = append(grabs.Events, taskstate.Event{Kind: taskstate.Started, ID: m.tasks[0].ID, Fence: ids.Token{Position: m.position(), Version: 1, Nonce: 7}})
		}
	}
	add(grabs)
	add(others)
}

// stored ends the turn that is under way: it is stored, or the log will not take it.
func (h *ownership) stored(ok bool) {
	turn := h.under
	if turn == nil {
		return
	}
	report, carries := Stored{Kind: JobAppend}, h.sent != nil
	if h.under = nil; ok {
		h.turns = append(h.turns, turn)
		h.step(turn.copied())
	} else {
		report.Refused = h.sent
		h.step(TurnRefused{turn.Admitted})
	}
	if carries {
		h.step(report)
	}
}

func (h *ownership) tick() {
	h.now.MS += h.rng.Int64N(3000)
	h.step(Tick{})
	if h.save != nil && h.rng.IntN(3) > 0 {
		h.saved, h.save = *h.save, nil
		h.now.Mono += LeaseFor / 2
		h.step(Saved{OK: true, SentAt: h.now.Mono})
	}
}

// write carries a job out; report tells.
func (h *ownership) write(kind JobKind) {
	if h.jobs[kind] == nil || h.written[kind] {
		return
	}
	h.written[kind] = true
	for _, e := range h.jobs[kind] {
		stay := Stay{e.ID, e.Parkings}
		store := [...]map[Stay]*stored{h.archive, h.timer}[kind]
		if h.storeSeq++; store[stay] != nil {
			h.fail("stay %d of task %s, %s, is stored twice", stay.Parkings, name(e.ID), e.State)
		}
		put(store, stay, h.storeSeq, &e.Task)
	}
}

func (h *ownership) report(kind JobKind) {
	if h.written[kind] {
		h.written[kind], h.jobs[kind] = false, nil
		h.step(Stored{Kind: kind, Seq: h.storeSeq})
	}
}

// look answers what waits behind a lane without room: somebody else's messages.
func (h *ownership) look() {
	if len(h.looks) > 0 {
		look := h.looks[0]
		h.looks = h.looks[1:]
		h.step(Looked{Look: look, All: 2, Own: 1})
	}
}
