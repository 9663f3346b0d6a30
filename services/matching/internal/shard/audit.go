package shard

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// HintsLost tells the shard that hints may have been lost: those of freed slots
// among them. Lost triggers are the caller's to ask for.
func (s *Shard) HintsLost() {
	s.call(func() {
		for _, d := range s.domains {
			s.audit(d)
		}
	})
}

// audit frees the slots of attempts that are over, of which no word came: history's
// owner died before it gave it, or the stream that held it was lost. They would
// lapse only long after their deadlines. It looks at bookings that a verdict has
// extended, and whose attempts may still run: such an attempt is known to history
// or it is over, for ever, since no two attempts share a booking.
func (s *Shard) audit(d *domain) {
	types := s.Limits.Limited(d.name)
	if d.state != whole || d.auditing || len(types) == 0 {
		return
	}
	d.auditing, d.auditAt = true, s.now.Add(auditEvery)
	o := &opener{s: s, domain: d, name: d.name, life: d.life}
	ctx, cancel := context.WithTimeout(s.ctx, auditEvery)
	o.ctx = ctx
	s.openers.Go(func() {
		defer cancel()
		over := o.over(types)
		o.post(func(d *domain) { s.audited(d, over) })
	})
}

// over finds the bookings of attempts that have ended.
func (o *opener) over(types []string) []table.Booking {
	var booked []table.Booking
	found := o.try(func(ctx context.Context) error {
		var err error
		booked, err = o.s.Tables.Bookings(ctx, o.name, types, time.Now().Add(bookingSlack))
		return err
	})
	if !found || len(booked) == 0 {
		return nil
	}
	running, ok := o.bookings()
	if !ok {
		return nil
	}
	alive := make(map[string]bool, len(running))
	for _, b := range running {
		alive[b.Member] = true
	}
	var over []table.Booking
	for _, b := range booked {
		if !alive[b.Member] {
			over = append(over, b)
		}
	}
	return over
}

// audited has the next settlement release what the audit found.
func (s *Shard) audited(d *domain, over []table.Booking) {
	d.auditing = false
	if len(over) == 0 {
		return
	}
	for _, b := range over {
		a := s.account(d, b.Type)
		a.Release = append(a.Release, b.Member...)
	}
	s.Metrics.Audited.Add(int64(len(over)))
	s.Log.Info("slots were freed whose attempts are over", "domain", d.name, "slots", len(over))
}
