package simulation

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/matchingsim"
)

// callTimeout is how long an owner waits for the tables.
const callTimeout = time.Second

// tableNode is the store of one domain's tables.
type tableNode struct {
	m      *matching
	tables *matchingsim.Tables
	rates  rateChecker
	// away and slow are until when it is.
	away, slow time.Duration
}

// trouble loses all, or what was written after a snapshot, which is void; or is away, or slow.
func (n *tableNode) trouble(domain string) {
	m := n.m
	if m.fault(wipedTables, 10) {
		m.say("tables", "of %s are lost", domain)
		n.tables.Forget()
		n.rates.wiped(m.now)
		n.away = m.now + m.dice.upTo(time.Second)
	}
	if m.fault(awayTables, 8) {
		n.away = m.now + m.dice.upTo(8*time.Second)
		m.say("tables", "of %s are away until %v", domain, n.away)
	}
	if m.fault(slowTables, 10) {
		n.slow = m.now + m.dice.upTo(8*time.Second)
		m.say("tables", "of %s are slow until %v", domain, n.slow)
	}
}

func (n *tableNode) latency() time.Duration {
	if n.m.now < n.slow {
		return n.m.dice.upTo(1500 * time.Millisecond)
	}
	return n.m.dice.between(100*time.Microsecond, 3*time.Millisecond)
}

// ask has the store carry something out, or not, or late; done tells the owner once, or that
// no one knows.
func (n *tableNode) ask(p *matchProc, what func(), done func(known bool)) {
	m, answered := n.m, false
	answer := func(known bool) {
		if !answered {
			answered = true
			done(known)
		}
	}
	p.do(callTimeout, func() { answer(false) })
	switch {
	case m.fault(unknownCalls, 30): // it gets lost
		return
	case m.fault(unknownCalls, 30): // its answer gets lost
		m.after(n.latency(), func() { n.carryOut(what) })
		return
	case m.fault(unknownCalls, 30): // it arrives late
		m.after(m.dice.upTo(8*time.Second), func() { n.carryOut(what) })
		return
	}
	m.after(n.latency()+5*time.Millisecond, func() {
		switch {
		case n.carryOut(what):
			p.do(n.latency(), func() { answer(true) })
		case m.dice.chance(500):
			p.do(n.latency(), func() { answer(false) })
		}
	})
}

func (n *tableNode) carryOut(what func()) bool {
	if n.m.now < n.away {
		return false
	}
	what()
	return true
}

func (p *matchProc) callTables(c matchingsim.Call) {
	n, out := p.m.nodes[c.Domain], matchingsim.CallOutcome{Domain: c.Domain}
	n.ask(p, func() {
		out.Outcome = n.tables.Do(c, n.clock()*1000)
		n.rates.took(p.m, &c, &out.Outcome)
		p.toldTables(&c, &out.Outcome)
	}, func(known bool) {
		o := out
		if !known {
			o = matchingsim.CallOutcome{Domain: c.Domain, Failed: true}
		}
		p.owner.Put(func(in *matchingsim.Inputs) { in.Outcomes = append(in.Outcomes, o) })
	})
}

func (p *matchProc) openTables(domain string) {
	n, out := p.m.nodes[domain], matchingsim.OpenOutcome{Domain: domain}
	n.ask(p, func() { out.Opened = n.tables.Open(domain, p.shard.number) }, func(known bool) {
		o := out
		if !known {
			o = matchingsim.OpenOutcome{Domain: domain, Failed: true}
		}
		p.owner.Put(func(in *matchingsim.Inputs) { in.Opened = append(in.Opened, o) })
	})
}

// clock is the store's, Unix ms.
func (n *tableNode) clock() int64 { return n.m.epochMS + n.m.now.Milliseconds() }

// toldTables writes a call down.
func (p *matchProc) toldTables(c *matchingsim.Call, out *matchingsim.Outcome) {
	if !p.s.telling {
		return
	}
	if out.Lost || out.Overtaken {
		p.s.say(p.name, "call %d.%d of %s: lost=%v overtaken=%v", c.Seq.Epoch, c.Seq.Call, c.Domain, out.Lost, out.Overtaken)
		return
	}
	taken := 0
	for i := range out.Taken {
		for _, b := range out.Taken[i].Batches {
			taken += len(b.Triggers) / triggerBytes
		}
	}
	p.s.say(p.name, "call %d.%d of %s: puts %d, takes %d", c.Seq.Epoch, c.Seq.Call, c.Domain, len(c.Put), taken)
	for i := range c.Stances {
		s, l := &c.Stances[i], &out.Limits[i]
		p.s.say(p.name, "  %s max %d: held %d, waits %d; used %d, restoring=%v others=%v", s.Ref, s.Max, s.Held, s.Wait, l.Used, l.Restoring, l.Others)
	}
}
