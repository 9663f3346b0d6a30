package table

import (
	"bytes"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Table is the triggering tables and bookings of any number of domains and shards.
// It is not safe for concurrent use.
type Table struct {
	domains map[string]*domain
}

type domain struct {
	// epochs by shard. Bookings are the domain's, tables the shard's.
	epochs map[int]*epoch
	slots  map[string]*slots
}

type epoch struct {
	name  string
	whole bool
	lists map[Tasklist]map[Column]*column
}

// New returns a table that remembers nothing.
func New() *Table { return &Table{domains: map[string]*domain{}} }

// Forget loses everything, as a Redis that restarts does.
func (t *Table) Forget() { clear(t.domains) }

func (t *Table) domain(name string) *domain {
	d := t.domains[name]
	if d == nil {
		d = &domain{epochs: map[int]*epoch{}, slots: map[string]*slots{}}
		t.domains[name] = d
	}
	return d
}

func (t *Table) epoch(domain string, shard int) *epoch {
	if d := t.domains[domain]; d != nil {
		return d.epochs[shard]
	}
	return nil
}

func (d *domain) limit(typ string) *slots {
	s := d.slots[typ]
	if s == nil {
		s = newSlots()
		d.slots[typ] = s
	}
	return s
}

// Open tells how a shard's tables of a domain stand, and begins an epoch called
// fresh where there is none.
func (t *Table) Open(domainName string, shard int, fresh string) Opened {
	d := t.domain(domainName)
	e := d.epochs[shard]
	if e == nil {
		e = &epoch{name: fresh, lists: map[Tasklist]map[Column]*column{}}
		d.epochs[shard] = e
	}
	opened := Opened{Epoch: e.name, Whole: e.whole}
	for list, columns := range e.lists {
		for at, c := range columns {
			opened.Columns = append(opened.Columns, Known{Tasklist: list, Column: at, ReadyAt: c.head().ReadyAt, Triggers: c.triggers()})
		}
	}
	slices.SortFunc(opened.Columns, compareKnown)
	return opened
}

func compareKnown(a, b Known) int {
	if n := strings.Compare(a.Name, b.Name); n != 0 {
		return n
	}
	if n := a.Partition - b.Partition; n != 0 {
		return n
	}
	if n := a.Priority - b.Priority; n != 0 {
		return n
	}
	return strings.Compare(a.Type, b.Type)
}

// Restore adds the bookings and, where whole is set, declares the shard's tables
// whole. It returns false and changes nothing if epoch is not the present one.
func (t *Table) Restore(domainName string, shard int, epoch string, bookings []Booking, whole bool) bool {
	e := t.epoch(domainName, shard)
	if e == nil || e.name != epoch {
		return false
	}
	d := t.domain(domainName)
	for _, b := range bookings {
		d.limit(b.Type).book(b.Member, b.Until)
	}
	e.whole = e.whole || whole
	return true
}

// Put stores chunks. It returns the domains whose epoch is lost; their chunks are
// not stored. The table keeps copies of the triggers.
func (t *Table) Put(shard int, chunks []Chunk) (lost []string) {
	for _, c := range chunks {
		e := t.epoch(c.Domain, shard)
		if e == nil {
			if !slices.Contains(lost, c.Domain) {
				lost = append(lost, c.Domain)
			}
			continue
		}
		columns := e.lists[c.Tasklist]
		if columns == nil {
			columns = map[Column]*column{}
			e.lists[c.Tasklist] = columns
		}
		at := columns[c.Column]
		if at == nil {
			at = &column{}
			columns[c.Column] = at
		}
		c.Triggers = bytes.Clone(c.Triggers)
		at.put(c)
	}
	return lost
}

// Pop takes up to w.N triggers in order and books a slot for each that needs one,
// or takes nothing and returns false where the epoch is lost, or does not allow
// what w asks for.
func (t *Table) Pop(shard int, w Want) (Taken, bool) {
	e := t.epoch(w.Domain, shard)
	if e == nil || w.Limited() && !e.whole {
		return Taken{}, false
	}
	p := pop{
		w: w, left: w.N, columns: e.lists[w.Tasklist], bookings: t.domain(w.Domain),
		free: map[string]int{}, gone: make([]int, len(w.Candidates)),
	}
	for from := 0; from < len(w.Candidates) && p.left > 0; {
		to := from + 1
		for to < len(w.Candidates) && w.Candidates[to].Priority == w.Candidates[from].Priority {
			to++
		}
		p.priority(from, to)
		from = to
	}
	p.report()
	if p.columns != nil && len(p.columns) == 0 {
		delete(e.lists, w.Tasklist)
	}
	return p.got, true
}

// Settle changes bookings. It needs no epoch: a booking that exists is counted, and
// one that does not is told.
func (t *Table) Settle(s Settlement) Settled {
	var out Settled
	limit := t.domain(s.Domain).limit(s.Type)
	for i, x := range s.Extend {
		if limit.has(x.Member) {
			limit.book(x.Member, x.Until)
		} else {
			out.Missing = append(out.Missing, i)
		}
	}
	before := len(limit.until)
	for b := s.Release; len(b) >= ids.BookingBytes; b = b[ids.BookingBytes:] {
		delete(limit.until, string(b[:ids.BookingBytes]))
	}
	out.Freed = s.Limit > 0 && before >= s.Limit && len(limit.until) < s.Limit
	if len(limit.until) == 0 {
		delete(t.domain(s.Domain).slots, s.Type)
	}
	return out
}

// Slots counts the bookings of each type that have not expired by now, Unix ms.
func (t *Table) Slots(domainName string, types []string, now int64) []int {
	counts := make([]int, len(types))
	d := t.domains[domainName]
	if d == nil {
		return counts
	}
	for i, typ := range types {
		if s := d.slots[typ]; s != nil {
			s.purge(now)
			counts[i] = len(s.until)
		}
	}
	return counts
}

// Bookings lists the bookings of types that last beyond an instant, in no order.
func (t *Table) Bookings(domainName string, types []string, beyond int64) []Booking {
	d := t.domains[domainName]
	if d == nil {
		return nil
	}
	var all []Booking
	for _, typ := range types {
		if s := d.slots[typ]; s != nil {
			for member, until := range s.until {
				if until > beyond {
					all = append(all, Booking{Type: typ, Member: member, Until: until})
				}
			}
		}
	}
	return all
}
