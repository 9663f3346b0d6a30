package simulation

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// timeout is how long an owner waits for an answer.
const timeout = 2 * time.Second

// proc is one process with a history owner in it.
type proc struct {
	host
	w     *world
	owner *historysim.Owner
	// sent is what matching owners have sent it and has not arrived, by the sender.
	sent map[any][]*historysim.Message
	// spread is how many partitions tasklists have, as far as it knows.
	spread spread
	// behind is how late it hears of changes of types.
	behind time.Duration
	// epoch is the one under which it has sent last.
	epoch uint64
	// lease is until when its checkpoints let it go on, by its clock that does not jump.
	lease time.Duration
}

func (w *world) spawn() *proc {
	w.born++
	p := &proc{host: w.newHost(w.named(fmt.Sprintf("owner-%d", w.born)), pauses), w: w, spread: maps.Clone(w.match.spread), sent: map[any][]*historysim.Message{}}
	p.owner = historysim.New(p.name, historysim.Config{
		Shards: shards, WindowTasks: w.plan.window, WindowBytes: 1 << 20, CheckpointEveryMS: 500, PurgeEveryMS: 700,
		SnapshotBytes: w.plan.snapshot, SnapshotEveryMS: 5000, JobTasks: w.plan.job,
		Partitions: func(domain, tasklist string) int { return p.spread.count(domain, tasklist) },
		FullWeight: func(domain string) historysim.FullWeight {
			if domain == flood && w.plan.has(lowRates) {
				return historysim.FullWeight{PerSecond: 0.5}
			}
			return historysim.FullWeight{}
		},
	}, p)
	if w.plan.has(typeChanges) {
		p.behind = w.dice.upTo(2 * time.Second)
	}
	w.procs = append(w.procs, p)
	w.say(p.name, "starts, wall clock %+v", p.wall)
	p.do(0, p.owner.Start)
	return p
}

func (p *proc) kill() {
	p.dead = true
	p.owner.Kill()
}

// After is part of historysim.Host.
func (p *proc) After(d time.Duration, do func()) { p.do(d+p.w.dice.upTo(3*time.Millisecond), do) }

// Now is part of historysim.Host.
func (p *proc) Now() historysim.Now {
	return historysim.Now{MS: p.wallMS(), Mono: p.mono() + time.Hour}
}

// Pick is part of historysim.Host.
func (p *proc) Pick(n int) int { return p.w.dice.IntN(n) }

// Fault is part of historysim.Host.
func (p *proc) Fault(format string, args ...any) { p.w.violated(format, args...) }

// Applied is part of historysim.Host.
func (p *proc) Applied(m *historysim.Message) {
	if p.Now().Mono >= p.lease {
		p.w.violated("I12: %s applies %d without a lease", p.name, m.Seq)
	}
}

// Ended is part of historysim.Host.
func (p *proc) Ended(why string) {
	p.w.say(p.name, "ends: %s", why)
	if why == historysim.TakenOver && p.w.checkpoint.Epoch == p.epoch {
		p.w.violated("I11: %s is %s, and no newer owner is there", p.name, why)
	}
	if halted := strings.HasPrefix(why, historysim.Halted); halted && p.w.unknownAt == 0 {
		p.w.violated("%s %s", p.name, why)
	} else if halted {
		p.w.halts++
	}
	p.dead = true
	p.w.replace()
}

// Send is part of historysim.Host: the operation leaves, arrives, happens, is answered; each
// can fail.
func (p *proc) Send(op *historysim.Op) {
	p.epoch = op.Epoch
	sentAt := p.Now().Mono
	p.do(p.w.dice.upTo(time.Millisecond), func() { p.leave(op, sentAt) })
}

func (p *proc) leave(op *historysim.Op, sentAt time.Duration) {
	w, onTheWay := p.w, time.Duration(0)
	if w.script != nil {
		hold, travel := w.script(p, op)
		if hold > 0 {
			p.do(hold, func() { p.leave(op, sentAt) })
			return
		}
		onTheWay = travel
	}
	answered := false
	answer := func(out historysim.Outcome) {
		p.do(p.latency(), func() {
			if !answered {
				answered = true
				op.Done(out)
			}
		})
	}
	if answeredInTime(op.Kind) {
		p.do(timeout, func() {
			if !answered {
				answered = true
				w.say(p.name, "%v: unknown", op.Kind)
				op.Done(historysim.Outcome{Result: historysim.Unknown})
			}
		})
	}
	times := 1
	if changes(op.Kind) {
		if w.fault(lostWrites, 40) {
			w.say(p.name, "%v is lost", op.Kind)
			return
		}
		if w.fault(doubledWrites, 30) {
			times = 2
		}
	}
	for range times {
		w.after(onTheWay+p.latency(), func() { p.arrive(op, sentAt, answer) })
	}
}

// answeredInTime tells whether an operation fails that is not answered: not a reader's, nor
// one that no one answers.
func answeredInTime(k historysim.OpKind) bool {
	switch k {
	case historysim.FetchLane, historysim.Hints, historysim.Reply:
		return false
	}
	return true
}

// changes tells whether an operation writes.
func changes(k historysim.OpKind) bool {
	switch k {
	case historysim.SaveCheckpoint, historysim.AppendFence, historysim.AppendArchive, historysim.Park, historysim.AppendTurn, historysim.Purge,
		historysim.StoreLetters, historysim.DropLetters, historysim.SaveSnapshot, historysim.ForgetSnapshots:
		return true
	}
	return false
}

// arrive carries an operation out.
func (p *proc) arrive(op *historysim.Op, sentAt time.Duration, answer func(historysim.Outcome)) {
	w := p.w
	if refusing, writes := storeOf(op.Kind); op.Kind != historysim.Hints && op.Kind != historysim.Reply &&
		(w.now < w.down || writes && w.refuses(refusing)) {
		answer(historysim.Outcome{Result: historysim.Refused})
		return
	}
	switch op.Kind {
	case historysim.FetchLane:
		p.read(op, answer)
		return
	case historysim.Hints:
		w.match.hints(w, op)
		return
	case historysim.Reply:
		w.answered(p, op.Answer)
		return
	case historysim.AskTimer:
		w.askTimer(op, answer)
		return
	}
	if expects(op.Kind) && w.plan.has(threeServers) {
		w.propose(&proposal{p, op, sentAt, answer})
		return
	}
	p.finish(op, sentAt, answer)
}

// finish carries out what its store accepts, and answers.
func (p *proc) finish(op *historysim.Op, sentAt time.Duration, answer func(historysim.Outcome)) {
	w, out := p.w, p.carryOut(op)
	if op.Kind == historysim.SaveCheckpoint && out.Result == historysim.OK {
		p.lease = max(p.lease, sentAt+historysim.LeaseFor)
	}
	if op.Kind == historysim.Park || op.Kind == historysim.AppendFence {
		w.wakeTimers()
	}
	if changes(op.Kind) {
		p.tell(op, out)
		if w.fault(unknownOutcomes, 40) {
			return
		}
	}
	answer(out)
}

// read answers a reader once there is something.
func (p *proc) read(op *historysim.Op, answer func(historysim.Outcome)) {
	if p.dead {
		return
	}
	subject := int(op.Lane)
	if all, ok := p.w.fetch(subject, op.Place, op.From); ok {
		answer(historysim.Outcome{Messages: all})
		return
	}
	p.w.waiters[subject] = append(p.w.waiters[subject], func() {
		p.w.after(p.latency(), func() { p.read(op, answer) })
	})
}

// storeOf is the store that an operation adds to.
func storeOf(k historysim.OpKind) (store, bool) {
	switch k {
	case historysim.AppendTurn, historysim.SaveSnapshot:
		return logFull, true
	case historysim.AppendArchive, historysim.StoreLetters:
		return archiveFull, true
	case historysim.AppendFence, historysim.Park:
		return timerFull, true
	}
	return 0, false
}

func (p *proc) carryOut(op *historysim.Op) historysim.Outcome {
	w := p.w
	switch op.Kind {
	case historysim.LoadCheckpoint:
		return historysim.Outcome{Stored: w.checkpoint, Revision: w.revision}
	case historysim.SaveCheckpoint:
		return w.save(op)
	case historysim.SaveSnapshot:
		w.snapshots[snapshotName{op.Snapshot.Epoch, op.Snapshot.Seq}] = op.Chunks
	case historysim.LoadSnapshot:
		return historysim.Outcome{Chunks: w.snapshots[snapshotName{op.Snapshot.Epoch, op.Snapshot.Seq}]}
	case historysim.ForgetSnapshots:
		w.forgetSnapshots(op)
	case historysim.AppendFence:
		return w.raiseFence(op)
	case historysim.ReadFence:
		return historysim.Outcome{Seq: w.waiting.fence}
	case historysim.ReadTimer:
		return w.timerTail(op.From)
	case historysim.ReadArchive:
		return w.readArchive(op.From)
	case historysim.ReadEnds:
		return w.ends()
	case historysim.ReadLog:
		return historysim.Outcome{Messages: w.readLog(op)}
	case historysim.Count:
		return w.count(op)
	case historysim.AppendArchive:
		return w.appendArchive(op)
	case historysim.Park:
		return w.park(p, op)
	case historysim.AppendTurn:
		return w.appendTurn(op)
	case historysim.ReadLastTurn:
		return w.readLastTurn()
	case historysim.StoreLetters:
		w.storeLetters(op.Tasks)
	case historysim.DropLetters:
		w.dropLetters(op.Letters)
	case historysim.AskLetter:
		return w.askLetter(op.Search)
	case historysim.AskArchive:
		return w.askArchive(op.Search)
	case historysim.AskUnread:
		return w.unread(op)
	case historysim.Purge:
		w.purge(p, op.Levels)
	}
	return historysim.Outcome{}
}

// tell writes down a change.
func (p *proc) tell(op *historysim.Op, out historysim.Outcome) {
	w := p.w
	if !w.telling {
		return
	}
	what := ""
	switch op.Kind {
	case historysim.SaveCheckpoint:
		c := op.Checkpoint
		what = fmt.Sprintf("epoch %d snapshot of %d by %d", c.Epoch, c.Snapshot.Seq, c.Snapshot.Epoch)
	case historysim.SaveSnapshot, historysim.ForgetSnapshots:
		what = fmt.Sprintf("of turn %d by epoch %d, %d bytes", op.Snapshot.Seq, op.Snapshot.Epoch, op.Snapshot.Bytes)
	case historysim.Park, historysim.AppendArchive, historysim.StoreLetters:
		for i := range op.Tasks {
			what += fmt.Sprintf(" %s %v stay %d", w.name(op.Tasks[i].ID), op.Tasks[i].State, op.Tasks[i].Parkings)
		}
	case historysim.AppendTurn:
		what = fmt.Sprintf("turn %d of epoch %d behind %d:", op.Name.Number, op.Name.Epoch, op.Expected)
		for _, m := range op.Turn {
			for i := range m.Events {
				e := &m.Events[i]
				what += fmt.Sprintf(" %v %s %v", e.Kind, w.name(e.ID), fence(e))
			}
		}
	case historysim.DropLetters:
		for _, l := range op.Letters {
			what += fmt.Sprintf(" %s up to %d", w.name(l.ID), l.Seq)
		}
	case historysim.Purge:
		what = fmt.Sprintf("%v", op.Levels)
	}
	w.say(p.name, "%v: %v %d: %s", op.Kind, out.Result, out.Seq, what)
}

func fence(e *historysim.Event) string {
	return fmt.Sprintf("at %d.%d v%d n%d", e.Fence.Position.Seq(), e.Fence.Position.Lane(), e.Fence.Version, e.Fence.Nonce)
}
