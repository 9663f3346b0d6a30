package grab

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
)

// StopsMax is how many tasks and attempts may wait to be sent to a partition, StopsOfDomainMax how many of one domain (I14).
const StopsMax, StopsOfDomainMax = 4096, 1024

// AddStop has a task or an attempt stopped. It is dropped if too many wait for that. No task is rejected if its partition is silent.
func (s *Lanes[L]) AddStop(st StopRequest) Asked {
	at := st.Trigger.ID.Partition()
	if at >= len(s.all) {
		return Malformed
	}
	l := s.all[at]
	if !st.Displace && (!l.open || l.silent) || len(l.stops) >= StopsMax || l.stopsOf[st.Limit.Domain] >= StopsOfDomainMax {
		return Dropped
	}
	if l.stopsOf == nil {
		l.stopsOf = map[*limit.Domain]int{}
	}
	l.stops = append(l.stops, st)
	l.stopsOf[st.Limit.Domain]++
	return Gathered
}

// sendStops sends one batch of them, without those of tasks that are to wait on.
func (s *Lanes[L]) sendStops(l *lane[L], waits func(st *StopRequest) bool, back []StopRequest) []StopRequest {
	n := min(len(l.stops), l.eventsMax)
	b := &batch[L]{}
	for i := range l.stops[:n] {
		st := &l.stops[i]
		if d := st.Limit.Domain; l.stopsOf[d] > 1 {
			l.stopsOf[d]--
		} else {
			delete(l.stopsOf, d)
		}
		if !st.Displace && waits(st) {
			back = append(back, *st)
			continue
		}
		b.stops, b.out.Stops = append(b.stops, *st), append(b.out.Stops, st.Stop)
	}
	l.stops = slices.Delete(l.stops, 0, n)
	if b.left = len(b.stops); b.left == 0 {
		return back
	}
	l.stopping++
	l.add(b, s.now)
	s.publish(b)
	return back
}
