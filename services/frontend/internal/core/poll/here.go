package poll

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/filing"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/idle"
)

// startsMax bounds the tasks of a tasklist that start with one flush: they are read at once, before all others.
const startsMax = filing.OwnTasks

// keep has a poll be here, if it may: its tasklist has one partition, and core/idle takes it.
func (p *Polls[T]) keep(at *Poll[T], now time.Time, take func(idle.Tasklist, idle.Poll, time.Time) bool) bool {
	if p.stopped || !now.Before(at.Until) || p.drainOf(at) != (Drain{}) || !p.rules.MayWait(at.Domain, at.Tasklist) {
		return false
	}
	if !take(at.list(), idle.Poll{ID: at.number, Worker: at.Worker, Types: at.Types, Max: at.Max, Bytes: p.rules.AnswerBytes}, now) {
		return false
	}
	p.to(at, here)
	p.endsAt(at, at.Until)
	return true
}

// Wanted takes in how many triggers of a tasklist wait at matching, of some types and perhaps others.
func (p *Polls[T]) Wanted(at idle.Tasklist, triggers int, types []string, now time.Time) {
	p.leave(p.idle.Heard(at, triggers, types, now), now)
}

// leave sends polls to matching that were here.
func (p *Polls[T]) leave(numbers []uint64, now time.Time) {
	for _, number := range numbers {
		p.forward(p.here[number], now)
	}
}

// forward sends a poll to matching that is not to be here any longer.
func (p *Polls[T]) forward(at *Poll[T], now time.Time) {
	p.endsAt(at, at.Until.Add(OverAfter))
	p.route(at, now)
}

// Has reports whether polls of a tasklist are here.
func (p *Polls[T]) Has(at idle.Tasklist) bool { return p.idle.Has(at) }

// Start is the tasks of one submit, of one tasklist.
type Start struct {
	Of    idle.Tasklist
	Tasks []idle.Task
}

// Begin has the tasks of submits start with them, as far as polls that are here have room for them. It returns the poll of each task, or nil for a submit that does not
// start. The caller reports what became of each that does: Stored, and then Decided.
func (p *Polls[T]) Begin(all []Start) [][]*Poll[T] {
	polls := make([][]*Poll[T], len(all))
	var dealt []uint64
	starts := map[idle.Tasklist]int{}
	for i, s := range all {
		if starts[s.Of]+len(s.Tasks) > startsMax {
			continue
		}
		numbers, ok := p.idle.Deal(s.Of, s.Tasks)
		if !ok {
			continue
		}
		dealt = append(dealt, numbers...)
		starts[s.Of] += len(s.Tasks)
		for _, number := range numbers {
			at := p.here[number]
			at.open++
			polls[i] = append(polls[i], at)
		}
	}
	for _, number := range p.idle.TakeOut(dealt) {
		at := p.here[number]
		p.to(at, starting)
		p.endsAt(at, at.Until.Add(OverAfter))
	}
	return polls
}

// Stored assigns the attempts of a submit that the log has, one for each of its polls, and returns the places of those that are. The others are handed back: their polls
// are over by then, or it is not in time, so that the log may have ignored their starts. Without polls all are: they wait no longer for it. Decided follows.
func (p *Polls[T]) Stored(domain string, polls []*Poll[T], attempts []Attempt, inTime bool) (assigned []int) {
	var back []Attempt
	if polls == nil {
		back = attempts
	}
	for i, at := range polls {
		if at.state == ended || !inTime {
			back = append(back, attempts[i])
		} else {
			at.attempts = append(at.attempts, attempts[i])
			assigned = append(assigned, i)
		}
	}
	p.handBack(domain, back)
	return assigned
}

// Decided answers the polls of a submit that wait for nothing else. Those that were given nothing wait on.
func (p *Polls[T]) Decided(polls []*Poll[T], now time.Time) {
	for _, at := range polls {
		if at.open--; at.open > 0 || at.state == ended {
			continue
		}
		switch {
		case len(at.attempts) > 0:
			p.assign(at, now)
		case p.stopped:
			p.end(at, Empty)
		case !p.keep(at, now, p.idle.Back):
			p.forward(at, now)
		}
	}
}

// TasksBounced hands back what a poll was given by an answer that no one received.
func (p *Polls[T]) TasksBounced(id uint64) { p.handBack(p.given.bounced(id)) }

// Lost hands back what the polls of an inbox were given that has not received it, and ends its poll that matching does not have.
func (p *Polls[T]) Lost(domain, name string) {
	p.handBack(p.given.lost(inbox{domain, name}))
	if at := p.byInbox[inbox{domain, name}]; at != nil && (at.state == here || at.state == starting) {
		p.end(at, Empty)
		p.handBack(domain, at.attempts)
	}
}

func (p *Polls[T]) handBack(domain string, attempts []Attempt) {
	if len(attempts) > 0 {
		p.Actions = append(p.Actions, Action[T]{Do: HandBack, Domain: domain, Attempts: attempts})
	}
}
