// Package quota bounds what each domain submits in a second, its polls, and what it has waiting, on all frontends together.
//
// Owns: how much of each domain is ahead of its rate: a leaky bucket used as a meter (ITU-T I.371), which what other frontends have let in fills,
// too; and what the owners of partitions reported last of domains with a quota of what waits. So a frontend that is alone with a domain gives it the whole quota, and several exceed it by what they let in between two reports.
// Never does: read a clock, or know who reports. On failure: a report that is lost lets its domain have that much more.
package quota

import (
	"iter"
	"maps"
	"math/rand/v2"
	"time"
)

// Use is what is submitted, or what may be in a second, 0 = any number.
type Use struct{ Tasks, Bytes int64 }

func (u Use) plus(o Use) Use { return Use{u.Tasks + o.Tasks, u.Bytes + o.Bytes} }

// changed is u and o, but not less than nothing: o may take back what was before.
func (u Use) changed(o Use) Use { return Use{max(0, u.Tasks+o.Tasks), max(0, u.Bytes+o.Bytes)} }

// meter is how much of a domain is ahead of its rates.
type meter struct {
	at           time.Duration
	may          Use
	tasks, bytes float64
	// queued is how long what was refused recently takes at the rates, in seconds: who is refused next comes after it.
	queued float64
	// unsaid is what was let in here since the last report.
	unsaid Use
	// current is what was let in during the second of that number, by all frontends, last what was in the one before.
	second        int64
	current, last Use
	// half is the number of the half second in which fresh was let in; older was in the one before.
	half         int64
	fresh, older Use
}

const (
	// waitMin and waitMax bound the wait that a client is asked for: it is to ask seldom, and a quota may be raised meanwhile.
	waitMin, waitMax = 50 * time.Millisecond, 10 * time.Second
)

// Book is all meters of a frontend. Its times are since any origin, and never go back.
type Book struct {
	meters map[string]*meter
	random *rand.Rand
}

// New makes an empty book, which spreads short waits by random numbers.
func New(random *rand.Rand) *Book { return &Book{map[string]*meter{}, random} }

// Take counts what a domain submits while less than a second's worth is ahead of its rates. So the last request may exceed a quota by itself, and a large one
// does not wait for a rest that never comes. Else Take returns when to come again, in whole ms. Requests that are refused one after the other get times one
// after the other: if all came when one fits, all but one would come in vain.
func (b *Book) Take(domain string, may, u Use, now time.Duration) (wait time.Duration) {
	m := b.meter(domain, may, now)
	over := max(ahead(m.tasks, may.Tasks), ahead(m.bytes, may.Bytes))
	if over == 0 {
		m.add(u)
		m.unsaid = m.unsaid.plus(u)
		return 0
	}
	least := waitMin + time.Duration(b.random.Int64N(int64(waitMin)))
	wait = min(waitMax, max(least, over+time.Duration(m.queued*float64(time.Second))))
	m.queued = min(waitMax.Seconds(), m.queued+max(worth(u.Tasks, may.Tasks), worth(u.Bytes, may.Bytes)))
	return (wait + time.Millisecond - 1).Truncate(time.Millisecond)
}

// Return takes back what was taken: it is not stored.
func (b *Book) Return(domain string, u Use, now time.Duration) {
	if m := b.meters[domain]; m != nil {
		back := Use{-u.Tasks, -u.Bytes}
		m.advance(now)
		m.add(back)
		m.unsaid = m.unsaid.plus(back)
	}
}

// Heard counts what another frontend has let in, less what it has taken back.
func (b *Book) Heard(domain string, may, u Use, now time.Duration) { b.meter(domain, may, now).add(u) }

// Unsaid is what was let in here since it was last asked for, by domain. Domains that rest are forgotten.
func (b *Book) Unsaid(now time.Duration) map[string]Use {
	all := map[string]Use{}
	for domain, m := range b.meters {
		if m.unsaid != (Use{}) {
			all[domain], m.unsaid = m.unsaid, Use{}
		} else if m.advance(now); m.tasks+m.bytes == 0 && m.current == (Use{}) && m.last == (Use{}) {
			delete(b.meters, domain)
		}
	}
	return all
}

// Keep forgets the domains that have no quota any more.
func (b *Book) Keep(hasQuota func(domain string) bool) {
	maps.DeleteFunc(b.meters, func(domain string, _ *meter) bool { return !hasQuota(domain) })
}

// Last is what a domain submitted in the last whole second.
func (b *Book) Last(domain string, now time.Duration) Use {
	m := b.meters[domain]
	if m == nil {
		return Use{}
	}
	m.advance(now)
	return m.last
}

// Fresh is what a domain submitted in this half second and the one before: the owners of the partitions may not have reported it yet.
func (b *Book) Fresh(domain string, now time.Duration) Use {
	m := b.meters[domain]
	if m == nil {
		return Use{}
	}
	m.advance(now)
	return m.fresh.plus(m.older)
}

// Domains are those that have submitted something recently.
func (b *Book) Domains() iter.Seq[string] { return maps.Keys(b.meters) }

// meter is that of a domain, brought up to now.
func (b *Book) meter(domain string, may Use, now time.Duration) *meter {
	m := b.meters[domain]
	if m == nil {
		m = &meter{at: now, second: int64(now / time.Second), half: int64(now / (time.Second / 2))}
		b.meters[domain] = m
	}
	m.advance(now)
	m.tasks, m.bytes = lowered(m.tasks, m.may.Tasks, may.Tasks), lowered(m.bytes, m.may.Bytes, may.Bytes)
	m.may = may
	return m
}

// lowered is a level at a new rate. At a lower one it shrinks, so that the domain waits for no longer than before. At a higher one it stays and drains sooner.
func lowered(level float64, was, is int64) float64 {
	if was <= 0 || is <= 0 {
		return 0
	}
	return level * min(1, float64(is)/float64(was))
}

// advance lets time pass, at the rates that held.
func (m *meter) advance(now time.Duration) {
	passed := (now - m.at).Seconds()
	m.at = now
	m.tasks, m.bytes, m.queued = drained(m.tasks, m.may.Tasks, passed), drained(m.bytes, m.may.Bytes, passed), max(0, m.queued-passed)
	if second := int64(now / time.Second); second > m.second {
		if m.last = m.current; second > m.second+1 {
			m.last = Use{}
		}
		m.second, m.current = second, Use{}
	}
	if half := int64(now / (time.Second / 2)); half > m.half {
		if m.older = m.fresh; half > m.half+1 {
			m.older = Use{}
		}
		m.half, m.fresh = half, Use{}
	}
}

func (m *meter) add(u Use) {
	m.tasks, m.bytes = max(0, m.tasks+float64(u.Tasks)), max(0, m.bytes+float64(u.Bytes))
	m.current = m.current.changed(u)
	m.fresh = m.fresh.changed(u)
}

// drained is what is left of a level after some seconds.
func drained(level float64, perSecond int64, passed float64) float64 {
	if perSecond <= 0 {
		return 0
	}
	return max(0, level-float64(perSecond)*passed)
}

// ahead is for how long more than a second's worth is.
func ahead(level float64, perSecond int64) time.Duration {
	if perSecond <= 0 || level < float64(perSecond) {
		return 0
	}
	return max(1, time.Duration((level/float64(perSecond)-1)*float64(time.Second)))
}

// worth is how long n takes at a rate, in seconds.
func worth(n, perSecond int64) float64 {
	if perSecond <= 0 {
		return 0
	}
	return float64(n) / float64(perSecond)
}
