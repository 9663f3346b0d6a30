package shard

import "context"

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
