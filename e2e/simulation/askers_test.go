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
	// knows is how many failures the worker knows of an attempt that it keeps.
	knows map[heldBy]int32
}

// ask appends events and repeats them until there is an answer.
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
		asked = w.sentFirst(asked)
	}
	for range times {
		w.after(w.dice.upTo(20*time.Millisecond), func() {
			seq := w.appendLog(&historysim.Message{Event: true, Request: request, Events: asked})
			if w.telling {
				for i := range asked {
					e := &asked[i]
					w.say(who, "asks %d/%d: %v %s %s %s at event %d", request, i, e.Kind, w.name(e.ID), fence(e), e.Domain, seq)
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

// work ends an attempt that a worker has got, one way or another; it knows of so many failures.
func (m *askers) work(id ids.TaskID, token ids.Token, known int32) {
	w := m.w
	ev := historysim.Event{Kind: historysim.Succeeded, ID: id, Fence: token, Domain: w.accepted[id].domain}
	d := w.work
	if d == 0 {
		d = w.dice.upTo(400 * time.Millisecond)
	}
	flaky, again := 150, 60
	if w.policyOf[id].PinnedForMS > 0 { // what is said several times counts once
		flaky, again = 400, 300
	}
	switch {
	case w.fault(silentWorkers, 60):
		return
	case w.dies(300):
		ev.Kind, ev.Message = historysim.Failed, "it dies"
	case w.fault(failures, flaky):
		ev.Kind, ev.Message, ev.ErrType = historysim.Failed, "flaky", errTypes[w.dice.IntN(3)]
		if w.dice.chance(300) {
			ev.DelayMS = askedDelayMS + w.dice.Int64N(5000)
		}
		ev.Keep, ev.Failures = w.dice.chance(600), known
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
	if w.fault(repeatedAsks, again) {
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
	m.ask("worker", &call{events: []historysim.Event{ev}, answers: func(_ int, v *historysim.Verdict) {
		if v.RetryAt > 0 {
			m.tryAgain(ev, v)
		}
	}})
}

// tryAgain has the worker of an attempt that it keeps try again in place. It may hear so several times, and may hand it back meanwhile.
func (m *askers) tryAgain(failed historysim.Event, v *historysim.Verdict) {
	w, key := m.w, heldBy{failed.ID, failed.Fence}
	if m.knows[key] >= v.Failures {
		return
	}
	m.knows[key] = v.Failures
	wait := time.Duration(max(0, v.RetryAt-w.serverMS())) * time.Millisecond
	if w.dice.chance(150) {
		wait = w.dice.upTo(wait)
		w.after(wait, func() {
			m.outcome(historysim.Event{Kind: historysim.Released, ID: failed.ID, Fence: failed.Fence, Domain: failed.Domain, Message: "it leaves"})
		})
		return
	}
	w.after(wait, func() { m.work(failed.ID, failed.Fence, v.Failures) })
}
