package match

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
)

// arrive takes a message of the hint stream apart.
func (s *Shard) arrive(h *Hints) {
	if s.drain.on { // it comes again, to the next owner
		return
	}
	s.fx.Counts.HintBatches++
	message := arrival.NewDelivery(h.Delivery)
	for i := range h.Releases {
		r := &h.Releases[i]
		if r.Domain == "" || r.Type == "" || len(r.Bookings)%ids.BookingBytes != 0 {
			s.fx.Counts.Malformed++
			continue
		}
		if d, isNew := s.limited(r.Domain); d != nil {
			for _, ref := range r.Path {
				if isNew { // the previous owner may have reported them to the tables
					d.Restore(ref)
				}
			}
			d.Domain.End(r.Type, r.Path, r.Bookings)
		}
	}
	for i := range h.Triggers {
		t := &h.Triggers[i]
		if !t.WellFormed() {
			s.fx.Counts.Malformed++
			continue
		}
		l := s.list(t.Tasklist)
		s.tree.Came(&l.node, t.Packed)
		s.fx.Counts.Triggers += int64(len(t.Packed) / ids.TriggerBytes)
		if t = t.Without(l.domain.withheld); len(t.Packed) > 0 {
			s.tree.Call(&l.node, t.Type, t.Packed)
			s.arrivals.Add(l, t, message)
		}
	}
	s.arrivals.Finish(message)
}
