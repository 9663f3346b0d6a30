package demo

import "time"

const (
	// meterHistory is how many whole seconds a meter remembers.
	meterHistory = 120
	// meterSmooth is how much of the past the current rate is an average of.
	meterSmooth = 2 * time.Second
)

// meter makes rates of a sum that grows. It is not safe for concurrent use.
type meter struct {
	recent  []reading // of the last meterSmooth, oldest first
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
	m.recent = append(m.recent, reading{now, total})
	for len(m.recent) > 2 && now.Sub(m.recent[0].at) > meterSmooth {
		m.recent = m.recent[1:]
	}
}

// rate is the current growth per second.
func (m *meter) rate() float64 {
	if len(m.recent) < 2 {
		return 0
	}
	first, last := m.recent[0], m.recent[len(m.recent)-1]
	took := last.at.Sub(first.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(last.total-first.total) / took
}

// history is the growth in each of the last whole seconds, oldest first.
func (m *meter) history() []float64 { return append([]float64(nil), m.seconds...) }
