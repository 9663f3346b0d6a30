package simulation

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/matchingsim"
)

// rates are of the whole of a domain, and of a type: less than there are workers for.
func (m *matching) rates(domain string) []matchingsim.Limit {
	if !m.plan.has(rates) || domain != domains[0] {
		return nil
	}
	return []matchingsim.Limit{
		{Ref: matchingsim.RateRef(matchingsim.DomainRef), Wide: true, Rate: matchingsim.Rate{EveryUS: 3e6 / 70.0, Burst: 6}},
		{Ref: matchingsim.RateRef(matchingsim.TypeRef(few)), Types: []string{few}, Rate: matchingsim.Rate{EveryUS: 250_000, Burst: 2}},
	}
}

// started is how many starts one call has given of a rate, how many it has given back that were taken before, and what the last attempt costs beyond
// its burst, which is paid off afterwards; or a loss of all memory.
type started struct {
	at              time.Duration
	n, back, beyond int
	wiped           bool
}

// rateChecker counts what the tables let start, for itself.
type rateChecker struct{ calls map[matchingsim.Ref][]started }

// wiped notes that the tables of a domain have lost their memory.
func (c *rateChecker) wiped(at time.Duration) {
	for ref := range c.calls {
		c.calls[ref] = append(c.calls[ref], started{at: at, wiped: true})
	}
}

// took notes what became of a call.
func (c *rateChecker) took(m *matching, call *matchingsim.Call, out *matchingsim.Outcome) {
	if out.Overtaken || out.Lost {
		return
	}
	if c.calls == nil {
		c.calls = map[matchingsim.Ref][]started{}
	}
	for _, l := range m.rates(call.Domain) {
		one := started{at: m.now}
		for _, s := range call.Stances {
			if s.Ref == l.Ref {
				one.back += s.Unused
			}
		}
		for i := range out.Taken {
			for _, b := range out.Taken[i].Batches {
				if l.Wide || b.Type == l.Types[0] {
					one.n += len(b.Triggers) / ids.TriggerBytes * max(b.Cost, 1)
					one.beyond = max(0, b.Cost-l.Rate.Burst)
				}
			}
		}
		if one.n > 0 || one.back > 0 {
			c.calls[l.Ref] = append(c.calls[l.Ref], one)
		}
	}
}

// rated holds that in each window no more was let start of a rate than its burst and what it gives meanwhile; and a burst more where the
// tables have lost their memory in it.
func (c *matchChecker) rated() {
	for _, d := range domains {
		for _, l := range c.m.rates(d) {
			// The fullest window that ends with a call: how much of the burst is used up. What is left is what was taken, and neither given back
			// nor granted.
			var level float64
			var at time.Duration
			left := -c.startsOf(d, l)
			for _, one := range c.m.nodes[d].rates.calls[l.Ref] {
				left += one.n - one.back
				level = max(0, level-float64((one.at-at).Microseconds())/l.Rate.EveryUS)
				at = one.at
				if one.wiped {
					level = 0
					continue
				}
				level = max(0, level-float64(one.back)) + float64(one.n)
				if most := float64(l.Rate.Burst+one.beyond) + 1000/l.Rate.EveryUS; one.n > 0 && level > most { // the clock of the tables is of milliseconds here
					c.m.violated("attempts of %s %s that cost %d are let start at %v, and of its burst of %d are used up %.2f", d, l.Ref, one.n, one.at, l.Rate.Burst, level)
					return
				}
			}
			if left < 0 {
				c.m.violated("I8: of %s %s %d starts were given back that the log has granted", d, l.Ref, -left)
			}
		}
	}
}

// startsOf is what the attempts cost that the log has granted of a rate.
func (c *matchChecker) startsOf(domain string, rate matchingsim.Limit) (n int) {
	for _, g := range c.grants {
		if at := g.w.accepted[g.id]; at.domain == domain && covers(rate, at) {
			n += int(max(g.w.costOf[g.id], 1))
		}
	}
	return n
}
