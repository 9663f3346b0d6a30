package shard

import (
	"context"
	"sync"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
)

// mail is what came in since the loop last looked.
type mail struct {
	match.Inputs
	// looks are at the core, between two steps.
	looks []look
}

// reset empties m and keeps its memory, but nothing that it referred to.
func (m *mail) reset() {
	in := &m.Inputs
	in.Limits, in.Outcomes, in.Opened = emptied(in.Limits), emptied(in.Outcomes), emptied(in.Opened)
	in.Answers, in.Verdicts, in.Bounced = emptied(in.Answers), emptied(in.Verdicts), emptied(in.Bounced)
	in.Freed, in.Restore = emptied(in.Freed), emptied(in.Restore)
	in.Hints, in.Polls = emptied(in.Hints), emptied(in.Polls)
	in.GivenUp = emptied(in.GivenUp)
	in.Silent = emptied(in.Silent)
	in.Branches, in.Unmoved = emptied(in.Branches), emptied(in.Unmoved)
	in.HintsLost, in.ReleasesLost, in.Drain, in.Proven, in.Broke = false, false, false, 0, false
	m.looks = emptied(m.looks)
}

func emptied[T any](s []T) []T {
	clear(s)
	return s[:0]
}

// mailbox is where others leave messages for the loop. It is bounded by who fills
// it: unacknowledged hints, verdicts and outcomes of what was sent, and polls, of which
// the core refuses those beyond its limit.
type mailbox struct {
	mu   sync.Mutex
	in   mail
	wake chan struct{}
}

func (b *mailbox) put(add func(*mail)) {
	b.mu.Lock()
	add(&b.in)
	b.mu.Unlock()
	b.poke()
}

// poke has the loop look.
func (b *mailbox) poke() {
	select {
	case b.wake <- struct{}{}:
	default: // it is due to look anyway
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

// looksMax is how many looks at the core a turn has, and of one domain it has one: a look may go through tens of thousands of limits, and
// the polls and tasks of all domains wait meanwhile (I14).
const looksMax = 4

// look is a look at the core for a domain, between two turns.
type look struct {
	domain string
	at     func(Core)
}

// some are the looks that come next, the first one of each domain, and those that are left for later turns.
func some(waiting []look) (next, later []look) {
	for _, l := range waiting {
		taken := len(next) == looksMax
		for _, n := range next {
			taken = taken || n.domain == l.domain
		}
		if taken {
			later = append(later, l)
		} else {
			next = append(next, l)
		}
	}
	return next, later
}

// look has the loop look at the core between two turns, unless ctx ends before.
func (s *Shard) look(ctx context.Context, domain string, at func(c Core)) error {
	done := make(chan struct{})
	s.box.put(func(m *mail) {
		m.looks = append(m.looks, look{domain, func(c Core) {
			if ctx.Err() == nil {
				at(c)
			}
			close(done)
		}})
	})
	select {
	case <-done:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
