package simulation

import (
	"fmt"
	"strings"
	"time"
)

// faults are kinds of trouble.
type faults uint64

// The kinds. Each can be switched off by itself.
const (
	pauses faults = 1 << iota
	rivals
	crashes
	drains
	powerCuts
	lostWrites
	unknownOutcomes
	doubledWrites
	reordering
	skewedClocks
	steppingServer
	storesDown
	lostTriggers
	quietAnswers
	lostAnswers
	repeatedAsks
	silentWorkers
	lateOutcomes
	failures
	cancels
	foreignCancels
	delayedTasks
	slowTimer
	timerPauses
	timerRivals
	timerCrashes
	fullStores
	doubledSubmits
	slowReaders
	matchingPauses
	matchingRivals
	matchingKills
	matchingDrains
	wipedTables
	slowTables
	awayTables
	unknownCalls
	lateAcks
	goneWorkers
	limitEdits
	sharedMessages
	floods
	expiries
	groups
	rates
	partitionEdits
	groupLimits
	ownPolicies
	uniqueKeys
	silences
	updates
	orderKeys
	blocks
	redrives
	oneList
	lowRates
	threeServers
	directStarts
	typeChanges
	moves
	schedules
	faultsEnd
)

// changesOfOwner are the faults by which another owner takes over.
const changesOfOwner = pauses | rivals | crashes | drains | powerCuts | lostWrites | unknownOutcomes | storesDown | reordering | threeServers

// changesOfMatching are those by which another owner of a matching shard takes over.
const changesOfMatching = matchingPauses | matchingRivals | matchingKills | matchingDrains | powerCuts

var faultNames = [...]string{
	"pauses", "rivals", "crashes", "drains", "power cuts", "lost writes", "unknown outcomes", "doubled writes", "reordering",
	"skewed clocks", "stepping server", "stores down", "lost triggers", "quiet answers", "lost answers", "repeated asks",
	"silent workers", "late outcomes", "failures", "cancels", "foreign cancels", "delayed tasks", "slow timer", "timer pauses", "timer rivals", "timer crashes", "full stores", "doubled submits", "slow readers",
	"matching pauses", "matching rivals", "matching kills", "matching drains", "wiped tables", "slow tables", "away tables", "unknown calls",
	"late acks", "gone workers", "limit edits", "shared messages", "floods", "expiries", "groups", "rates", "partition edits", "group limits", "own policies", "unique keys", "silences", "updates", "order keys", "blocking tasks", "redrives", "a tasklist floods", "low rates", "three servers", "direct starts", "type changes", "moves", "schedules",
}

func (f faults) String() string {
	var names []string
	for i, name := range faultNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// plan is all that a run depends on.
type plan struct {
	seed   uint64
	faults faults
	tasks  int
	// length is how long there are faults; what is not done by then has to be done without.
	length   time.Duration
	window   int
	snapshot int64
	// chunk and job bound what the timer fires, and history stores, at once.
	chunk, job int
	// parts is how many history partitions there are.
	parts int
	// once: each task has one attempt, and workers always succeed.
	once bool
	// answer and batch bound the tasks of an answer to a poll, in bytes, and the events of a batch.
	answer, batch int
}

func (p plan) String() string {
	return fmt.Sprintf("seed %d, %d tasks, %d partitions, faults for %v, window %d, snapshots after %d, chunk %d, job %d, answer %d, batch %d, once %v; %v",
		p.seed, p.tasks, p.parts, p.length, p.window, p.snapshot, p.chunk, p.job, p.answer, p.batch, p.once, p.faults)
}

func (p plan) has(f faults) bool { return p.faults&f != 0 }

// floods tells whether a task is of the flood: it has no worker while others have tasks.
func (p plan) floods(t task) bool {
	return p.has(floods) && t.domain == flood && (!p.has(oneList) || t.tasklist == tasklists[flood][0])
}

// listFloods tells whether a task is of a flood that is one tasklist.
func (p plan) listFloods(t task) bool { return p.has(oneList) && p.floods(t) }

// planOf is the plan of a seed.
func planOf(seed uint64) plan {
	d := newDice(seed ^ 0x9e3779b97f4a7c15)
	p := plan{
		seed: seed, tasks: 5 + d.IntN(80), length: d.between(10*time.Second, 60*time.Second),
		window: 5 + d.IntN(36), snapshot: 100 * int64(5+d.IntN(60)), chunk: 1 + d.IntN(10), job: 1 + d.IntN(20),
	}
	for f := faults(1); f < silences; f <<= 1 {
		if d.chance(600) {
			p.faults |= f
		}
	}
	p.parts, p.answer, p.batch = 1+d.IntN(2), taskBytes*(1+d.IntN(8)), 1+d.IntN(12)
	if p.once = d.chance(250); p.once {
		p.faults &^= silentWorkers | lateOutcomes | failures | cancels | updates
	}
	if d.chance(150) {
		p.faults &^= changesOfMatching
	}
	p.faults &^= doubledSubmits // the log refuses a repeated submit, unless it comes soon
	if d.chance(150) {
		// Nor is the owner's clock wrong, or another one would take over when there are no more faults.
		p.faults = p.faults&^(changesOfOwner|skewedClocks) | doubledSubmits
		// Small enough to fill, and nothing is carried, which would make room.
		p.window, p.snapshot = 1+d.IntN(4), 1<<40
	}
	if p.has(floods) { // of few tasks of a priority the window is full, but not of one request
		p.window, p.tasks = requestMost+p.window/8, p.tasks+60
	}
	if d.chance(500) && !p.once {
		p.faults |= silences
	}
	if d.chance(400) {
		p.faults |= orderKeys
	}
	if d.chance(500) && !p.once {
		p.faults |= updates
	}
	if d.chance(500) && !p.once {
		p.faults |= blocks
	}
	if d.chance(500) && !p.once {
		p.faults |= redrives
	}
	if p.has(floods) && d.chance(500) {
		p.faults |= oneList
	}
	if d.chance(400) {
		p.faults |= lowRates
	}
	if d.chance(500) && !p.has(doubledSubmits) {
		p.faults |= threeServers
	}
	if d.chance(500) && !p.once { // a frontend that is killed may cost an attempt
		p.faults |= directStarts
	}
	if d.chance(500) && !p.once {
		p.faults |= typeChanges
	}
	if p.has(updates) && !p.has(rates) && d.chance(500) { // what a rate has let start is checked by the tasklist
		p.faults |= moves
	}
	if d.chance(400) {
		p.faults |= schedules
	}
	return p
}
