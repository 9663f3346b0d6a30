package distribution

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// sim is one frontend in virtual time, in steps of a millisecond: requests of one task, a group commit for each partition
// with one append under way, and owners that report four times a second that their workers keep up.
type sim struct {
	t     *testing.T
	b     *Balancer
	seed  *rand.Rand
	now   time.Time
	lines []simLine
	due   float64
	// took is how long each request took, and to how many each partition was chosen.
	took   []time.Duration
	chosen []int
}

type simLine struct {
	// append is how long one takes now.
	append        time.Duration
	queued, under []time.Time // when the requests came
	began, ends   time.Time
	abandoned     bool
}

const (
	simQuick   = 2 * time.Millisecond
	simTimeout = 2 * time.Second
	simTick    = 25 // ms, as the gateway
	simReport  = 250
)

func newSim(t *testing.T, seed uint64, partitions int) *sim {
	s := &sim{t: t, b: New(partitions), seed: rand.New(rand.NewPCG(seed, 3)), now: t0, lines: make([]simLine, partitions)}
	for p := range s.lines {
		s.lines[p].append = simQuick
	}
	s.forget()
	return s
}

func (s *sim) forget() { s.took, s.chosen = nil, make([]int, len(s.lines)) }

// run goes on for so long with so many requests in a second.
func (s *sim) run(lasts time.Duration, perSecond int) {
	for end := s.now.Add(lasts); s.now.Before(end); {
		s.now = s.now.Add(time.Millisecond)
		ms := s.now.Sub(t0).Milliseconds()
		for p := range s.lines {
			s.finish(p)
		}
		if ms%simReport == 0 {
			for p := range s.lines {
				s.b.Report(p, 0, 0, s.now)
			}
		}
		if ms%simTick == 0 {
			s.changes()
		}
		for s.due += float64(perSecond) / 1000; s.due >= 1; s.due-- {
			s.place(s.now)
		}
		for p := range s.lines {
			s.begin(p)
		}
	}
}

func (s *sim) changes() {
	for _, c := range s.b.Changes(s.now) {
		if c.To == Full {
			continue
		}
		l := &s.lines[c.Partition]
		moved := l.queued
		l.queued = nil
		for _, came := range moved {
			s.b.Returned(c.Partition, 1)
			s.chosen[c.Partition]--
			s.place(came)
		}
	}
	full := 0
	for p := range s.lines {
		if s.b.Share(p) == Full {
			full++
		}
	}
	if full == 0 {
		s.t.Fatalf("after %v no partition has its full share", s.now.Sub(t0))
	}
}

func (s *sim) place(came time.Time) {
	p, ok := s.b.Pick(s.now, 1, s.seed.Uint64())
	if !ok {
		s.t.Fatalf("after %v no partition is chosen", s.now.Sub(t0))
	}
	s.chosen[p]++
	s.lines[p].queued = append(s.lines[p].queued, came)
}

func (s *sim) begin(p int) {
	l := &s.lines[p]
	if len(l.queued) == 0 || len(l.under) > 0 {
		return
	}
	if !s.b.Healthy(p) {
		moved := l.queued
		l.queued = nil
		for _, came := range moved {
			s.b.Returned(p, 1)
			s.place(came)
		}
		return
	}
	l.under, l.queued = l.queued, nil
	l.began, l.ends, l.abandoned = s.now, s.now.Add(l.append/2+time.Duration(s.seed.Int64N(int64(l.append)))), false
	s.b.Began(p, s.now)
}

func (s *sim) finish(p int) {
	l := &s.lines[p]
	switch {
	case len(l.under) == 0:
	case !s.now.Before(l.ends):
		for _, came := range l.under {
			s.took = append(s.took, s.now.Sub(came))
		}
		if !l.abandoned {
			s.b.Answered(p, s.now)
		}
		s.b.Stored(p)
		l.under = nil
	case !l.abandoned && s.now.Sub(l.began) >= simTimeout:
		s.b.Abandoned(p)
		s.b.Failed(p, len(l.under), s.now)
		l.abandoned = true
	}
}

// p99 is that of the requests since forget.
func (s *sim) p99() time.Duration {
	slices.Sort(s.took)
	return s.took[len(s.took)*99/100]
}

// part is how much of the requests since forget went to some partitions.
func (s *sim) part(partitions []int) float64 {
	of, all := 0, 0
	for p, n := range s.chosen {
		all += n
		if slices.Contains(partitions, p) {
			of += n
		}
	}
	return float64(of) / float64(all)
}

func (s *sim) shares() (all []Share) {
	for p := range s.lines {
		all = append(all, s.b.Share(p))
	}
	return all
}

const simSeeds = 25

// Partitions get slow, up to two thirds of them, and quick again: requests avoid them, p99 is that of the others, and they come back.
func TestSlowPartitionsAreLeftAloneAndComeBack(t *testing.T) {
	for seed := range uint64(simSeeds) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 2 + r.IntN(7)
		slow := r.Perm(n)[:1+r.IntN(max(1, n*2/3-1))]
		rate := 200 + r.IntN(2000)
		delay := time.Duration(60+r.IntN(1500)) * time.Millisecond
		s := newSim(t, seed, n)
		s.run(3*time.Second, rate)
		for _, p := range slow {
			s.lines[p].append = delay
		}
		s.forget()
		s.run(20*time.Second, rate)
		if p99, part := s.p99(), s.part(slow); p99 > SlowMin+simTick*time.Millisecond || part > 0.02 {
			t.Errorf("seed %d: %v of %d slow by %v, %d/s: p99 %v, they got %.3f, shares %v", seed, slow, n, delay, rate, p99, part, s.shares())
		}
		for _, p := range slow {
			s.lines[p].append = simQuick
		}
		s.run(2*ProbeMax, rate)
		if shares := s.shares(); slices.Max(shares) != Full {
			t.Errorf("seed %d: %v of %d were slow by %v, %d/s: shares are %v", seed, slow, n, delay, rate, shares)
		}
	}
}

// All partitions get slow together: none is slower than the others, and each has its full share.
func TestNoneIsLeftAloneIfAllAreSlow(t *testing.T) {
	for seed := range uint64(simSeeds) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := 1 + r.IntN(8)
		rate := 20 + r.IntN(2000)
		s := newSim(t, seed, n)
		s.run(3*time.Second, rate)
		for p := range s.lines {
			s.lines[p].append = 60 * time.Millisecond
		}
		s.run(40*time.Second, rate)
		if shares := s.shares(); slices.Max(shares) != Full {
			t.Errorf("seed %d: %d/s: shares are %v", seed, rate, shares)
		}
	}
}
