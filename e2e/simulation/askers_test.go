package simulation

import (
	"strconv"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// triesMost is how often an asker asks.
const triesMost = 4

// call is a request to history, and who waits for its verdicts.
type call struct {
	events  []historysim.Event
	tries   int
	answers func(i int, v *historysim.Verdict)
	done    bool
}

// askers stand for all who ask a history partition but matching: workers and clients, with their
// frontends.
type askers struct {
	w     *world
	calls map[uint64]*call
	last  uint64
}

// ask asks for events and repeats them until there is an answer.
func (m *askers) ask(who string, c *call) {
	w := m.w
	if c.done || c.tries >= triesMost && !w.plan.once {
		return
	}
	if w.refuses(logFull) {
		w.after(w.dice.upTo(time.Second), func() { m.ask(who, c) })
		return
	}
	c.tries++
	m.last++
	request := m.last
	m.calls[request] = c
	times, asked := 1, c.events
	if w.fault(repeatedAsks, 60) {
		times = 2
	} else if c.tries == 1 {
		asked = sentFirst(asked)
	}
	for range times {
		w.after(w.dice.upTo(20*time.Millisecond), func() {
			w.request(&historysim.Message{Event: true, Request: request, Events: asked})
			if w.telling {
				for i := range asked {
					e := &asked[i]
					w.say(who, "asks %d/%d: %v %s %s %s", request, i, e.Kind, w.name(e.ID), fence(e), e.Domain)
				}
			}
		})
	}
	w.after(w.dice.between(500*time.Millisecond, 4*time.Second), func() { m.ask(who, c) })
}

// answered takes an answer of history to who asked.
func (w *world) answered(p *proc, a *historysim.Answer) {
	w.check.verdicts(p, a)
	seq, err := strconv.ParseUint(a.ReplyTo, 10, 64)
	if err != nil || w.fault(lostAnswers, 50) {
		return
	}
	if sender := w.senders[seq]; sender != nil {
		sender.decided(p, a)
		return
	}
	if c := w.askers.calls[a.RequestID]; c != nil {
		c.done = true
		for i := range a.Verdicts {
			c.answers(a.First+i, &a.Verdicts[i])
		}
	}
}

// work ends an attempt that a worker has got, one way or another.
func (m *askers) work(id ids.TaskID, token ids.Token) {
	w := m.w
	ev := historysim.Event{Kind: historysim.Succeeded, ID: id, Fence: token, Domain: w.accepted[id].domain}
	d := w.work
	if d == 0 {
		d = w.dice.upTo(400 * time.Millisecond)
	}
	switch {
	case w.fault(silentWorkers, 60):
		return
	case w.dies(300):
		ev.Kind, ev.Message = historysim.Failed, "it dies"
	case w.fault(failures, 150):
		ev.Kind, ev.Message, ev.ErrType = historysim.Failed, "flaky", errTypes[w.dice.IntN(3)]
		if w.dice.chance(300) {
			ev.DelayMS = askedDelayMS + w.dice.Int64N(5000)
		}
	case w.fault(failures, 60):
		ev.Kind, ev.Message, ev.Snooze, ev.DelayMS = historysim.Failed, "not yet", true, 1+w.dice.Int64N(2*askedDelayMS)
	case w.fault(failures, 50):
		ev.Kind = historysim.Released
	case w.fault(lateOutcomes, 80):
		d = w.dice.upTo(8 * time.Second)
	case w.fault(lateOutcomes, 80):
		m.beat(ev, 3)
		if w.dice.chance(400) {
			return // and then it is silent
		}
		d = w.dice.upTo(2 * time.Second)
	}
	w.after(d, func() { m.outcome(ev) })
	if w.fault(repeatedAsks, 60) {
		w.after(d+w.dice.upTo(6*time.Second), func() { m.outcome(ev) })
	}
}

func (m *askers) beat(ev historysim.Event, times int) {
	ev.Kind = historysim.Heartbeat
	m.ask("worker", &call{events: []historysim.Event{ev}, tries: triesMost - 1, answers: func(int, *historysim.Verdict) {}})
	if times > 1 {
		m.w.after(m.w.dice.upTo(1200*time.Millisecond), func() { m.beat(ev, times-1) })
	}
}

func (m *askers) outcome(ev historysim.Event) {
	m.ask("worker", &call{events: []historysim.Event{ev}, answers: func(int, *historysim.Verdict) {}})
}
