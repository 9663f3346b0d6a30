package table

import "math"

// slots are the bookings of one limit and when each expires, Unix ms.
type slots struct {
	until map[string]int64
	// soonest is no later than the first expiry: before it there is nothing to purge.
	soonest int64
}

func newSlots() *slots { return &slots{until: map[string]int64{}, soonest: math.MaxInt64} }

// purge forgets what expired by now.
func (s *slots) purge(now int64) {
	if now < s.soonest {
		return
	}
	s.soonest = math.MaxInt64
	for member, until := range s.until {
		if until <= now {
			delete(s.until, member)
		} else {
			s.soonest = min(s.soonest, until)
		}
	}
}

// book adds a booking, or moves the expiry of one that exists to a later time.
func (s *slots) book(member string, until int64) {
	if s.until[member] < until {
		s.until[member] = until
		s.soonest = min(s.soonest, until)
	}
}

func (s *slots) has(member string) bool {
	_, ok := s.until[member]
	return ok
}
