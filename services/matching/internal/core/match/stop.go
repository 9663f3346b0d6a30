package match

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// stopsMax is how many tasks and attempts may wait to be sent to a partition, stopsOfDomainMax how many of one domain (I14).
const stopsMax, stopsOfDomainMax = 4096, 1024

// stop is a task that is to be rejected, or an attempt that is to make room.
type stop struct {
	Stop
	limit *limit.Limit
	// back is where the trigger stood of one to be rejected.
	back table.Chunk
	done bool
	// stale: since it was taken from the tables a group was paused, of which it may be.
	stale bool
}

// addStop has one sent soon, if there is room.
func (l *lane) addStop(st stop) bool {
	if len(l.stops) >= stopsMax || l.stopsOf[st.limit.Domain] >= stopsOfDomainMax {
		return false
	}
	if l.stopsOf == nil {
		l.stopsOf = map[*limit.Domain]int{}
	}
	l.stops = append(l.stops, st)
	l.stopsOf[st.limit.Domain]++
	return true
}

// unstop notes that one waits no more.
func (l *lane) unstop(st *stop) {
	d := st.limit.Domain
	if l.stopsOf[d]--; l.stopsOf[d] == 0 {
		delete(l.stopsOf, d)
	}
}

// sendStops sends one batch of them. A group that was paused meanwhile waits on.
func (s *Shard) sendStops(l *lane) {
	n := min(len(l.stops), l.eventsMax)
	b := &batch{}
	for i := range l.stops[:n] {
		st := &l.stops[i]
		if l.unstop(st); !st.Displace && s.list(st.back.Tasklist).TypePath(st.back.Type).Paused() {
			s.returnStop(st)
			continue
		}
		b.stops, b.out.Stops = append(b.stops, *st), append(b.out.Stops, st.Stop)
	}
	l.stops = slices.Delete(l.stops, 0, n)
	if b.left = len(b.stops); b.left == 0 {
		return
	}
	l.stopping++
	l.add(b, s.now.Mono)
	s.publish(b)
}

// stopped applies one verdict about a stop. One that has begun, or is over, is left alone.
func (s *Shard) stopped(b *batch, i int, v *Verdict) {
	st := &b.stops[i]
	if st.done {
		return
	}
	st.done = true
	b.left--
	switch code := fault.Code(v.Refused); {
	case v.Refused == "" && st.Displace:
		st.limit.Ended(true, s.now.Mono)
		s.fx.Counts.Displaced++
	case v.Refused == "":
		st.limit.Ended(false, s.now.Mono)
		s.fx.Counts.Rejected++
	case !st.Displace && passes(code): // it waits on
		s.returnStop(st)
		if code == fault.FailedPrecondition {
			st.limit.Over.At = s.now.Mono + max(st.limit.Patience(), overflowEvery)
		}
	}
}

// returnStop puts back a trigger that was to be rejected, unless it may be of a group that is paused.
func (s *Shard) returnStop(st *stop) {
	switch {
	case st.Displace:
	case st.stale && st.back.Group == "":
		s.sendAgain(st.limit.Domain.Name)
	default:
		s.arrivals = append(s.arrivals, arrival{Chunk: st.back, list: s.list(st.back.Tasklist)})
	}
}

// returnStops puts back what was to be rejected and is not sent yet.
func (s *Shard) returnStops(l *lane) {
	for i := range l.stops {
		s.returnStop(&l.stops[i])
	}
	l.stops, l.stopsOf = nil, nil
}

// stopsStale notes that what is to be rejected of a domain may be of groups that are paused. Stops that are not sent yet are dropped.
func (l *lane) stopsStale(d *domain) {
	l.stops = slices.DeleteFunc(l.stops, func(st stop) bool {
		out := st.limit.Domain == d.Domain && !st.Displace && d.holdsPaused(st.back.Column)
		if out {
			l.unstop(&st)
		}
		return out
	})
	for _, b := range l.flight {
		for i := range b.stops {
			b.stops[i].stale = b.stops[i].stale || b.stops[i].limit.Domain == d.Domain
		}
	}
}
