package grab

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// TakeBack has an attempt handed back. confirms: its grant counts as received when history knows of it.
func (s *Lanes[L]) TakeBack(g Grant, confirms bool) {
	l := s.all[g.attempt.ID.Partition()]
	g.Task = nil
	l.handBacks = append(l.handBacks, handBack[L]{Grant: g, confirms: confirms})
}

// TakeAllBack does so with several.
func (s *Lanes[L]) TakeAllBack(all []Grant, confirms bool) {
	for _, g := range all {
		s.TakeBack(g, confirms)
	}
}

// HandOver reports to history the attempts that no worker has, what is to be stopped, and what has been delivered. It returns the tasks that
// were to be rejected and of which waits is true: they wait on.
func (s *Lanes[L]) HandOver(waits func(st *StopRequest) bool) (back []StopRequest) {
	for _, l := range s.all {
		l.advance()
		for len(l.handBacks) > 0 && (l.backs < l.inFlightMax || s.forced) {
			s.sendHandBacks(l)
		}
		for l.open && l.stopping == 0 && len(l.stops) > 0 {
			back = s.sendStops(l, waits, back)
		}
		if l.unreported && (s.now-l.reportedAt >= HeardAfter || s.draining) {
			b := &batch[L]{}
			l.add(b, s.now)
			s.publish(b)
		}
	}
	return back
}

// sendHandBacks sends one batch of them.
func (s *Lanes[L]) sendHandBacks(l *lane[L]) {
	n := min(len(l.handBacks), l.eventsMax)
	b := &batch[L]{backs: slices.Clone(l.handBacks[:n]), left: n}
	for i := range b.backs {
		b.out.HandBacks = append(b.out.HandBacks, b.backs[i].attempt)
	}
	l.handBacks = slices.Delete(l.handBacks, 0, n)
	s.counts.HandedBack += int64(n)
	l.backs++
	l.add(b, s.now)
	s.publish(b)
}

// handedBack applies one verdict about a hand-back. Whatever it says, history knows,
// unless it says that it could not look. Then all copies of a grab are decided that was refused, and none of them runs.
func (s *Lanes[L]) handedBack(b *batch[L], i int, v *Verdict, ends []End[L]) []End[L] {
	h := &b.backs[i]
	if h.done {
		return ends
	}
	h.done = true
	b.left--
	switch {
	case fault.Code(v.Refused).Retryable():
		again := *h
		again.done = false
		b.lane.handBacks = append(b.lane.handBacks, again)
	case h.confirms:
		h.of.unconfirmed--
		if r := h.unsure; r != nil {
			s.last.Forget(r.Trigger)
			ends = append(ends, End[L]{Request: *r, Free: true, Again: r.full})
		}
	}
	return ends
}

// Force hands back the grabs without a verdict: if history grants them yet, no worker takes them.
func (s *Lanes[L]) Force() {
	s.forced = true
	for _, l := range s.all {
		for _, b := range l.flight {
			for i := range b.grabs {
				if !b.grabs[i].decided {
					s.TakeBack(b.grant(i, nil), false)
				}
			}
		}
	}
}
