package match

import (
	"time"
)

// begin does what is left of the start.
func (s *Shard) begin() {
	if s.start.begun {
		return
	}
	s.start.begun = true
	s.grabs.SendFences()
	s.questions.Start()
}

// openAt is when the shard is opened at the latest; ok is false before the first fence, and once it is open.
func (s *Shard) openAt() (at time.Duration, ok bool) {
	fencedAt, fenced := s.grabs.FencedAt()
	return fencedAt + startWait, fenced && !s.start.open
}

// redeliver sends again what owners before may not have sent, and opens the shard. A
// grant that comes later than startWait is sent if its inbox has been sent none.
func (s *Shard) redeliver() {
	at, opens := s.openAt()
	if !s.start.open && (!opens || s.questions.Undelivered() > 0 && s.now.Mono < at) {
		return
	}
	s.waiting.Redeliver()
	if opens {
		s.start.open, s.fx.Open = true, true
	}
}
