package scale

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is a scaler that keeps all reports and all looks of one tasklist, and decides by reading them again from the first.
type model struct {
	cfg     Config
	reports []modelReport
	looks   []modelLook
}

type modelReport struct {
	partition int
	rate      float64
	at        time.Time
}

type modelLook struct {
	at      time.Time
	setting Setting
	// rate is what came; known: no partition was missing, then or since the look before. decided: a change came of it.
	rate           float64
	known, decided bool
}

// last is the last report of a partition before or at an instant.
func (m *model) last(partition int, at time.Time) (last modelReport, ok bool) {
	for _, r := range m.reports {
		if r.partition == partition && !r.at.After(at) {
			last, ok = r, true
		}
	}
	return last, ok
}

// mean is of the reports of a partition since the last look before which some came.
func (m *model) mean(partition int) float64 {
	for end := len(m.looks); end >= 0; end-- {
		var sum float64
		n := 0
		for _, r := range m.reports {
			if r.partition == partition && (end == 0 || r.at.After(m.looks[end-1].at)) && (end == len(m.looks) || !r.at.After(m.looks[end].at)) {
				sum += r.rate
				n++
			}
		}
		if n > 0 {
			return sum / float64(n)
		}
	}
	return 0
}

// gap tells whether a partition that counted at the last look was silent for too long before a report since then.
func (m *model) gap() bool {
	if len(m.looks) == 0 {
		return false
	}
	before := m.looks[len(m.looks)-1]
	for p := range before.setting.Partitions {
		at, _ := m.last(p, before.at)
		for _, r := range m.reports {
			if r.partition == p && r.at.After(before.at) {
				if r.at.Sub(at.at) > ReportedFor {
					return true
				}
				at = r
			}
		}
	}
	return false
}

func (m *model) look(now time.Time, is Setting) (to int) {
	l := modelLook{at: now, setting: is, known: true}
	for p := range 64 {
		r, ok := m.last(p, now)
		switch {
		case ok && now.Sub(r.at) <= ReportedFor:
			l.rate += m.mean(p)
		case p < is.Partitions:
			l.known = false
		}
	}
	gap := m.gap()
	m.looks = append(m.looks, l)
	if gap { // what was before does not count
		for i := range m.looks[:len(m.looks)-1] {
			m.looks[i].known = false
		}
	}
	n := float64(is.Partitions)
	holds := func(is func(rate float64) bool, after time.Duration) bool {
		for i := len(m.looks) - 1; i >= 0; i-- {
			at := m.looks[i]
			if !at.known || at.decided || at.setting != l.setting || !is(at.rate) {
				return false
			}
			if now.Sub(at.at) >= after {
				return true
			}
		}
		return false
	}
	up := is.Partitions < is.Most && holds(func(rate float64) bool { return rate > n*m.cfg.PerPartition }, m.cfg.UpAfter)
	down := is.Partitions > is.Least && holds(func(rate float64) bool { return rate < (n-1)*m.cfg.PerPartition*Slack }, m.cfg.DownAfter)
	if !up && !down {
		return 0
	}
	m.looks[len(m.looks)-1].decided = true
	return min(max(int(math.Ceil(l.rate/m.cfg.PerPartition)), is.Least), is.Most)
}

// Whatever is reported or lost, stored or edited, the scaler decides as one that remembers everything.
func TestAsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{PerPartition: 100, UpAfter: 8 * time.Second, DownAfter: 12 * time.Second}
		s, m := New(cfg), &model{cfg: cfg}
		now := time.Unix(1_000_000, 0)
		is := Setting{Least: 1, Most: 4, Partitions: rapid.IntRange(1, 4).Draw(t, "partitions")}
		level := 100.0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 3).Draw(t, "seconds")) * time.Second)
			if rapid.IntRange(0, 9).Draw(t, "level?") == 0 {
				level = rapid.SampledFrom([]float64{0, 20, 75, 100, 130, 200, 1000}).Draw(t, "level")
			}
			for p := range 5 {
				if rapid.IntRange(0, 19).Draw(t, "lost?") > 0 && (p < is.Partitions || rapid.Bool().Draw(t, "no more")) {
					rate := level / float64(is.Partitions)
					s.Report(mail, p, rate, now)
					m.reports = append(m.reports, modelReport{p, rate, now})
				}
			}
			if rapid.IntRange(0, 29).Draw(t, "edit?") == 0 {
				is.Most = rapid.IntRange(2, 6).Draw(t, "most")
				is.Partitions = min(is.Partitions, is.Most)
			}
			if rapid.IntRange(0, 2).Draw(t, "look?") == 0 {
				continue
			}
			to := 0
			for _, c := range s.Look(now, func(Tasklist) (Setting, bool) { return is, true }) {
				to = c.To
			}
			if len(s.lists) == 0 { // nothing reported for long: both begin
				m.reports, m.looks = nil, nil
				continue
			}
			if want := m.look(now, is); to != want {
				t.Fatalf("%d partitions, the model says %d, of %+v", to, want, is)
			}
			if to > 0 && rapid.Bool().Draw(t, "stored") {
				is.Partitions = to
				is.Revision++
			}
		}
	})
}
