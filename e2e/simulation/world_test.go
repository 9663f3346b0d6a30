package simulation

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// world is one history partition with its timer: its stores, its owners, its tasks.
type world struct {
	*sim
	stores
	part  int
	check *checker

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
	// granted is called when a grant is on its way to a matching owner; nil = not reported.
	granted func(p *matchProc)
	// work is how long a worker takes; 0 = up to 400 ms.
	work time.Duration

	// unknownAt is where a record lies that no owner can read, 0 = nowhere; halts counts the owners
	// that have stopped there.
	unknownAt uint64
	halts     int

	// lagged: a domain has lagged behind a lane.
	lagged bool
	// submits is how many tasks clients submit by themselves.
	submits int
	// schedules are those of the partition.
	schedules []*scheduled
	accepted  map[ids.TaskID]task
	// half is the batch that half of them are of, members counts these by domain.
	half    historysim.Batch
	members map[string]int64
	// groupOf is the group that each was submitted with.
	groupOf map[ids.TaskID]string
	// costOf is the cost of those that were submitted with one.
	costOf map[ids.TaskID]int32
	// movedTo are the tasklists that updates have asked for.
	movedTo map[ids.TaskID]map[string]bool
	// keyAt are where in the log the word on the unique key of a task lies, by its submits.
	keyAt map[ids.TaskID][]uint64
	// keyOf is the order key of those that have one.
	keyOf map[ids.TaskID]string
	// policyOf is the policy that each was submitted with.
	policyOf map[ids.TaskID]*historysim.Policy
	order    []ids.TaskID
	askers   askers
	// requests counts the updates and redrives that clients ask for.
	requests uint64
	// asking counts the redrives that are asked for and not answered.
	asking int
}

// newPartition makes a partition of a run.
func newPartition(s *sim, part int) *world {
	w := &world{sim: s, part: part, accepted: map[ids.TaskID]task{}, members: map[string]int64{}, groupOf: map[ids.TaskID]string{}, costOf: map[ids.TaskID]int32{}, movedTo: map[ids.TaskID]map[string]bool{}, keyAt: map[ids.TaskID][]uint64{}, policyOf: map[ids.TaskID]*historysim.Policy{}, keyOf: map[ids.TaskID]string{}}
	w.archived, w.waiting, w.decoder = map[ids.TaskID]*historysim.Task{}, newTimerStore(), historysim.NewDecoder()
	w.letters, w.snapshots = map[ids.TaskID]*letter{}, map[snapshotName][][]byte{}
	w.senders = map[uint64]*matchProc{}
	w.check = newChecker(w)
	w.askers = askers{w: w, calls: map[uint64]*call{}}
	return w
}

// named is the name of a process of the partition.
func (w *world) named(name string) string {
	if w.part == 0 {
		return name
	}
	return name + "'"
}

func (w *world) start(tasks int) {
	w.spawn()
	w.spawnTimer()
	w.submits = tasks
	w.submitSome(tasks)
	w.putSchedules()
	w.watchMemory()
}

// watchMemory looks at what owners hold, now and then.
func (w *world) watchMemory() {
	w.after(w.dice.between(300*time.Millisecond, 2*time.Second), w.watchMemory)
	for _, p := range w.living() {
		w.check.memory(p)
		w.lagged = w.lagged || p.owner.Live() && p.owner.Lagging() > 0
	}
}

// calm replaces what is paused or skewed by one healthy owner. An owner that is healthy goes on: a
// takeover would heal what it has to.
func (w *world) calm() {
	w.down, w.fullUntil = 0, [storesEnd]time.Duration{}
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
	for _, p := range w.living() {
		switch {
		case w.fault(pauses, 30):
			p.pause(w.pauseFor())
		case w.fault(crashes, 10):
			w.say(p.name, "is killed")
			p.kill()
			w.replace()
		case w.fault(drains, 10):
			w.say(p.name, "drains")
			p.owner.Drain()
		}
	}
	if w.fault(silences, 60) {
		w.fallSilent()
	}
	if w.fault(rivals, 30) && len(w.living()) < 3 {
		w.spawn()
	}
	if w.fault(storesDown, 6) {
		w.down = w.now + w.dice.upTo(6*time.Second)
		w.say("world", "stores are away until %v", w.down)
	}
	if w.fault(threeServers, 60) {
		w.changeLeader()
	}
	if w.fault(fullStores, 10) {
		s := store(w.dice.IntN(int(storesEnd)))
		w.fullUntil[s] = w.now + w.dice.upTo(8*time.Second)
		w.say("world", "store %d is full until %v", s, w.fullUntil[s])
	}
	w.troubleTimers()
}

func (w *world) troubleTimers() {
	for _, p := range w.livingTimers() {
		switch {
		case w.fault(timerPauses, 30):
			p.pause(w.pauseFor())
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

// powerCut ends all owners.
func (w *world) powerCut() {
	for _, p := range w.living() {
		p.kill()
	}
	for _, p := range w.livingTimers() {
		p.dead = true
	}
	w.replace()
	w.replaceTimer()
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
