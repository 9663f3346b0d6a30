package simulation

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
	"github.com/yardmaster-io/yardmaster/shared/heap"
)

const (
	// calmMost is how long a run may take to end once there are no more faults.
	calmMost = 6 * time.Minute
	// restLasts is how long a run goes on after its end, for what is still on its way.
	restLasts = 40 * time.Second
	// linesMost bounds the log of a run.
	linesMost = 40_000
)

// sim is one run: history partitions, and the matching shards that serve them.
type sim struct {
	clock
	dice  dice
	plan  plan
	parts []*world
	match *matching

	// epochMS is the server's time at the beginning, Unix ms.
	epochMS int64
	// serverAhead is how far the server's clock has stepped, aheadMost the furthest that it has ever
	// been ahead.
	serverAhead, aheadMost time.Duration

	// faulty: faults happen; calmMS is since when they do not, by the server's clock.
	faulty bool
	calmMS int64

	names map[ids.TaskID]string
	// types are the settings that task types had, the last ones last; changes counts them.
	types   map[historysim.TypeName][]typeChange
	changes int64

	telling bool
	lines   []string
	// broken is the first violation.
	broken string
	steps  int
}

// newWorld makes a run, and returns its first partition.
func newWorld(p plan, telling bool) *world {
	s := &sim{clock: clock{agenda: heap.Heap[event]{Less: event.before}}, dice: newDice(p.seed), plan: p, faulty: true, telling: telling, names: map[ids.TaskID]string{}, types: map[historysim.TypeName][]typeChange{}}
	s.epochMS = firstEpochMS + s.dice.Int64N(60_000)
	for part := range max(1, p.parts) {
		s.parts = append(s.parts, newPartition(s, part))
	}
	s.match = newMatching(s)
	return s.parts[0]
}

func (s *sim) serverMS() int64 { return s.epochMS + (s.now + s.serverAhead).Milliseconds() }

func (s *sim) fault(f faults, permille int) bool {
	return s.faulty && s.plan.has(f) && s.dice.chance(permille)
}

// say writes a line of the run's log.
func (s *sim) say(who, format string, args ...any) {
	if !s.telling || len(s.lines) >= linesMost {
		return
	}
	s.lines = append(s.lines, fmt.Sprintf("%9.3f %-10s %s", s.now.Seconds(), who, fmt.Sprintf(format, args...)))
}

// violated notes a violation and ends the run.
func (s *sim) violated(format string, args ...any) {
	if s.broken != "" {
		return
	}
	s.broken = fmt.Sprintf(format, args...)
	s.say("CHECK", "%s", s.broken)
}

func (s *sim) name(id ids.TaskID) string {
	if n, ok := s.names[id]; ok {
		return n
	}
	return id.String()
}

// run lets the plan happen and returns the first violation.
func (s *sim) run() string {
	s.begin()
	s.until(s.plan.length, func() bool { return false })
	s.calm()
	if s.plan.has(floods) {
		s.until(s.now+calmMost, s.othersEnded)
		for _, w := range s.parts {
			w.check.progress(s.plan.floods)
		}
	}
	s.match.serveFlood()
	s.until(s.now+calmMost, s.allEnded)
	for _, w := range s.parts {
		w.check.progress(nil)
	}
	s.until(s.now+restLasts/2, func() bool { return false })
	s.match.goHome()
	s.until(s.now+restLasts/2, func() bool { return false })
	for _, w := range s.parts {
		w.check.end()
	}
	s.match.check.end()
	return s.broken
}

func (s *sim) allEnded() bool {
	for _, w := range s.parts {
		if !w.check.allEnded() {
			return false
		}
	}
	return true
}

// until lets time pass.
func (s *sim) until(end time.Duration, enough func() bool) {
	for s.broken == "" && s.now < end && !enough() {
		if !s.step() {
			s.violated("nothing happens any more")
		}
	}
}

// othersEnded tells whether only tasks of the flood are left.
func (s *sim) othersEnded() bool {
	for _, w := range s.parts {
		if len(w.accepted) < w.submits || w.check.stuck(s.plan.floods) != nil {
			return false
		}
	}
	return true
}

func (s *sim) step() (more bool) {
	defer func() {
		if v := recover(); v != nil {
			s.violated("panic: %v", v)
			if s.telling {
				s.say("PANIC", "%s", debug.Stack())
			}
		}
	}()
	s.steps++
	return s.next()
}

func (s *sim) begin() {
	s.match.begin()
	for i, w := range s.parts {
		w.start(s.plan.tasks*(i+1)/len(s.parts) - s.plan.tasks*i/len(s.parts))
	}
	s.trouble()
}

// calm ends all faults: what is paused or skewed is replaced by healthy owners.
func (s *sim) calm() {
	s.say("world", "no more faults")
	s.faulty = false
	s.calmMS = s.serverMS()
	for _, w := range s.parts {
		w.calm()
	}
	s.match.calm()
}

// trouble makes what no single operation decides.
func (s *sim) trouble() {
	if !s.faulty {
		return
	}
	s.after(s.dice.between(50*time.Millisecond, 500*time.Millisecond), s.trouble)
	for _, w := range s.parts {
		w.trouble()
	}
	s.match.trouble()
	if s.fault(typeChanges, 100) {
		s.changeType()
	}
	if s.fault(powerCuts, 4) {
		s.say("world", "power cut")
		for _, w := range s.parts {
			w.powerCut()
		}
		s.match.powerCut()
	}
	if s.fault(steppingServer, 8) {
		s.serverAhead += s.dice.upTo(16*time.Second) - 8*time.Second
		s.aheadMost = max(s.aheadMost, s.serverAhead)
		s.say("world", "server clock is %v ahead", s.serverAhead)
	}
}

// pauseFor is how long a process is paused: mostly for a moment.
func (s *sim) pauseFor() time.Duration {
	if s.dice.chance(400) {
		return s.dice.upTo(30 * time.Second)
	}
	return s.dice.upTo(time.Second)
}
