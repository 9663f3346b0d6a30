package locate

import (
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// QuestionsMax is how many outcomes may wait for a search; more are refused.
const QuestionsMax = 10_000

// Ask looks for a task that has left, to give the verdict on an outcome that came again. If no one asks, there is nothing to decide.
func (l *Locator) Ask(r *Request, d Decisions) {
	switch {
	case r.Answer == nil:
		return
	case l.questions >= QuestionsMax:
		d.Conclude(r, taskstate.Verdict{Code: fault.Unavailable, Message: "too many outcomes wait for a search: repeat the entry"})
		return
	}
	l.questions++
	kept := r.copied()
	r.Answer.Waits(r.I)
	want := Search{ID: r.Ev.ID, Domain: r.Ev.Domain}
	q := l.asking[want]
	if q == nil {
		q = new(question)
		l.asking[want] = q
		l.wanted = append(l.wanted, want)
	}
	q.waiting = append(q.waiting, kept)
}

// foundForOutcomes decides about outcomes of a stay that has left: what the other stores hold says how it ended.
func (l *Locator) foundForOutcomes(in *Found, p Partition, d Decisions) {
	q := l.asking[in.Search]
	if q == nil {
		return
	}
	known := in.newest()
	if t, _ := p.Memory(in.ID); q.again && t == nil {
		q.again = false
		l.wanted = append(l.wanted, in.Search)
		return
	}
	delete(l.asking, in.Search)
	l.questions -= len(q.waiting)
	for _, r := range q.waiting {
		t, left := p.Memory(in.ID)
		switch {
		case t != nil && !MissedLater(t, left, r.Ev.Fence.Position):
			d.Decide(r)
		case known == nil && in.Unsure:
			d.Conclude(r, taskstate.Verdict{Code: fault.Unknown, Message: "the task was not found in time; repeat the outcome"})
		case known == nil && t != nil:
			d.Conclude(r, taskstate.ApplyToEarlierStay(t, r.Ev))
		case known == nil:
			d.Conclude(r, NotFound())
		case known.Position.Same(r.Ev.Fence.Position):
			task := *known
			v, _ := taskstate.Apply(&task, r.Ev, r.At)
			d.Conclude(r, v)
		default:
			d.Conclude(r, taskstate.ApplyToEarlierStay(known, r.Ev))
		}
	}
}
