package replica

import (
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func carryConfig() Config {
	return Config{
		Shards: 1, WindowTasks: 1000, WindowBytes: 1 << 20, CheckpointEveryMS: 1 << 50, PurgeEveryMS: 1, CarryRecords: 10, CarryBytes: 1 << 40,
	}
}

// carriedOf are the tasks that a tick proposes to carry.
func (b *bench) carriedOf() (numbers []int) {
	b.Helper()
	b.now.MS++
	fx := b.step(Tick{})
	for _, p := range fx.Append {
		if p.Kind == taskstate.Carried {
			numbers = append(numbers, int(p.ID[15]))
		}
	}
	testkit.Equal(b, "counted", fx.Counts.Carried, int64(len(numbers)))
	return numbers
}

func (b *bench) beats(n, times int) {
	for range times {
		b.finish(taskstate.Heartbeat, n)
	}
}

// TestCarryBounds: what lies behind the floor is bounded by records and by bytes, and so are the
// lanes; the older half of what is too much is carried, oldest first, each once (R16).
func TestCarryBounds(t *testing.T) {
	b := newBench(t, carryConfig())
	b.submit(nil, 2, 1)
	b.start(1)
	b.beats(1, 8)
	b.submit(nil, 3)
	b.start(3)
	b.beats(3, 1)
	b.equal("ten behind the floor, and the sample itself", b.carriedOf(), nil)
	b.beats(3, 1)
	b.equal("one more: the older half, in the order of the log", b.carriedOf(), []int{2, 1})
	b.step(Stored{Kind: JobAppend})
	b.equal("each once at a time", b.carriedOf(), nil)

	cfg := carryConfig()
	cfg.CarryBytes, cfg.CarryRecords = 100, 1000
	b = newBench(t, cfg)
	b.submit(nil, 1)
	b.start(1)
	b.beats(1, 10)
	b.equal("a hundred bytes", b.carriedOf(), nil)
	b.beats(1, 1)
	b.equal("more", b.carriedOf(), []int{1})
	state := cloneTask(b.r.Get(id(1)))
	b.step(Stored{Kind: JobAppend})
	b.carries(&state, state.Position, b.seq)
	b.beats(1, 20)
	b.equal("twice what the carried ones take is always allowed", b.carriedOf(), nil)
	b.beats(1, 2*b.r.tasks[id(1)].Footprint()/10)
	b.equal("more than that", b.carriedOf(), []int{1})
}

// TestCarryOfLanes: a lane that spans too much is carried though no event follows.
func TestCarryOfLanes(t *testing.T) {
	cfg := carryConfig()
	cfg.WindowTasks, cfg.CarryRecords = 2, 3
	b := newBench(t, cfg)
	b.submit(nil, 1)
	b.submit(nil, 2)
	b.submit(nil, 3)
	b.submit(nil, 4)
	b.equal("twice the window", b.carriedOf(), nil)
	b.submit(nil, 5)
	b.equal("one more", b.carriedOf(), []int{1, 2, 3})

	cfg.CarryRecords = 5
	b = newBench(t, cfg)
	for n := 1; n <= 5; n++ {
		b.submit(nil, n)
	}
	b.equal("five, and the window is two", b.carriedOf(), nil)
	b.submit(nil, 6)
	b.equal("one more than that", b.carriedOf(), []int{1, 2, 3})

	for _, bytes := range []struct{ window, carry int }{{10, 30}, {15, 5}} {
		cfg.WindowTasks, cfg.WindowBytes, cfg.CarryBytes = 1000, int64(bytes.window), uint64(bytes.carry)
		b = newBench(t, cfg)
		for n := 1; n <= 3; n++ {
			b.submit(nil, n)
		}
		b.equal("thirty bytes", b.carriedOf(), nil)
		b.submit(nil, 4)
		b.equal("forty", b.carriedOf(), []int{1, 2})
	}
}

// TestACarriedRecordIsVoidIfItMissesAnEvent: also one that is read twice, or claims to have seen itself.
func TestACarriedRecordIsVoidIfItMissesAnEvent(t *testing.T) {
	for _, c := range []struct {
		task  int
		asOf  uint64
		taken bool
	}{
		{1, 1, false}, {1, 2, true}, {1, 3, true}, {1, 4, false}, // its last event is 2
		{2, 1, false}, {2, 2, true}, // event 2 was read before it came, and may concern it
	} {
		b := newBench(t, carryConfig())
		b.submit(nil, 1)
		b.start(1)
		b.submit(nil, 2)
		task := *b.r.Get(id(c.task))
		carried := &Events{
			Seq: 4, Events: []taskstate.Event{{Kind: taskstate.Carried, ID: task.ID, Fence: ids.Token{Position: task.Position}}},
			Carried: map[int]*Carried{0: {Entry: &Entry{Task: task}, AsOf: c.asOf}},
		}
		b.step(carried)
		carried.Seq = 5
		if c.asOf < 4 {
			b.step(carried)
		}
		if e := b.r.tasks[task.ID]; e.pinned != c.taken || e.pinned && e.pin != c.asOf {
			t.Errorf("task %d as of %d: pinned %v at %d", c.task, c.asOf, e.pinned, e.pin)
		}
	}
}

// TestCarriedTasksDoNotFeedThemselves: the carried records are events themselves, and many tasks
// that run for long are not rewritten forever. What runs takes no room (R16).
func TestCarriedTasksDoNotFeedThemselves(t *testing.T) {
	b := newBench(t, carryConfig())
	for n := 1; n <= 20; n++ {
		b.submit(nil, n)
		b.start(n)
	}
	written := 0
	for range 40 {
		b.now.MS++
		fx := b.step(Tick{})
		b.step(Stored{Kind: JobAppend})
		for _, p := range fx.Append {
			written++
			b.seq++
			task := *p.Carried
			b.step(&Events{Seq: b.seq, At: b.now.MS, Bytes: 10, Events: []taskstate.Event{
				{Kind: taskstate.Carried, ID: p.ID, Fence: p.Fence},
			}, Carried: map[int]*Carried{0: {Entry: &Entry{Task: task}, AsOf: p.AsOf}}})
		}
	}
	if written > 80 {
		t.Errorf("%d records for 20 tasks", written)
	}
	if w := b.r.rooms[3]; w.tasks > 10 || len(b.r.pinned) < 10 {
		t.Errorf("%+v, %d pinned", w, len(b.r.pinned))
	}
	b.finish(taskstate.Released, 1)
	if e := b.r.tasks[id(1)]; e.pinned && e.charged == 0 {
		t.Error("a carried task that is ready takes room")
	}
}

// TestCarryJobIsBounded in bytes and in tasks.
func TestCarryJobIsBounded(t *testing.T) {
	b := newBench(t, carryConfig())
	b.submit(func(t *taskstate.Task) { t.Payload.Data = make([]byte, carryBytesMax/2) }, 1, 2, 3)
	b.submit(nil, 4)
	b.start(4)
	b.beats(4, 20)
	b.equal("four megabytes", b.carriedOf(), []int{1})

	b = newBench(t, carryConfig())
	b.submit(nil, 9)
	half := carryBytesMax/2 - b.r.Get(id(9)).Footprint()
	b = newBench(t, carryConfig())
	b.submit(func(t *taskstate.Task) { t.Payload.Data = make([]byte, half) }, 1, 2, 3)
	b.submit(nil, 4)
	b.start(4)
	b.beats(4, 20)
	b.equal("just four megabytes", b.carriedOf(), []int{1, 2})

	b = newBench(t, carryConfig())
	var all []int
	for n := range carryTasksMax + 1 {
		all = append(all, n+1)
	}
	b.submit(nil, all...)
	b.start(1)
	b.beats(1, 20)
	testkit.Equal(t, "tasks", len(b.carriedOf()), carryTasksMax)
}

// TestCheckFinds: Check sees what it is there for.
func TestCheckFinds(t *testing.T) {
	for what, spoil := range map[string]func(r *Replica, e *Entry){
		"charged":           func(_ *Replica, e *Entry) { e.charged = 0 },
		"is pinned and not": func(_ *Replica, e *Entry) { e.pinned = true },
		"are pinned":        func(r *Replica, e *Entry) { r.pinned[e.ID] = e },
		"active tasks":      func(r *Replica, e *Entry) { r.lanes[3].Done(e.Position.Seq()) },
		"the room":          func(r *Replica, _ *Entry) { r.rooms[3].bytes++ },
		"an empty list waits": func(r *Replica, e *Entry) {
			r.early.add(command(e, 1))
			r.early.byID[e.ID].waiting, r.early.commands, r.early.ofDomain = nil, 0, nil
		},
		"out of line":      func(r *Replica, e *Entry) { r.early.add(command(e, 1)); r.early.byID[e.ID].id = id(9) },
		"are counted,":     func(r *Replica, _ *Entry) { r.early.commands++ },
		"an empty list of": func(r *Replica, e *Entry) { r.held[e.ID] = nil },
		"a command waits":  func(r *Replica, e *Entry) { r.early.add(command(e, 1)) },
		"out of order": func(r *Replica, e *Entry) {
			other := &Entry{Task: taskstate.Task{ID: id(9)}}
			r.early.add(command(other, 2))
			r.early.add(command(other, 1))
			slices.Reverse(r.early.of(other.ID))
		},
		"tasklist":           func(_ *Replica, e *Entry) { e.column.list.active[taskstate.Ready]++ },
		"counts 2 tasks, it": func(_ *Replica, e *Entry) { e.column.tasks++ },
		"is of shard 2":      func(_ *Replica, e *Entry) { e.Attempt.Shard = 2 },
		"its own shard": func(_ *Replica, e *Entry) {
			e.column.list.elsewhere = map[uint16]*runs{uint16(e.column.list.shard) + 1: {}}
		},
		"to be woken":           func(r *Replica, e *Entry) { r.wake.Set(e, 1) },
		"of 1 stored":           func(r *Replica, _ *Entry) { r.park.queued++ },
		"has a mark":            func(r *Replica, _ *Entry) { r.archive.marks = []mark{{at: 9}} },
		"gone and has not left": func(r *Replica, e *Entry) { r.gone.queue = []goneEntry{{e: e}} },
		"bytes, 7 are counted":  func(r *Replica, _ *Entry) { r.gone.bytes = 7 },
		"nothing demands it": func(r *Replica, e *Entry) {
			h := command(e, 99)
			h.ev = &taskstate.Event{Kind: taskstate.Started, ID: e.ID, Fence: ids.Token{Position: ids.NewPosition(50, 2)}}
			r.early.add(h)
		},
	} {
		b := newBench(t, Config{})
		b.submit(nil, 1)
		spoil(b.r, b.r.tasks[id(1)])
		if err := b.r.Check(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", what, err)
		}
	}
}

func command(e *Entry, seq uint64) *held {
	return &held{ev: &taskstate.Event{Kind: taskstate.Cancel, ID: e.ID}, seq: seq}
}

// TestACarriedRecordThatIsRefusedIsProposedAgain, and no one else is held up by it.
func TestACarriedRecordThatIsRefusedIsProposedAgain(t *testing.T) {
	b := newBench(t, carryConfig())
	b.submit(nil, 1)
	b.submit(nil, 2)
	b.start(2)
	b.beats(2, 20)
	carried := func() []Proposal {
		b.now.MS++
		return b.step(Tick{}).Append
	}
	first := carried()
	if len(first) == 0 || first[0].ID != id(1) {
		t.Fatalf("carried: %v", first)
	}
	b.step(Stored{Kind: JobAppend, Refused: first[:1]})
	again := carried()
	if len(again) != 1 || again[0].ID != id(1) {
		t.Errorf("carried again: %v", again)
	}
	gone := Proposal{Kind: taskstate.Carried, ID: id(9)}
	earlier := Proposal{Kind: taskstate.Carried, ID: id(1)}
	b.step(Stored{Kind: JobAppend, Refused: []Proposal{gone, earlier}})
	if all := carried(); len(all) != 0 {
		t.Errorf("what was not refused is carried again: %v", all)
	}
}

// TestALeaseThatIsRefusedIsProposedAgain after a while.
func TestALeaseThatIsRefusedIsProposedAgain(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	b.start(1)
	b.now.MS += 3_600_000
	expired := b.step(Tick{}).Append
	if len(expired) != 1 || expired[0].Kind != taskstate.Expired {
		t.Fatalf("proposed %v", expired)
	}
	b.step(Stored{Kind: JobAppend, Refused: expired})
	b.now.MS += refusedWaitMS - 1
	if all := b.step(Tick{}).Append; len(all) != 0 {
		t.Errorf("proposed again at once: %v", all)
	}
	b.now.MS++
	if all := b.step(Tick{}).Append; len(all) != 1 || all[0].Fence != expired[0].Fence {
		t.Errorf("proposed again: %v", all)
	}
}

// TestACarriedRecordThatCameTwice: the copy of an older one does not take back what a newer one
// allowed to purge (I12). Seed 111647 of the simulation.
func TestACarriedRecordThatCameTwice(t *testing.T) {
	b := newBench(t, carryConfig())
	b.submit(nil, 1)
	b.start(1)
	task := *b.r.Get(id(1))
	for _, c := range []struct{ seq, asOf, floor uint64 }{{4, 2, 2}, {6, 5, 5}, {8, 2, 5}} {
		b.step(&Events{
			Seq: c.seq, Events: []taskstate.Event{{Kind: taskstate.Carried, ID: task.ID, Fence: ids.Token{Position: task.Position}}},
			Carried: map[int]*Carried{0: {Entry: &Entry{Task: task}, AsOf: c.asOf}},
		})
		if got := b.r.Checkpoint().Floor; got != c.floor {
			t.Errorf("the floor is %d after message %d, want %d", got, c.seq, c.floor)
		}
	}
}

// TestWhatLagsIsCarriedToo: a takeover reads the messages of a domain again, as those of a lane.
func TestWhatLagsIsCarriedToo(t *testing.T) {
	b := lagging(t)
	b.r.cfg.CarryRecords, b.r.cfg.CarryBytes = 10, 1<<40
	b.file(true, 3, "flood", 20)
	for n := range 20 {
		b.file(false, uint64(6+n), "flood", 40+n)
		b.file(true, uint64(6+n), "flood", 40+n)
	}
	b.now.MS += carryEveryMS
	if got := b.carriedOf(); len(got) == 0 || !slices.Contains(got, 20) {
		t.Errorf("carried are %v", got)
	}
}

// TestAHistoryThatIsWrittenStaysAsItWas: a task goes on while its record is on the way to the log, and its history drops what is oldest.
func TestAHistoryThatIsWrittenStaysAsItWas(t *testing.T) {
	var long []taskstate.Step
	for n := range 500 {
		long = append(long, taskstate.Step{Kind: taskstate.StepUpdated, At: int64(n)})
	}
	b := newBench(t, carryConfig())
	b.submit(nil, 1)
	b.start(1)
	b.beats(1, 12)
	b.r.tasks[id(1)].SetSteps(long, 0)
	b.now.MS++
	p := b.step(Tick{}).Append[0]
	b.change(1, taskstate.Update{Policy: &taskstate.Policy{MaxAttempts: 9}})
	if now := b.r.Get(p.ID).Steps; now[4].At != 5 {
		t.Fatalf("its history goes on with %+v", now[4])
	}
	for n, s := range p.Carried.Steps {
		if s.At != int64(n) {
			t.Fatalf("step %d is that of %d", n, s.At)
		}
	}
}

// TestARecordLeavesWhatIsAboutALaterStay to wait for that.
func TestARecordLeavesWhatIsAboutALaterStay(t *testing.T) {
	cp := Checkpoint{}
	cp.Ack[3], cp.Read[3] = 1, 1
	b := &bench{T: t, r: New(newBench(t, Config{}).r.cfg, cp, 0), now: Now{MS: scenarioStart}, seq: 5}
	b.event(taskstate.Started, 1, ids.Token{Position: ids.NewPosition(5, 2), Version: 1})
	state := taskstate.Task{ID: id(1), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy, State: taskstate.Ready}
	b.seq = 7
	b.carries(&state, ids.NewPosition(1, 3), 7)
	if b.r.Get(id(1)) == nil || len(b.r.early.of(id(1))) != 1 {
		t.Errorf("the task is %+v, %d events wait", b.r.Get(id(1)), len(b.r.early.of(id(1))))
	}
}

// carries reads the record of a task at a place.
func (b *bench) carries(state *taskstate.Task, at ids.Position, asOf uint64) *Effects {
	b.Helper()
	task := cloneTask(state)
	task.Position, task.Before = at, 0
	b.seq++
	return b.step(&Events{
		Seq: b.seq, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Carried, ID: task.ID, Fence: ids.Token{Position: at}}},
		Carried: map[int]*Carried{0: {Entry: &Entry{Task: task}, AsOf: asOf}},
	})
}
