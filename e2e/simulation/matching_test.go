package simulation

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

const (
	domain   = "shop"
	rival    = "rival"
	tasklist = "list"
	taskType = "type"
	// triesMost is how often an asker asks.
	triesMost = 4
)

// call is a request to history, and who waits for its verdicts.
type call struct {
	events  []historysim.Event
	tries   int
	answers func(i int, v *historysim.Verdict)
	done    bool
	// gone: the asker left before it was granted anything.
	gone bool
}

// matching stands for matching, the workers and the frontends: all who ask history.
type matching struct {
	w     *world
	nonce uint64
	calls map[uint64]*call
	last  uint64
	held  map[ids.Token]bool
}

func newMatching(w *world) *matching {
	return &matching{w: w, calls: map[uint64]*call{}, held: map[ids.Token]bool{}}
}

// ask appends events and repeats them until there is an answer.
func (m *matching) ask(who string, c *call) {
	w := m.w
	if c.done || c.tries >= triesMost {
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
	times := 1
	if w.fault(repeatedAsks, 60) {
		times = 2
	}
	for range times {
		w.after(w.dice.upTo(20*time.Millisecond), func() {
			seq := w.appendLog(&historysim.Message{Event: true, Request: request, Events: c.events})
			if w.telling {
				for i := range c.events {
					e := &c.events[i]
					w.say(who, "asks %d/%d: %v %s %s %s at event %d", request, i, e.Kind, w.name(e.ID), fence(e), e.Domain, seq)
				}
			}
		})
	}
	w.after(w.dice.between(500*time.Millisecond, 4*time.Second), func() { m.ask(who, c) })
}

// hints takes in what history tells.
func (m *matching) hints(op *historysim.Op) {
	w := m.w
	for i := range op.Releases {
		for b := op.Releases[i].Packed; len(b) > 0; b = b[ids.BookingBytes:] {
			w.check.released(string(b[:ids.BookingBytes]))
		}
	}
	for i := range op.Triggers {
		packed := op.Triggers[i].Packed
		for k := range len(packed) / ids.TriggerBytes {
			if w.fault(lostTriggers, 100) {
				continue
			}
			tr := ids.TriggerAt(packed, k)
			d := w.dice.upTo(20 * time.Millisecond)
			if w.fault(lostTriggers, 100) {
				d = w.dice.upTo(5 * time.Second)
			}
			w.after(d, func() { m.grab(tr) })
			if w.fault(lostTriggers, 100) {
				w.after(w.dice.upTo(2*time.Second), func() { m.grab(tr) })
			}
		}
	}
}

// grab asks for an attempt.
func (m *matching) grab(tr ids.Trigger) {
	m.nonce++
	ev := historysim.Event{
		Kind: historysim.Started, ID: tr.ID, Worker: "worker", Booked: true,
		Fence: ids.Token{Position: tr.Position, Version: tr.Version, Nonce: m.nonce},
	}
	c := &call{events: []historysim.Event{ev}}
	c.answers = func(_ int, v *historysim.Verdict) {
		if v.Granted && !m.held[ev.Fence] {
			m.held[ev.Fence] = true
			m.work(ev)
		}
	}
	m.ask("matching", c)
}

// answered takes in an answer, or tells that nobody did.
func (m *matching) answered(p *proc, a *historysim.Answer) {
	w := m.w
	w.check.verdicts(p, a)
	if w.fault(lostAnswers, 50) {
		return
	}
	c := m.calls[a.RequestID]
	if c == nil || c.gone {
		return
	}
	// Answers of one owner come in order, so one that is there for a repetition was there for
	// the first.
	if (!c.done || !firstGrant(a)) && w.fault(bouncedAnswers, 50) {
		w.say("matching", "answer %d bounces to %s", a.RequestID, p.name)
		c.gone = firstGrant(a)
		c.done = c.done || c.gone
		p.do(p.latency(), func() { p.owner.Bounced(a) })
		return
	}
	c.done = true
	for i := range a.Verdicts {
		c.answers(a.First+i, &a.Verdicts[i])
	}
}

func firstGrant(a *historysim.Answer) bool {
	for i := range a.Verdicts {
		if a.Verdicts[i].Grant.First {
			return true
		}
	}
	return false
}

// work ends a granted attempt one way or another.
func (m *matching) work(grab historysim.Event) {
	w := m.w
	ev := historysim.Event{Kind: historysim.Succeeded, ID: grab.ID, Fence: grab.Fence, Domain: domain}
	d := w.work
	if d == 0 {
		d = w.dice.upTo(400 * time.Millisecond)
	}
	switch {
	case w.fault(silentWorkers, 60):
		return
	case w.fault(failures, 150):
		ev.Kind, ev.Message = historysim.Failed, "flaky"
		if w.dice.chance(300) {
			ev.DelayMS = 11_000 + w.dice.Int64N(5000)
		}
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

func (m *matching) beat(ev historysim.Event, times int) {
	ev.Kind = historysim.Heartbeat
	m.ask("worker", &call{events: []historysim.Event{ev}, tries: triesMost - 1, answers: func(int, *historysim.Verdict) {}})
	if times > 1 {
		m.w.after(m.w.dice.upTo(1200*time.Millisecond), func() { m.beat(ev, times-1) })
	}
}

func (m *matching) outcome(ev historysim.Event) {
	m.ask("worker", &call{events: []historysim.Event{ev}, answers: func(int, *historysim.Verdict) {}})
}

// hungry asks for lost triggers, as pollers with nothing to do.
func (m *matching) hungry() {
	w := m.w
	w.after(w.dice.between(300*time.Millisecond, 2*time.Second), m.hungry)
	for _, p := range w.living() {
		w.check.memory(p)
		p.do(0, func() { p.owner.Hungry(domain, tasklist) })
	}
}
