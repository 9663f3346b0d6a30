package simulation

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

const (
	// calmMost is how long a run may take to end once there are no more faults.
	calmMost = 5 * time.Minute
	// settle is how long a run goes on after its end, for what is still on its way.
	settle = 40 * time.Second
	// linesMost bounds the log of a run.
	linesMost = 20_000
)

// world is one run.
type world struct {
	clock
	stores
	dice  dice
	plan  plan
	check *checker
	match *matching

	// faulty: faults happen; calmMS is since when they do not, by the server's clock.
	faulty bool
	calmMS int64
	procs  []*proc
	born   int
	timers []*timerProc
	// timersBorn counts the timer owners.
	timersBorn int
	// down is until when the stores are away.
	down time.Duration

	// script holds an operation of a history owner back in its process, or on its way to the store;
	// nil = none does.
	script func(p *proc, op *historysim.Op) (hold, travel time.Duration)
	// work is how long a worker takes; 0 = up to 400 ms.
	work time.Duration

	// unknownAt is where a record lies that no owner can read, 0 = nowhere; halts counts the owners
	// that have stopped there.
	unknownAt uint64
	halts     int

	accepted map[ids.TaskID]bool
	order    []ids.TaskID
	names    map[ids.TaskID]string

	telling bool
	lines   []string
	// broken is the first violation.
	broken string
	steps  int
}

func newWorld(p plan, telling bool) *world {
	w := &world{
		dice: newDice(p.seed), plan: p, faulty: true, telling: telling,
		accepted: map[ids.TaskID]bool{}, names: map[ids.TaskID]string{},
	}
	w.archived, w.waiting, w.decoder = map[ids.TaskID]*historysim.Task{}, newTimerStore(), historysim.NewDecoder()
	w.epochMS = firstEpochMS + w.dice.Int64N(60_000)
	w.check = newChecker(w)
	w.match = newMatching(w)
	return w
}

func (w *world) fault(f faults, permille int) bool {
	return w.faulty && w.plan.has(f) && w.dice.chance(permille)
}

// say writes a line of the run's log.
func (w *world) say(who, format string, args ...any) {
	if !w.telling || len(w.lines) >= linesMost {
		return
	}
	w.lines = append(w.lines, fmt.Sprintf("%9.3f %-8s %s", w.now.Seconds(), who, fmt.Sprintf(format, args...)))
}

// violated notes a violation and ends the run.
func (w *world) violated(format string, args ...any) {
	if w.broken != "" {
		return
	}
	w.broken = fmt.Sprintf(format, args...)
	w.say("CHECK", "%s", w.broken)
}

func (w *world) name(id ids.TaskID) string {
	if n, ok := w.names[id]; ok {
		return n
	}
	return id.String()
}

// run lets the plan happen and returns the first violation.
func (w *world) run() string {
	w.begin()
	w.until(w.plan.length, func() bool { return false })
	w.calm()
	w.until(w.now+calmMost, func() bool { return w.check.allEnded() })
	w.check.progress()
	w.until(w.now+settle, func() bool { return false })
	w.check.end()
	return w.broken
}

// until lets time pass.
func (w *world) until(end time.Duration, enough func() bool) {
	for w.broken == "" && w.now < end && !enough() {
		if !w.step() {
			w.violated("nothing happens any more")
		}
	}
}

func (w *world) step() (more bool) {
	defer func() {
		if v := recover(); v != nil {
			w.violated("panic: %v", v)
			if w.telling {
				w.say("PANIC", "%s", debug.Stack())
			}
		}
	}()
	w.steps++
	return w.next()
}

func (w *world) begin() {
	w.spawn()
	w.spawnTimer()
	w.submitSome(w.plan.tasks)
	w.trouble()
	w.match.hungry()
}

// calm ends all faults: what is paused or skewed is replaced by one healthy owner. An owner that
// is healthy goes on: a takeover would heal what it has to.
func (w *world) calm() {
	w.say("world", "no more faults")
	w.faulty, w.down, w.fullUntil = false, 0, [storesEnd]time.Duration{}
	w.calmMS = w.serverMS()
	w.calmTimers()
	if all := w.living(); len(all) == 1 && w.plan.faults&changesOfOwner == 0 && all[0].wall == 0 {
		return
	}
	for _, p := range w.procs {
		p.kill()
	}
	w.spawn()
}

func (w *world) calmTimers() {
	if all := w.livingTimers(); len(all) == 1 && !w.plan.has(timerPauses) && all[0].wall == 0 {
		return
	}
	for _, p := range w.timers {
		p.dead = true
	}
	w.spawnTimer()
}

// trouble makes what no single operation decides.
func (w *world) trouble() {
	if !w.faulty {
		return
	}
	w.after(w.dice.between(50*time.Millisecond, 500*time.Millisecond), w.trouble)
	for _, p := range w.living() {
		switch {
		case w.fault(pauses, 30):
			d := w.dice.upTo(time.Second)
			if w.dice.chance(400) {
				d = w.dice.upTo(30 * time.Second)
			}
			p.pause(d)
		case w.fault(crashes, 10):
			w.say(p.name, "is killed")
			p.kill()
			w.replace()
		case w.fault(drains, 10):
			w.say(p.name, "drains")
			p.owner.Drain()
		}
	}
	if w.fault(rivals, 30) && len(w.living()) < 3 {
		w.spawn()
	}
	if w.fault(powerCuts, 4) {
		w.say("world", "power cut")
		for _, p := range w.living() {
			p.kill()
		}
		for _, p := range w.livingTimers() {
			p.dead = true
		}
		w.replace()
		w.replaceTimer()
	}
	if w.fault(storesDown, 6) {
		w.down = w.now + w.dice.upTo(6*time.Second)
		w.say("world", "stores are away until %v", w.down)
	}
	if w.fault(fullStores, 10) {
		s := store(w.dice.IntN(int(storesEnd)))
		w.fullUntil[s] = w.now + w.dice.upTo(8*time.Second)
		w.say("world", "store %d is full until %v", s, w.fullUntil[s])
	}
	if w.fault(steppingServer, 8) {
		w.serverAhead += w.dice.upTo(16*time.Second) - 8*time.Second
		w.aheadMost = max(w.aheadMost, w.serverAhead)
		w.say("world", "server clock is %v ahead", w.serverAhead)
	}
	w.troubleTimers()
}

func (w *world) troubleTimers() {
	for _, p := range w.livingTimers() {
		switch {
		case w.fault(timerPauses, 30):
			d := w.dice.upTo(time.Second)
			if w.dice.chance(400) {
				d = w.dice.upTo(30 * time.Second)
			}
			p.pause(d)
		case w.fault(timerCrashes, 30):
			w.say(p.name, "is killed")
			p.dead = true
			w.replaceTimer()
		}
	}
	if w.fault(timerRivals, 30) && len(w.livingTimers()) < 3 {
		w.spawnTimer()
	}
}

func (w *world) living() (all []*proc) {
	for _, p := range w.procs {
		if !p.dead {
			all = append(all, p)
		}
	}
	return all
}

// replace begins a new owner a little later, if there is none by then.
func (w *world) replace() {
	w.after(w.dice.upTo(3*time.Second), func() {
		if len(w.living()) == 0 {
			w.spawn()
		}
	})
}
