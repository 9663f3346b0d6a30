package shard

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// domainState says how far the tables of a domain may be used.
//
//	opening ──► open (unlimited types) ──► whole (limited ones too)
//	   ▲            │ memory lost             │
//	   └────────────┴─────────────────────────┘
type domainState int

const (
	opening domainState = iota
	open
	whole
)

// domain is what a shard knows of a domain.
type domain struct {
	name  string
	state domainState
	// life counts the openings; what belongs to an earlier one is void.
	life   uint64
	cancel context.CancelFunc
	lists  map[table.Tasklist]*tasklist
	// limits caches the catalog.
	limits map[string]int
	// aside are the types whose limit is full: left out until a slot is freed.
	aside map[string]bool
	// auditing: an audit is under way; the next is due at auditAt, while types are aside.
	auditing bool
	auditAt  time.Time
	// held are chunks that wait until the domain is open.
	held []arrival
}

func (s *Shard) domain(name string) *domain {
	d := s.domains[name]
	if d == nil {
		d = &domain{name: name, lists: map[table.Tasklist]*tasklist{}, limits: map[string]int{}, aside: map[string]bool{}}
		s.domains[name] = d
		s.open(d)
	}
	return d
}

// limit is how many attempts of a type may run at once; 0 = any number.
func (s *Shard) limit(d *domain, typ string) int {
	n, ok := d.limits[typ]
	if !ok {
		n = s.Limits.Limit(d.name, typ)
		d.limits[typ] = n
	}
	return n
}

// blocked tells whether triggers of a type cannot be granted just now.
func (s *Shard) blocked(d *domain, typ string) bool {
	return d.aside[typ] || d.state != whole && s.limit(d, typ) > 0
}

// unblock tries types again that were set aside.
func (s *Shard) unblock(name string, types []string) {
	d := s.domains[name]
	if d == nil {
		return
	}
	for _, typ := range types {
		if d.aside[typ] {
			delete(d.aside, typ)
			s.markDomain(d)
		}
	}
}

func (s *Shard) markDomain(d *domain) {
	for _, l := range d.lists {
		if l.polls.n > 0 {
			s.mark(l)
		}
	}
}

func (s *Shard) limitsChanged(name string) {
	if d := s.domains[name]; d != nil {
		clear(d.limits)
		clear(d.aside)
		s.markDomain(d)
	}
}

// lost forgets what was known of a domain's tables and opens them anew.
func (s *Shard) lost(name string) {
	d := s.domains[name]
	if d == nil || d.state == opening {
		return
	}
	s.Log.Warn("the tables of a domain lost their memory; asking history for it", "domain", name)
	s.Metrics.Losses.Add(1)
	for _, l := range d.lists {
		l.index = table.Index{}
	}
	clear(d.aside)
	s.open(d)
}

// open begins a new life of a domain, off the loop.
func (s *Shard) open(d *domain) {
	if d.cancel != nil {
		d.cancel()
	}
	d.life++
	d.auditing = false
	d.state = opening
	o := &opener{s: s, domain: d, name: d.name, life: d.life}
	o.ctx, d.cancel = context.WithCancel(s.ctx)
	s.openers.Go(o.run)
}

// opener brings the tables of one domain from whatever state to whole. It runs
// beside the loop and changes nothing of the loop's but through post.
type opener struct {
	s      *Shard
	ctx    context.Context
	domain *domain // for the loop only
	name   string
	life   uint64
}

// post runs f in the loop if this is still the domain's life.
func (o *opener) post(f func(d *domain)) {
	o.s.call(func() {
		if o.domain.life == o.life {
			f(o.domain)
		}
	})
}

// run opens the tables, and restores what they lost: triggers at once, bookings
// after a quarantine. Shards other than this may have sent grabs whose bookings are
// lost too. They send none whose booking is older than bookingFresh, so when the
// quarantine is over all of them are in the log, and history's answer, which
// follows the log up to its end, knows them.
func (o *opener) run() {
	opened, ok := o.begin()
	if !ok {
		return
	}
	o.post(func(d *domain) { o.s.opened(d, opened) })
	if opened.Whole {
		return
	}
	var retriggers sync.WaitGroup
	defer retriggers.Wait()
	for p := range o.s.Partitions {
		retriggers.Go(func() {
			o.try(func(ctx context.Context) error { return o.s.History.Retrigger(ctx, p, o.name) })
		})
	}
	if !o.sleep(o.s.Quarantine) {
		return
	}
	before, ok := o.bookings()
	if !ok || !o.restore(opened.Epoch, before) {
		return
	}
	// What ended between the answer and the restoration was released too early to be
	// found, and would hold its slot until its deadline.
	if len(before) > 0 {
		after, ok := o.bookings()
		if !ok {
			return
		}
		o.release(before, after)
	}
	o.post(func(d *domain) { o.s.becameWhole(d) })
}

// begin opens the tables as soon as they answer.
func (o *opener) begin() (opened table.Opened, ok bool) {
	ok = o.try(func(ctx context.Context) error {
		var err error
		opened, err = o.s.Tables.Open(ctx, o.name)
		if err != nil {
			o.post(func(*domain) { o.s.called("open", err) })
		}
		return err
	})
	return opened, ok
}

// bookings asks all partitions.
func (o *opener) bookings() ([]table.Booking, bool) {
	parts := make([][]table.Booking, o.s.Partitions)
	var calls sync.WaitGroup
	for p := range parts {
		calls.Go(func() {
			o.try(func(ctx context.Context) error {
				var err error
				parts[p], err = o.s.History.Bookings(ctx, p, o.name)
				return err
			})
		})
	}
	calls.Wait()
	var all []table.Booking
	for _, part := range parts {
		all = append(all, part...)
	}
	return all, o.ctx.Err() == nil
}

func (o *opener) restore(epoch string, bookings []table.Booking) bool {
	lost := false
	o.try(func(ctx context.Context) error {
		err := o.s.Tables.Restore(ctx, o.name, epoch, bookings)
		if lost = errors.Is(err, table.ErrEpochLost); lost {
			return nil
		}
		return err
	})
	if lost {
		o.post(func(d *domain) { o.s.lost(d.name) })
	}
	return !lost && o.ctx.Err() == nil
}

// release frees the bookings of before that are not in after.
func (o *opener) release(before, after []table.Booking) {
	alive := make(map[string]bool, len(after))
	for _, b := range after {
		alive[b.Member] = true
	}
	byType := map[string][]byte{}
	for _, b := range before {
		if !alive[b.Member] && len(b.Member) == ids.BookingBytes {
			byType[b.Type] = append(byType[b.Type], b.Member...)
		}
	}
	var settlements []table.Settlement
	for typ, members := range byType {
		settlements = append(settlements, table.Settlement{Domain: o.name, Type: typ, Release: members})
	}
	if len(settlements) == 0 {
		return
	}
	o.try(func(ctx context.Context) error {
		_, err := o.s.Tables.Settle(ctx, settlements)
		return err
	})
}

// try calls f until it succeeds; false when the opener is over before.
func (o *opener) try(f func(ctx context.Context) error) bool {
	for {
		ctx, cancel := context.WithTimeout(o.ctx, 5*callTimeout)
		err := f(ctx)
		cancel()
		if err == nil {
			return true
		}
		o.s.Log.Debug("open the tables of a domain", "domain", o.name, "error", err)
		if !o.sleep(retryEvery) {
			return false
		}
	}
}

func (o *opener) sleep(d time.Duration) bool {
	if d <= 0 {
		return o.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-o.ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// opened takes over what the tables hold.
func (s *Shard) opened(d *domain, opened table.Opened) {
	s.called("open", nil)
	d.state = open
	if opened.Whole {
		d.state = whole
	}
	for _, l := range d.lists {
		l.index = table.Index{}
	}
	for _, k := range opened.Columns {
		l := s.list(k.Tasklist)
		l.index.Put(k.Column, k.ReadyAt, k.Triggers)
	}
	if opened.Whole {
		s.arrivals = append(s.arrivals, d.held...)
	} else {
		for _, a := range d.held { // history is being asked for all of them, and more
			a.from.settle(true)
		}
	}
	d.held = nil
	s.markDomain(d)
}

func (s *Shard) becameWhole(d *domain) {
	d.state = whole
	s.markDomain(d)
}
