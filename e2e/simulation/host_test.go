package simulation

import "time"

// host is a process: it can be paused and killed, and its clocks may be wrong.
type host struct {
	s    *sim
	name string
	dead bool
	// pausing is the kind of fault that pauses it now and then.
	pausing faults
	// resumeAt is when its pause ends.
	resumeAt time.Duration
	// wall and rate are what is wrong with its clocks.
	wall time.Duration
	rate float64
}

func (s *sim) newHost(name string, pausing faults) host {
	h := host{s: s, name: name, pausing: pausing, rate: 1}
	if s.fault(skewedClocks, 700) {
		h.wall = s.dice.upTo(2*time.Hour) - time.Hour
		h.rate = 0.99 + 0.02*s.dice.Float64()
	}
	return h
}

func (h *host) pause(d time.Duration) {
	h.s.say(h.name, "pauses for %v", d)
	h.resumeAt = max(h.resumeAt, h.s.now+d)
}

// do lets something happen in the process, after any pause of it.
func (h *host) do(d time.Duration, what func()) {
	h.s.after(d, func() {
		switch {
		case h.dead:
			// nothing
		case h.s.fault(h.pausing, 1):
			h.pause(h.s.dice.upTo(6 * time.Second))
			fallthrough
		case h.s.now < h.resumeAt:
			h.do(h.resumeAt-h.s.now+h.s.dice.upTo(time.Millisecond), what)
		default:
			what()
		}
	})
}

// mono is its clock that no one sets, wallMS the one that tells the time.
func (h *host) mono() time.Duration { return time.Duration(float64(h.s.now) * h.rate) }

func (h *host) wallMS() int64 { return h.s.epochMS + (h.mono() + h.wall).Milliseconds() }

func (h *host) latency() time.Duration {
	switch {
	case h.s.fault(reordering, 60):
		return h.s.dice.upTo(1500 * time.Millisecond)
	case h.s.fault(slowReaders, 30):
		return h.s.dice.upTo(300 * time.Millisecond)
	}
	return h.s.dice.between(200*time.Microsecond, 5*time.Millisecond)
}
