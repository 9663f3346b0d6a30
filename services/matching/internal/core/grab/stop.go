package grab

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
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

// unstop notes that one waits no more.
func (l *lane[L]) unstop(st *StopRequest) {
	d := st.Limit.Domain
	if l.stopsOf[d]--; l.stopsOf[d] == 0 {
		delete(l.stopsOf, d)
	}
}

// sendStops sends one batch of them, without those of which paused is true.
func (s *Lanes[L]) sendStops(l *lane[L], paused func(st *StopRequest) bool, back []StopRequest) []StopRequest {
	n := min(len(l.stops), l.eventsMax)
	b := &batch[L]{}
	for i := range l.stops[:n] {
		st := &l.stops[i]
		if l.unstop(st); !st.Displace && paused(st) {
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

// DropStops notes that tasks of a domain that are to be rejected may be of groups that are paused. Of those that are not sent yet it drops the ones
// of whose columns holds is true.
func (s *Lanes[L]) DropStops(d *limit.Domain, holds func(at table.Column) bool) {
	for _, l := range s.all {
		l.stops = slices.DeleteFunc(l.stops, func(st StopRequest) bool {
			out := st.Limit.Domain == d && !st.Displace && holds(st.Back.Column)
			if out {
				l.unstop(&st)
			}
			return out
		})
		for _, b := range l.flight {
			for i := range b.stops {
				b.stops[i].Stale = b.stops[i].Stale || b.stops[i].Limit.Domain == d
			}
		}
	}
}
