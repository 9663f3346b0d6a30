package demo

import (
	"slices"
	"time"
)

const (
	// meterHistory is how many whole seconds a meter remembers.
	meterHistory = 120
	// meterSmooth is how many whole seconds the current rate is an average of.
	meterSmooth = 2
)

// meter makes rates of a sum that grows. It is not safe for concurrent use.
type meter struct {
	second  reading   // at the start of the current second
	seconds []float64 // growth in each whole second, oldest first
}

type reading struct {
	at    time.Time
	total int
}

// observe tells the sum at an instant. Instants must not go back.
func (m *meter) observe(now time.Time, total int) {
	if m.second.at.IsZero() {
		m.second = reading{now, total}
	}
	// Growth over seconds without an observation is spread evenly.
	for gap := now.Sub(m.second.at); gap >= time.Second; gap -= time.Second {
		grown := float64(total-m.second.total) * float64(time.Second) / float64(gap)
		m.seconds = append(m.seconds, grown)
		m.second = reading{m.second.at.Add(time.Second), m.second.total + int(grown)}
	}
	if over := len(m.seconds) - meterHistory; over > 0 {
		m.seconds = append(m.seconds[:0], m.seconds[over:]...)
	}
}

// rate is the current growth per second, 0 in the first second.
func (m *meter) rate() float64 {
	recent := m.seconds[max(len(m.seconds)-meterSmooth, 0):]
	sum := 0.0
	for _, grown := range recent {
		sum += grown
	}
	return sum / float64(max(len(recent), 1))
}

// history is the growth in each of the last whole seconds, oldest first.
func (m *meter) history() []float64 { return slices.Clone(m.seconds) }
