package simulation

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
	"github.com/yardmaster-io/yardmaster/services/timer/timersim"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Each timer owner keeps the schedules of its partition: it decides one after the other, as it is stored, and stores the decision over what it has read.

// scheduled is a schedule as it is stored, and what it has submitted.
type scheduled struct {
	timersim.ScheduleName
	at      task
	overlap yardv1.Overlap
	// seq is that of its message.
	seq  uint64
	home *logv1.ScheduleHome
	// times are those of its calendar, triggers those that somebody has asked for, runs the tasks of both.
	times, triggers map[int64]bool
	runs            map[int64]ids.TaskID
}

// putSchedules makes schedules that end with the faults.
func (w *world) putSchedules() {
	for len(w.schedules) < 3 && w.fault(schedules, 700) {
		s := &scheduled{
			at: task{domains[0], tasklists[domains[0]][w.dice.IntN(shards)], free}, overlap: yardv1.Overlap(1 + w.dice.IntN(5)),
			times: map[int64]bool{}, triggers: map[int64]bool{}, runs: map[int64]ids.TaskID{},
		}
		if w.plan.once && s.overlap == yardv1.Overlap_OVERLAP_CANCEL_OTHER {
			s.overlap = yardv1.Overlap_OVERLAP_SKIP
		}
		s.ScheduleName = timersim.ScheduleName{Domain: s.at.domain, Schedule: fmt.Sprint("s", len(w.schedules))}
		now, every := w.serverMS(), 2000+w.dice.Int64N(6000)
		put := &yardv1.Schedule{
			Name: s.Schedule, EveryMs: every, EndAtMs: now + w.plan.length.Milliseconds(), Overlap: s.overlap, Missed: yardv1.Missed_MISSED_ALL,
			CatchUpMs: time.Hour.Milliseconds(), JitterMs: w.dice.Int64N(500), Task: &yardv1.NewTask{Type: s.at.typ, Tasklist: s.at.tasklist},
		}
		for at := now - now%every + every; at < put.EndAtMs; at += every {
			s.times[at] = true
		}
		data, err := put.MarshalVT()
		if err != nil {
			panic(err)
		}
		s.home = &logv1.ScheduleHome{
			Name: s.Schedule, LogVersion: 1, Schedule: data, DecidedUpToMs: now,
			Task: &logv1.Record{Domain: s.at.domain, Tasklist: s.at.tasklist, Type: s.at.typ, Priority: 1},
		}
		w.schedules = append(w.schedules, s)
		w.say("client", "puts schedule %s: every %d ms, overlap %v", w.named(s.Schedule), every, s.overlap)
		for range w.dice.IntN(3) {
			w.after(w.dice.upTo(w.plan.length), func() { w.trigger(s) })
		}
	}
}

// trigger adds a run to a schedule, as a frontend does.
func (w *world) trigger(s *scheduled) {
	at := int64(1 + len(s.triggers)) // no time of the calendar
	s.triggers[at] = true
	home := s.home.CloneVT()
	home.Due = append(home.Due, &logv1.ScheduledRun{RunAtMs: at, StartAtMs: at, Reason: logv1.RunReason_RUN_REASON_TRIGGER, RequestId: strconv.FormatInt(at, 10)})
	w.storeSchedule(s, home)
	w.say("client", "triggers %s", w.named(s.Schedule))
}

// storeSchedule stores a schedule as a message of the log.
func (w *world) storeSchedule(s *scheduled, home *logv1.ScheduleHome) {
	w.log, w.storedAt = append(w.log, nil), append(w.storedAt, w.now)
	s.home, s.seq = home, uint64(len(w.log))
}

// keep decides schedules, one after the other.
func (p *timerProc) keep() {
	if len(p.w.schedules) > 0 {
		p.do(p.w.dice.between(20*time.Millisecond, time.Second), func() { p.decide(p.w.schedules[p.w.dice.IntN(len(p.w.schedules))]) })
	}
}

// decide decides a schedule once.
func (p *timerProc) decide(s *scheduled) {
	var seq uint64
	var home *logv1.ScheduleHome
	p.until(func() bool { seq, home = s.seq, s.home; return true }, func() {
		read, err := timersim.ScheduleOf(s.ScheduleName, home)
		if err != nil {
			p.w.violated("%s: %v", p.name, err)
			return
		}
		p.askEnded(read.Asks(p.now()), map[ids.TaskID]bool{}, func(ended map[ids.TaskID]bool) {
			now := p.now()
			d := read.Decide(now, ended, func() ids.TaskID { return ids.NewTaskID(time.UnixMilli(now), p.w.part, p.w.dice.Uint64()) }, 1)
			if d.Home == nil {
				p.decided(s, &d)
			} else {
				p.storeDecision(s, seq, &d)
			}
		})
	})
}

// askEnded finds out which tasks have ended, up to the first that has not.
func (p *timerProc) askEnded(all []ids.TaskID, ended map[ids.TaskID]bool, then func(map[ids.TaskID]bool)) {
	if len(all) == 0 {
		then(ended)
		return
	}
	over := false
	p.until(func() bool { over = p.w.archived[all[0]] != nil; return true }, func() {
		if ended[all[0]] = over; !over {
			all = all[:1]
		}
		p.askEnded(all[1:], ended, then)
	})
}

// decided ends a decision that is stored, or has changed nothing.
func (p *timerProc) decided(s *scheduled, d *timersim.Decision) {
	for _, id := range d.Cancel {
		p.w.cancel(id, s.Domain)
	}
	p.keep()
}

// storeDecision has a decision stored. If the outcome is not known, the schedule is read again.
func (p *timerProc) storeDecision(s *scheduled, over uint64, d *timersim.Decision) {
	w, answered := p.w, false
	once := func(do func()) func() {
		return func() {
			if !answered {
				answered = true
				do()
			}
		}
	}
	p.do(timeout, once(p.keep))
	if w.fault(lostWrites, 40) {
		return
	}
	copies := 1
	if w.fault(doubledWrites, 30) {
		copies = 2
	}
	for range copies {
		w.after(p.latency(), func() {
			end := p.keep
			if w.changeSchedule(p, s, over, d) {
				end = func() { p.decided(s, d) }
			}
			if !w.fault(unknownOutcomes, 60) {
				p.do(p.latency(), once(end))
			}
		})
	}
}

// changeSchedule stores a decision with the tasks of the runs that start, if nothing else was stored since the schedule was read.
func (w *world) changeSchedule(p *timerProc, s *scheduled, over uint64, d *timersim.Decision) bool {
	if w.refuses(logFull) {
		return false
	}
	if s.seq != over {
		w.say(p.name, "is refused: %s is at %d, not %d", w.named(s.Schedule), s.seq, over)
		return false
	}
	w.storeSchedule(s, d.Home)
	for _, record := range d.Tasks {
		w.startRun(p, s, record)
	}
	return true
}

// startRun stores the task of a run.
func (w *world) startRun(p *timerProc, s *scheduled, record *logv1.Record) {
	w.check.runStarts(s, timeOfRun(record))
	m := &historysim.Message{Lane: ids.Lane(record.Priority), Place: ids.PlaceOf(record.Domain, record.Tasklist)}
	id := ids.TaskID(record.Id)
	w.addTaskAs(id, m, int(record.Priority), false, s.at)
	w.submits++
	w.say(p.name, "starts the run of %s at %d: %s, %d", w.named(s.Schedule), timeOfRun(record), w.name(id), w.appendLog(m))
	s.runs[timeOfRun(record)] = id
}

// timeOfRun is the time that the task of a run is for.
func timeOfRun(record *logv1.Record) int64 {
	for _, h := range record.Headers {
		if h.Name == "yard-run-at-ms" {
			at, err := strconv.ParseInt(h.Value, 10, 64)
			if err != nil {
				panic(err)
			}
			return at
		}
	}
	return 0
}

// schedulesOver reports whether all times of all schedules are decided, and all runs have started.
func (w *world) schedulesOver() bool {
	for _, s := range w.schedules {
		if len(s.home.Due) > 0 || s.home.Runs+s.home.Skipped+s.home.Missed < int64(len(s.times)) {
			return false
		}
	}
	return true
}

// runStarts holds that a run is planned, starts once and not early, and beside no other run if its schedule does not allow that.
func (c *checker) runStarts(s *scheduled, at int64) {
	w := c.w
	_, again := s.runs[at]
	switch now := w.epochMS + (w.now + w.aheadMost + earlyMost).Milliseconds(); {
	case again:
		w.violated("I10: the run of %s at %d starts twice", s.Schedule, at)
	case !s.times[at] && !s.triggers[at]:
		w.violated("I10: %s has no run at %d, and it starts", s.Schedule, at)
	case at > now:
		w.violated("I6: the run of %s at %d starts %d ms early", s.Schedule, at, at-now)
	case s.overlap == yardv1.Overlap_OVERLAP_ALLOW || s.triggers[at]:
		return
	}
	for before, id := range s.runs {
		if w.archived[id] == nil {
			w.violated("the run of %s at %d starts beside that at %d", s.Schedule, at, before)
		}
	}
}

// runsEnd holds that each planned run was started, or skipped because of another one.
func (c *checker) runsEnd() {
	for _, s := range c.w.schedules {
		skipped := int64(len(s.times) + len(s.triggers) - len(s.runs))
		if s.home.Missed > 0 || s.home.Skipped != skipped || s.home.Runs != int64(len(s.runs)-len(s.triggers)) {
			c.w.violated("%s counts %d runs, %d skipped and %d missed ones, of %d times; %d have started", s.Schedule, s.home.Runs, s.home.Skipped, s.home.Missed, len(s.times), len(s.runs))
		}
		if all := s.overlap == yardv1.Overlap_OVERLAP_ALLOW || s.overlap == yardv1.Overlap_OVERLAP_BUFFER_ALL; all && skipped > 0 {
			c.w.violated("%s has skipped %d runs, and was to skip none", s.Schedule, skipped)
		}
	}
}

// TestSchedulesOverlap: what the runs are to show happens: runs start, are skipped, and wait, and keepers are refused.
func TestSchedulesOverlap(t *testing.T) {
	testkit.Slow(t, "simulates many runs")
	started, skipped := 0, int64(0)
	for seed := range uint64(24) {
		if p := planOf(seed); p.has(schedules) {
			w := newWorld(p, false)
			if broken := w.run(); broken != "" {
				t.Fatalf("seed %d: %s", seed, broken)
			}
			for _, part := range w.parts {
				for _, s := range part.schedules {
					started, skipped = started+len(s.runs), skipped+s.home.Skipped
				}
			}
		}
	}
	if started < 100 || skipped < 10 {
		t.Errorf("%d runs have started, and %d were skipped", started, skipped)
	}
}
