package simulation

import "time"

// host is a process: it can be paused and killed, and its clocks may be wrong.
type host struct {
	w    *world
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

func (w *world) newHost(name string, pausing faults) host {
	h := host{w: w, name: name, pausing: pausing, rate: 1}
	if w.fault(skewedClocks, 700) {
		h.wall = w.dice.upTo(2*time.Hour) - time.Hour
		h.rate = 0.99 + 0.02*w.dice.Float64()
	}
	return h
}

func (h *host) pause(d time.Duration) {
	h.w.say(h.name, "pauses for %v", d)
	h.resumeAt = max(h.resumeAt, h.w.now+d)
}

// do lets something happen in the process, after any pause of it.
func (h *host) do(d time.Duration, what func()) {
	h.w.after(d, func() {
		switch {
		case h.dead:
			// nothing
		case h.w.fault(h.pausing, 1):
			h.pause(h.w.dice.upTo(6 * time.Second))
			fallthrough
		case h.w.now < h.resumeAt:
			h.do(h.resumeAt-h.w.now+h.w.dice.upTo(time.Millisecond), what)
		default:
			what()
		}
	})
}

// mono is its clock that nobody sets, wallMS the one that tells the time.
func (h *host) mono() time.Duration { return time.Duration(float64(h.w.now) * h.rate) }

func (h *host) wallMS() int64 { return h.w.epochMS + (h.mono() + h.wall).Milliseconds() }

func (h *host) latency() time.Duration {
	switch {
	case h.w.fault(reordering, 60):
		return h.w.dice.upTo(1500 * time.Millisecond)
	case h.w.fault(slowReaders, 30):
		return h.w.dice.upTo(300 * time.Millisecond)
	}
	return h.w.dice.between(200*time.Microsecond, 5*time.Millisecond)
}
