package dispatch

import (
	"maps"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Slow is a task that is late, or whose attempt is stuck.
type Slow struct {
	Task *taskstate.Task
	// Stuck: its attempt runs; else it is due and has not started.
	Stuck bool
	// Since is when its attempt started, or since when it is due, Unix ms.
	Since int64
}

// slowMax is how many tasks of a tasklist are found at a time, slowTogether how many of all, about; the next ones are found a second later.
const slowMax, slowTogether = 1000, 10_000

// FindSlow looks now and then for tasks that wait, and attempts that run, for longer than their domain says, and adds them to
// found: each once for as long as it waits or runs. Tasks that wait for their turn by an order key are left out: the first one of the key is late
// or stuck itself. Mono is a clock that never jumps.
func FindSlow(x *Lists, mono time.Duration, nowMS int64, found []Slow) []Slow {
	if x.cfg.SlowAfter == nil || mono < x.slowAt {
		return found
	}
	s := slowSearch{nowMS: nowMS, found: found}
	for n := range x.order {
		if len(s.found)-len(found) >= slowTogether {
			x.slowFrom += n // its turn is the first one next time
			break
		}
		l := x.order[(x.slowFrom+n)%len(x.order)]
		s.lateMS, s.stuckMS = x.cfg.SlowAfter(l.key.domain)
		s.most = len(s.found) + slowMax
		if s.stuckMS != nil {
			s.visitRuns(&l.here) // before those that wait, which may be very many
			for _, shard := range slices.Sorted(maps.Keys(l.elsewhere)) {
				s.visitRuns(l.elsewhere[shard])
			}
		}
		if s.lateMS > 0 {
			s.visit(&l.sent, false)
		}
	}
	x.slowAt = mono + max(oldestEvery, time.Duration(s.visited)*oldestPerTask)
	return s.found
}

// slowSearch is one search.
type slowSearch struct {
	nowMS int64
	found []Slow
	// most is how many may be found up to the end of a tasklist.
	most, visited int
	// lateMS and stuckMS are those of its domain (Config.SlowAfter).
	lateMS  int64
	stuckMS func(typ string) int64
}

func (s *slowSearch) visitRuns(r *runs) {
	s.visit(&r.booked, true)
	s.visit(&r.unbooked, true)
}

// visit finds the slow ones of a list.
func (s *slowSearch) visit(all *entryList, stuck bool) {
	for e := all.first; e != nil && len(s.found) < s.most; e = e.after {
		s.visited++
		if e.reported {
			continue
		}
		since, afterMS := e.Attempt.StartedAt, s.lateMS
		if stuck {
			afterMS = s.stuckMS(e.Type)
		} else {
			since = e.dueSince()
		}
		if afterMS > 0 && s.nowMS-since > afterMS {
			e.reported = true
			s.found = append(s.found, Slow{Task: e.Task, Stuck: stuck, Since: since})
		}
	}
}

// dueSince is since when e, which waits for a grant, is due and may start, Unix ms. The timer may have fired it late.
func (e *Entry) dueSince() int64 {
	since := e.ReadyAt
	if last := len(e.Steps) - 1; last >= 0 && e.Steps[last].Kind == taskstate.StepFired {
		since = min(since, e.DueAt)
	}
	if e.Seat != nil {
		since = max(since, e.Seat.TurnAt)
	}
	return since
}
