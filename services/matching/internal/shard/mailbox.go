package shard

import (
	"sync"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
)

// Delivery is one message of the hint stream.
type Delivery struct {
	Hints *logv1.Hints
	// Done is called once: true when the hints are taken care of, false when the
	// message should come again a little later.
	Done func(ok bool)
}

// mail is what came in since the loop last looked.
type mail struct {
	hints    []Delivery
	polls    []*rpcv1.Poll
	verdicts []*logv1.VerdictBatch
	freed    []*rpcv1.Freed
	unheard  []uint64
	// calls run in the loop.
	calls []func()
}

func (m *mail) reset() {
	clear(m.hints)
	clear(m.polls)
	clear(m.verdicts)
	clear(m.freed)
	clear(m.calls)
	m.hints, m.polls, m.verdicts = m.hints[:0], m.polls[:0], m.verdicts[:0]
	m.freed, m.unheard, m.calls = m.freed[:0], m.unheard[:0], m.calls[:0]
}

// mailbox is where others leave messages for the loop. It is bounded by who fills
// it: unacknowledged hints, one verdict per grab in flight, and polls, of which the
// loop refuses those beyond its limit.
type mailbox struct {
	mu   sync.Mutex
	in   mail
	wake chan struct{}
}

func (b *mailbox) put(add func(*mail)) {
	b.mu.Lock()
	add(&b.in)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default: // the loop is due to look anyway
	}
}

// take swaps what came in for the emptied m.
func (b *mailbox) take(m mail) mail {
	m.reset()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.in, m = m, b.in
	return m
}

// Hints hands the shard a message of its stream.
func (s *Shard) Hints(d Delivery) { s.box.put(func(m *mail) { m.hints = append(m.hints, d) }) }

// Poll hands the shard a poll, which it answers through the Outbox in any case.
func (s *Shard) Poll(p *rpcv1.Poll) { s.box.put(func(m *mail) { m.polls = append(m.polls, p) }) }

// Verdicts hands the shard history's answer to a batch of its events.
func (s *Shard) Verdicts(v *logv1.VerdictBatch) {
	s.box.put(func(m *mail) { m.verdicts = append(m.verdicts, v) })
}

// Freed tells the shard that slots were freed somewhere.
func (s *Shard) Freed(f *rpcv1.Freed) { s.box.put(func(m *mail) { m.freed = append(m.freed, f) }) }

// Unheard tells the shard that an answer reached nobody.
func (s *Shard) Unheard(id uint64) { s.box.put(func(m *mail) { m.unheard = append(m.unheard, id) }) }

// LimitsChanged tells the shard that limits of a domain may have changed.
func (s *Shard) LimitsChanged(domain string) { s.call(func() { s.limitsChanged(domain) }) }

// call runs f in the loop, unless the shard has ended.
func (s *Shard) call(f func()) { s.box.put(func(m *mail) { m.calls = append(m.calls, f) }) }
