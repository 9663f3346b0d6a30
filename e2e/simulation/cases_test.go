package simulation

import (
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// scripted is a case written by hand: what was once seen to go wrong, step by step.
type scripted struct {
	name string
	// length is how long the script is.
	length time.Duration
	play   func(w *world)
	// ends is how its first task ends.
	ends historysim.State
}

// TestCases plays what the reviews of older versions have seen, by their ids. The README names the
// safeguard without which each of them fails.
func TestCases(t *testing.T) {
	for _, s := range cases {
		t.Run(s.name, func(t *testing.T) {
			for seed := range uint64(testkit.Rounds(t, 12, 3)) {
				w := newWorld(plan{seed: seed, length: s.length, window: 100, snapshot: 1 << 40, chunk: 10, job: 100}, true)
				s.play(w)
				broken := w.run()
				if broken == "" && w.archived[w.order[0]].State != s.ends {
					broken = "it ends otherwise"
				}
				if broken != "" {
					t.Fatalf("seed %d: %s\n%s", seed, broken, strings.Join(w.lines, "\n"))
				}
			}
		})
	}
}

var cases = []scripted{
	{"R10 events of a stay that is not read", 4 * time.Second, caseR10, historysim.Completed},
	{"R11 a stale owner and a hole in the log", 30 * time.Second, caseR11, historysim.Completed},
	{"R13 started and cancel before the submit", 4 * time.Second, caseR13, historysim.Completed},
	{"R14 a late park", 30 * time.Second, caseR14, historysim.Completed},
	{"R14 a park that no checkpoint knows", 10 * time.Second, caseR14Unknown, historysim.Completed},
	{"R24 a park of a stopped owner after a cancel", 60 * time.Second, caseR24, historysim.Cancelled},
	{"R25 a cancel of what has ended", 12 * time.Second, caseR25, historysim.Completed},
	{"R27 an archived task whose owner died", 8 * time.Second, caseR27, historysim.Completed},
	{"R27 a late write to the archive", 8 * time.Second, caseR27Late, historysim.Completed},
	{"I6 a fired task is to fire early, says an overtaken timer", 8 * time.Second, caseI6Fired, historysim.Completed},
	{"I6 a task is to fire early, says an overtaken timer, and it is due", 8 * time.Second, caseI6Fires, historysim.Completed},
}

// at lets something happen at an instant of the script.
func (w *world) at(t time.Duration, do func()) { w.after(t-w.now, do) }

// submitOne submits a task, due after a delay.
func (w *world) submitOne(delay time.Duration) ids.TaskID {
	return w.submitAt(w.match.someTask(), delay)
}

// submitAt submits a task that belongs somewhere.
func (w *world) submitAt(at task, delay time.Duration) ids.TaskID {
	m := &historysim.Message{Lane: 3}
	id := w.addTask(m, int(m.Lane), false, at)
	if delay > 0 {
		m.Lane, m.Tasks[0].DueAt = ids.LaneLater, w.serverMS()+delay.Milliseconds()
	}
	w.say("client", "submits %s to lane %v at %d: %s/%s %s", w.name(id), m.Lane, w.appendLog(m), at.domain, at.tasklist, at.typ)
	return id
}

// takeOver kills all owners and begins another one.
func (w *world) takeOver() {
	for _, p := range w.procs {
		p.kill()
	}
	w.spawn()
}

// hold holds operations of the first owner back from an instant on until another one.
func hold(w *world, kind historysim.OpKind, from, until time.Duration) {
	before := w.script
	w.script = func(p *proc, op *historysim.Op) (hold, travel time.Duration) {
		if p == w.procs[0] && op.Kind == kind && w.now >= from && w.now < until {
			return until - w.now, 0
		}
		if before != nil {
			return before(p, op)
		}
		return 0, 0
	}
}

// caseR10: the checkpoint has read the first stay, which is still on its way to the timer. The task
// fires, runs and completes, and the owner dies. The next one reads the events of the second stay
// before its submit, and remembers the first.
func caseR10(w *world) {
	w.at(100*time.Millisecond, func() { w.submitOne(1200 * time.Millisecond) })
	hold(w, historysim.Park, 0, time.Second)
	hold(w, historysim.SaveCheckpoint, 650*time.Millisecond, time.Minute)
	w.work = 100 * time.Millisecond
	w.at(2300*time.Millisecond, w.takeOver)
}

// caseR11: an owner is stopped after it has sent a trigger. Another one grants, completes and purges;
// then the first one reads on behind the hole.
func caseR11(w *world) {
	w.at(100*time.Millisecond, func() { w.submitOne(0) })
	w.at(150*time.Millisecond, func() { w.procs[0].pause(20 * time.Second) })
	w.at(3*time.Second, func() { w.spawn() })
	w.at(15*time.Second, func() { w.submitOne(0) })
}

// caseR13: a task is granted, and cancelled while it runs; then its owner dies, and the next one
// reads both before the submit. It runs on.
func caseR13(w *world) {
	w.work = 900 * time.Millisecond
	hold(w, historysim.SaveCheckpoint, 650*time.Millisecond, time.Minute)
	w.at(700*time.Millisecond, func() {
		id := w.submitOne(0)
		w.after(300*time.Millisecond, func() { w.cancel(id, w.accepted[id].domain) })
	})
	w.at(1300*time.Millisecond, w.takeOver)
}

// caseR14: a park is on its way for long. The next owner parks the same stay; it fires and completes,
// and its bucket is purged. Then the late one arrives, and another timer loads the store.
func caseR14(w *world) {
	w.script = func(p *proc, op *historysim.Op) (hold, travel time.Duration) {
		if p == w.procs[0] && op.Kind == historysim.Park {
			travel = 10 * time.Second
		}
		return 0, travel
	}
	w.at(100*time.Millisecond, func() { w.submitOne(3 * time.Second) })
	w.at(500*time.Millisecond, w.takeOver)
	w.at(4*time.Second, func() { w.submitOne(70 * time.Second) })
	w.at(15*time.Second, func() {
		w.timers[0].dead = true
		w.spawnTimer()
	})
}

// caseR14Unknown: what an owner has parked fires before it has saved a checkpoint, and it dies with its
// timer. Until the next owner knows of it, it stays in the timer store.
func caseR14Unknown(w *world) {
	hold(w, historysim.SaveCheckpoint, 500*time.Millisecond, time.Minute)
	w.at(600*time.Millisecond, func() {
		w.submitOne(500 * time.Millisecond)
		w.submitOne(70 * time.Second)
	})
	w.at(4*time.Second, func() {
		w.timers[0].dead = true
		w.spawnTimer()
		w.takeOver()
	})
}

// caseR24: an owner is stopped before it has parked a task. The next one parks it, it is cancelled,
// and its bucket is purged. Then the first one goes on.
func caseR24(w *world) {
	hold(w, historysim.Park, 0, 200*time.Millisecond)
	w.at(100*time.Millisecond, func() { w.submitOne(40 * time.Second) })
	w.at(150*time.Millisecond, func() { w.procs[0].pause(30 * time.Second) })
	w.at(3*time.Second, func() { w.spawn() })
	w.at(4*time.Second, func() { w.cancel(w.order[0], w.accepted[w.order[0]].domain) })
	w.at(6*time.Second, func() { w.submitOne(70 * time.Second) })
}

// caseR25: a delayed task has completed, and its owner, which remembers it, is gone. A cancel hears
// that it has ended, and leaves nothing behind.
func caseR25(w *world) {
	w.at(100*time.Millisecond, func() { w.submitOne(time.Second) })
	w.at(6*time.Second, w.takeOver)
	w.at(8*time.Second, func() { w.cancel(w.order[0], w.accepted[w.order[0]].domain) })
}

// caseR27: the owner dies before it hears that its task is in the archive.
func caseR27(w *world) {
	w.at(100*time.Millisecond, func() { w.submitOne(0) })
	w.script = func(p *proc, op *historysim.Op) (hold, travel time.Duration) {
		if op.Kind == historysim.AppendArchive {
			w.script = nil
			p.pause(time.Second)
			w.after(100*time.Millisecond, w.takeOver)
		}
		return 0, 0
	}
}

// caseR27Late: the owner dies, and then what it has sent comes to the archive, while the next one
// archives too.
func caseR27Late(w *world) {
	w.at(100*time.Millisecond, func() { w.submitOne(0) })
	w.script = func(p *proc, op *historysim.Op) (hold, travel time.Duration) {
		if p == w.procs[0] && op.Kind == historysim.AppendArchive {
			w.script = nil
			travel = 800 * time.Millisecond
			w.after(50*time.Millisecond, w.takeOver)
		}
		return 0, travel
	}
}

// overtakenTimers begins three timer owners with one cursor. The clocks of two are behind, and the third
// fires a second task at 2 s. The first task of the run is due at 3 s.
func overtakenTimers(w *world) {
	behind := func(p *timerProc) { p.wall = -time.Hour }
	w.at(0, func() { behind(w.timers[0]) })
	w.at(100*time.Millisecond, func() {
		w.submitOne(2900 * time.Millisecond)
		w.submitOne(1900 * time.Millisecond)
		id := w.submitOne(70 * time.Second)
		w.at(time.Second, func() { w.cancel(id, w.accepted[id].domain) })
	})
	w.at(1500*time.Millisecond, func() {
		w.spawnTimer()
		behind(w.timers[1])
		w.spawnTimer()
	})
}

// askOvertaken asks the two that were overtaken to fire the first task early: one stores its message, the other reads it.
func askOvertaken(w *world, at time.Duration) {
	for i, p := range []int{1, 0} {
		w.at(at+time.Duration(i)*200*time.Millisecond, func() {
			w.timers[p].ask(&historysim.Op{Search: historysim.Search{ID: w.order[0], Command: true}}, func(historysim.Outcome) {})
		})
	}
}

// caseI6Fired: the first task has been fired when the overtaken ones are asked.
func caseI6Fired(w *world) {
	overtakenTimers(w)
	askOvertaken(w, 4*time.Second)
}

// caseI6Fires: the third one is stopped when the overtaken ones are asked, and fires the first task
// before it reads the early message.
func caseI6Fires(w *world) {
	overtakenTimers(w)
	w.at(2500*time.Millisecond, func() { w.timers[2].pause(3 * time.Second) })
	askOvertaken(w, 3500*time.Millisecond)
	w.at(4500*time.Millisecond, func() { w.timers[2].turn() })
}

// TestI13_NoOwnerPassesAnUnknownKind: events of a kind that this version does not know stop each
// owner in its takeover. None answers what lies behind, no checkpoint passes it, and it is not
// purged. R21.
func TestI13_NoOwnerPassesAnUnknownKind(t *testing.T) {
	for seed := range uint64(testkit.Rounds(t, 30, 8)) {
		w := newWorld(plan{seed: seed, tasks: 30, length: 10 * time.Second, window: 20, snapshot: 4000, chunk: 5, job: 5}, true)
		w.begin()
		w.at(w.dice.between(time.Second, 8*time.Second), func() {
			later := historysim.Event{Kind: historysim.Displace + 1, ID: ids.TaskID{1}}
			w.unknownAt = w.appendLog(&historysim.Message{Event: true, Events: []historysim.Event{later}})
			w.log[w.unknownAt-1].Last = w.unknownAt
			w.lastTurn, w.turn = historysim.TurnName{}, nil
			w.powerCut()
		})
		w.until(20*time.Second, func() bool { return false })
		switch cp := w.checkpoint; {
		case w.broken != "":
			t.Fatalf("seed %d: %s\n%s", seed, w.broken, strings.Join(w.lines, "\n"))
		case w.halts < 2 || cp.Snapshot.Seq >= w.unknownAt || w.log[w.unknownAt-1].Purged:
			t.Fatalf("seed %d: %d owners have stopped at %d, the checkpoint is %+v", seed, w.halts, w.unknownAt, cp)
		}
	}
}
