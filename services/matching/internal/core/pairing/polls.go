package pairing

import (
	"time"

	"github.com/yardmaster-io/yardmaster/shared/heap"
)

// Polls are all polls of a shard that are not answered, by when they have to be looked at. Use NewPolls.
type Polls[L, G any] struct {
	due heap.Heap[*Poll[L, G]]
	// byInbox has the last one of each inbox.
	byInbox map[string]*Poll[L, G]
	last    uint64
	// touched are polls to be looked at in this turn.
	touched []*Poll[L, G]
}

// NewPolls returns none.
func NewPolls[L, G any]() Polls[L, G] {
	return Polls[L, G]{byInbox: map[string]*Poll[L, G]{}, due: heap.Heap[*Poll[L, G]]{
		Less: func(a, b *Poll[L, G]) bool { return a.at < b.at }, Place: func(p *Poll[L, G]) *int { return &p.place },
	}}
}

// HasRoom reports whether one more poll of a domain may wait, of most in all (I14): the last quarter of the places is for domains that
// have a sixteenth of them at most, as in shared/admission. A nil domain has none.
func (s *Polls[L, G]) HasRoom(d *Domain, most int) bool {
	mine, all := 1, s.Len()+1
	if d != nil {
		mine += d.alive
	}
	return all <= most-most/4 || all <= most && mine <= max(most/16, 1)
}

// Len counts the polls.
func (s *Polls[L, G]) Len() int { return s.due.Len() }

// Last is the number of the poll that came last.
func (s *Polls[L, G]) Last() uint64 { return s.last }

// All are the polls, in no order that means something.
func (s *Polls[L, G]) All() []*Poll[L, G] { return s.due.All() }

// Add adds a new poll, which is looked at when its time is over.
func (s *Polls[L, G]) Add(p *Poll[L, G]) {
	s.last++
	p.order, p.at = s.last, p.Until
	s.due.Push(p)
	s.byInbox[p.ReplyTo] = p
}

// Remove forgets a poll, which counts as answered.
func (s *Polls[L, G]) Remove(p *Poll[L, G]) {
	p.Answered = true
	s.due.Remove(p)
	if s.byInbox[p.ReplyTo] == p {
		delete(s.byInbox, p.ReplyTo)
	}
}

// ByInbox is the last poll of an inbox, or nil.
func (s *Polls[L, G]) ByInbox(inbox string) *Poll[L, G] { return s.byInbox[inbox] }

// Look has a poll looked at.
func (s *Polls[L, G]) Look(p *Poll[L, G], at time.Duration) {
	p.at = at
	s.due.Fix(p)
}

// Next is the poll to be looked at next.
func (s *Polls[L, G]) Next() (*Poll[L, G], bool) {
	if s.due.Len() == 0 {
		return nil, false
	}
	return s.due.First(), true
}

// Touch has a poll looked at in this turn.
func (s *Polls[L, G]) Touch(p *Poll[L, G]) {
	if !p.touched && !p.Answered {
		p.touched = true
		s.touched = append(s.touched, p)
	}
}

// EachTouched calls f with the polls that were touched, each once.
func (s *Polls[L, G]) EachTouched(f func(p *Poll[L, G])) {
	for _, p := range s.touched {
		p.touched = false
		f(p)
	}
	clear(s.touched)
	s.touched = s.touched[:0]
}
