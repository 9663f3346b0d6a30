// Package outcome decides what becomes of a batch of events until each of them has its verdict.
//
// A batch has shares, one of each request. It is sent, and what has no verdict in time is sent again, until each share has all its verdicts or its
// deadline is over. An event with a verdict is not sent again: history does not know each event again, and one that it has refused would be applied to
// a task that was redriven since.
//
// Owns: which events a message has, which share is answered when, and how long a verdict is waited for.
//
// Never does: I/O, or read a clock, or a verdict.
//
// On failure: a share without a verdict at its deadline has expired: its outcome is unknown. Verdicts may come in parts, twice, late, or never.
package outcome

import (
	"slices"
	"time"
)

// Share is what one request has in a flight: so many events, and until when it is answered.
type Share struct {
	Events   int
	Deadline time.Time
	first    int
	over     bool
}

// Flight is one batch that misses verdicts. It is not safe for concurrent use.
type Flight[V any] struct {
	shares []Share
	// grows: the wait for verdicts does.
	grows bool
	// verdicts are by event, nil = missing. sent are the places of the events of the last message.
	verdicts []*V
	sent     []int
	sends    int
}

// New makes the flight of some shares. If its wait grows, history is asked less and less often: where it is slow, the same events once more make it
// slower. The outcomes of attempts have no time for that.
func New[V any](shares []Share, grows bool) *Flight[V] {
	f := &Flight[V]{shares: slices.Clone(shares), grows: grows}
	n := 0
	for i := range f.shares {
		f.shares[i].first = n
		n += f.shares[i].Events
	}
	f.verdicts = make([]*V, n)
	return f
}

// resendDoublings is how often a wait that grows doubles.
const resendDoublings = 2

// Wait is how long a verdict is waited for behind the next sending.
func (f *Flight[V]) Wait(timeout time.Duration) time.Duration {
	if f.grows {
		timeout <<= min(f.sends, resendDoublings)
	}
	return timeout
}

// Until is d, or less if a deadline comes before.
func (f *Flight[V]) Until(now time.Time, d time.Duration) time.Duration {
	for _, s := range f.shares {
		if !s.over {
			d = min(d, s.Deadline.Sub(now))
		}
	}
	return max(d, 0)
}

// Sent reports whether it was sent before.
func (f *Flight[V]) Sent() bool { return f.sends > 0 }

// Send returns the places of the events that are sent now: those without a verdict, of shares that are not over. Other: they are not those of the message
// before, whose verdicts have other places.
func (f *Flight[V]) Send() (places []int, other bool) {
	for _, s := range f.shares {
		for at := s.first; at < s.first+s.Events && !s.over; at++ {
			if f.verdicts[at] == nil {
				places = append(places, at)
			}
		}
	}
	if len(places) == 0 {
		return nil, false
	}
	f.sends++
	other = len(places) != len(f.sent)
	f.sent = places
	return places, other
}

// Take takes in verdicts on the events of the last message, from the first one of them on. False: it has no such events.
func (f *Flight[V]) Take(first int, verdicts []*V) bool {
	if first < 0 || first+len(verdicts) > len(f.sent) {
		return false
	}
	for i, v := range verdicts {
		if at := f.sent[first+i]; f.verdicts[at] == nil {
			f.verdicts[at] = v
		}
	}
	return true
}

// Concluded returns the shares that have all their verdicts now. They are over.
func (f *Flight[V]) Concluded() []int {
	return f.end(func(i int) bool { return !slices.Contains(f.Verdicts(i), nil) })
}

// Expired returns the shares whose deadline has come, or all that are left. They are over.
func (f *Flight[V]) Expired(now time.Time, all bool) []int {
	return f.end(func(i int) bool { return all || !now.Before(f.shares[i].Deadline) })
}

func (f *Flight[V]) end(ends func(i int) bool) (some []int) {
	for i := range f.shares {
		if s := &f.shares[i]; !s.over && ends(i) {
			s.over = true
			some = append(some, i)
		}
	}
	return some
}

// Verdicts are those of a share, in the order of its events.
func (f *Flight[V]) Verdicts(share int) []*V {
	s := f.shares[share]
	return f.verdicts[s.first : s.first+s.Events]
}

// Left is how many shares are not over.
func (f *Flight[V]) Left() (n int) {
	for _, s := range f.shares {
		if !s.over {
			n++
		}
	}
	return n
}
