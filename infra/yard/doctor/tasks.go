package doctor

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Margins of the checks. Each is many times what a healthy engine needs.
const (
	// overdueAfter is how long after its due time a task may wait on.
	overdueAfter = 2 * time.Minute
	// firedWithin is how long ago a task was due at most for its end to be in the archive still: it was fired later, and every domain keeps
	// its tasks for topology.RetentionMin.
	firedWithin = topology.RetentionMin - 5*time.Minute
	// loggedWithin is how old a record of the log may be for the end of its task to be in the archive still.
	loggedWithin = topology.RetentionMin - time.Minute
	// fresh is what is too young to be said anything of.
	fresh = 5 * time.Second
	// deadLetterAfter is how long after a dead letter its end may be stored.
	deadLetterAfter = time.Minute
	// keyAfter is the age from which a frontend reads the record of a key (decision 0040), and a little more.
	keyAfter = 3 * time.Minute
	// keyForgottenAfter is how long after its time the server may have kept a record.
	keyForgottenAfter = 10 * time.Minute
)

// check finds what is wrong with one task; "" = nothing.
type check struct {
	code Code
	what func(p *pass, id ids.TaskID, t *task) (where, what string)
}

// taskChecks look at each task that is in the log or in the timer store. A new check of one task is one more line here.
var taskChecks = []check{
	{TaskLost, taskLost},
	{FiredAndLost, firedAndLost},
	{Overdue, overdue},
	{TwoHomes, twoHomes},
	{KeyMissing, keyMissing},
}

// finish checks what was taken.
func (p *pass) finish() {
	for id, t := range p.tasks {
		for _, c := range taskChecks {
			if where, what := c.what(p, id, t); what != "" {
				p.report(Finding{Code: c.code, Where: where, id: id, Domain: t.domain, What: what})
			}
		}
	}
	p.checkDeadLetters()
	p.checkCalls()
	for subject, w := range p.keyRecords {
		if what := p.keyVoid(w); what != "" {
			p.report(Finding{
				Code: KeyVoid, Where: at(topology.HistoryStream(p.partition), w.seq), id: w.id, Domain: topology.DomainOfUniqueKey(p.partition, subject),
				What: fmt.Sprintf("key %q: %s", w.key, what), mend: nil,
			})
		}
	}
}

func (p *pass) inLog(seq uint64) string { return at(topology.HistoryStream(p.partition), seq) }

func (p *pass) inTimer(s timerEntry) string {
	return at(topology.TimerStream(p.partition), uint64(s.seq))
}

func (p *pass) age(ms int64) time.Duration { return p.began.Sub(time.UnixMilli(ms)) }

// hasEnd reports whether the archive has the end of a task, of this generation or a later one.
func (p *pass) hasEnd(id ids.TaskID, generation uint32) bool {
	e, ok := p.ends[id]
	return ok && e.generation >= generation
}

func taskLost(p *pass, id ids.TaskID, t *task) (where, what string) {
	s := t.submit
	switch {
	case s.seq == 0 || !s.done || s.void || t.inSnapshot || p.quarantined || p.hasEnd(id, s.generation):
	case t.entry.state != nowhere && t.entry.generation > s.generation: // it waits again, or other checks have it
	case p.age(s.atMS) < fresh || p.age(s.atMS) > loggedWithin:
	default:
		return p.inLog(s.seq), "the snapshot is past it"
	}
	return "", ""
}

func firedAndLost(p *pass, id ids.TaskID, t *task) (where, what string) {
	s := t.entry
	switch {
	case s.state != fired || t.inSnapshot || p.quarantined || p.hasEnd(id, s.generation):
	case t.submit.seq > 0 && t.submit.generation >= s.generation:
	case p.age(s.dueMS) < fresh || p.age(s.dueMS) > firedWithin:
	default:
		return p.inTimer(s), fmt.Sprintf("its generation %d was due at %s, and the timer's cursor is past it", s.generation, clock(s.dueMS))
	}
	return "", ""
}

func overdue(p *pass, _ ids.TaskID, t *task) (where, what string) {
	if t.entry.state == waits && p.age(t.entry.dueMS) > overdueAfter {
		return p.inTimer(t.entry), "it was due at " + time.UnixMilli(t.entry.dueMS).UTC().Format(time.RFC3339)
	}
	return "", ""
}

func twoHomes(p *pass, id ids.TaskID, t *task) (where, what string) {
	e, ended := p.ends[id]
	if ended && e.generation >= t.entry.generation && t.entry.state == waits && p.age(e.finishedMS) > fresh {
		return p.inTimer(t.entry), fmt.Sprintf("its end, %s, is at %s", yardv1.TaskState(e.state).Name(), at(topology.ArchiveStream(p.partition), e.seq))
	}
	return "", ""
}

func keyMissing(p *pass, id ids.TaskID, t *task) (where, what string) {
	subject := p.keyOf[id]
	if subject == "" || t.entry.state != waits {
		return "", ""
	}
	switch w, said := p.keyRecords[subject]; {
	case !said:
		return p.inTimer(t.entry), "the log says nothing of its key, or names another task"
	case w.id != id:
		return p.inTimer(t.entry), fmt.Sprintf("%s says that its key is that of task %s", p.inLog(w.seq), w.id)
	case w.freeAtMS != 0:
		return p.inTimer(t.entry), fmt.Sprintf("%s says that its key is free", p.inLog(w.seq))
	}
	return "", ""
}

// keyVoid says why a record keeps a key for nothing, or "".
func (p *pass) keyVoid(w keyRecord) string {
	if w.freeAtMS != 0 {
		if p.age(w.freeAtMS) > topology.UniqueKeyKept+keyForgottenAfter {
			return "it was free at " + time.UnixMilli(w.freeAtMS).UTC().Format(time.RFC3339) + ", and the server has not forgotten it"
		}
		return ""
	}
	if p.began.Sub(w.at) < keyAfter {
		return ""
	}
	if e, ended := p.ends[w.id]; ended {
		if p.age(e.finishedMS+p.keyFor[w.id]) > keyAfter {
			return "its task ended at " + time.UnixMilli(e.finishedMS).UTC().Format(time.RFC3339) + ", and the key is not free"
		}
		return ""
	}
	if p.tasks[w.id] != nil || p.quarantined {
		return ""
	}
	return "its task is nowhere: it never was, or its end is forgotten"
}

// checkDeadLetters compares the dead letters with the archive.
func (p *pass) checkDeadLetters() {
	for id, l := range p.deadLetters.of(p.partition) {
		if !p.keep(id) || p.hasEnd(id, 0) || p.quarantined {
			continue
		}
		if t := p.tasks[id]; t != nil && (t.inSnapshot || t.submit.seq > 0 && !t.submit.done) {
			continue // it is being filed
		}
		age := p.began.Sub(l.at)
		if age > deadLetterAfter && age < p.kept.of(l.domain.Value(), l.at)-deadLetterAfter {
			p.report(Finding{Code: DeadLetterWithoutEnd, Where: at(topology.DeadLetterStream, l.seq), id: id, Domain: l.domain.Value(), What: "the archive does not have it"})
		}
	}
	for id, stored := range p.died {
		e := p.ends[id]
		if t := p.tasks[id]; t != nil && (t.entry.generation > e.generation || t.submit.generation > e.generation) || p.quarantined {
			continue // it is back
		}
		if e.state != int8(yardv1.TaskState_TASK_STATE_DEAD) || e.seq > p.deadLetters.archiveUpTo[p.partition] || p.deadLetters.removed(time.UnixMilli(e.finishedMS), stored) {
			continue
		}
		if _, ok := p.deadLetters.of(p.partition)[id]; !ok {
			p.report(Finding{Code: EndWithoutDeadLetter, Where: at(topology.ArchiveStream(p.partition), e.seq), id: id, What: "no dead letter has it"})
		}
	}
}
