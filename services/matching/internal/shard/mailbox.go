package shard

import (
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
