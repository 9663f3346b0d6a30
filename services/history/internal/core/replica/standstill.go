package replica

const (
	// standsStillMS is after how long without an event the log counts as standing still, and how late it may take
	// an expiry.
	standsStillMS = 1000
	// graceMS is how long workers get to be heard once the log moves again, before a lease that is over is proposed to
	// expire. A request that met the standstill is given up after 4 s, and repeated after 2 s at most.
	graceMS = 8000
	// quietMS is after how long without an event the log is asked whether it moves, if a lease ends within
	// leaseNearMS: then a standstill is known, and its grace over, when the lease is.
	quietMS     = standsStillMS / 2
	leaseNearMS = graceMS + 2*standsStillMS
	// stillLookMS is how often a lease that is over is looked at while the log stands still.
	stillLookMS = 250
	// heldBackMaxMS bounds how long an expiry is held back: a log that moves once in a while must not keep
	// attempts of the dead forever.
	heldBackMaxMS = 60_000
)

// spared marks, in Entry.proposed, an attempt whose expiry the log took too late. The next one may be stored as late as
// sparedMS: a log that is always slow must not keep the attempt forever.
const (
	spared   = 1 << 0
	sparedMS = 3_600_000
)

// heard notes that the log has moved.
func (s step) heard(at int64) {
	nowMS := s.now.MS
	if s.replay != nil {
		nowMS = at
	}
	still := &s.still
	if nowMS-still.heardAt >= standsStillMS {
		still.endedAt, still.graceUntil = at, nowMS+graceMS
	}
	still.heardAt = nowMS
}

// listen has the log asked whether it moves, if there is silence and a lease ends soon.
func (s step) listen() {
	at, ok := s.wake.Next()
	s.still.asks = ok && !s.appending && !s.draining && at <= s.now.MS+leaseNearMS && s.now.MS-s.still.heardAt >= quietMS
}

// until is when to look again at e, whose lease is over; a time that is over: now it may be proposed to expire.
func (s *standstill) until(e *Entry, now Now) int64 {
	switch {
	case now.MS-e.WakeAt() >= heldBackMaxMS:
		return 0
	case now.MS-s.heardAt >= standsStillMS:
		return now.MS + stillLookMS
	case e.Attempt.StartedAt < s.endedAt:
		return s.graceUntil
	}
	return 0
}

// notAfter is the date of the expiry of e.
func (e *Entry) notAfter(now Now) int64 {
	if e.proposed&spared != 0 {
		return now.MS + sparedMS
	}
	return now.MS + standsStillMS
}
