package match

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/report"
)

// Census counts what a shard holds. All but Domains and Lists is 0 where nothing is under
// way, and nothing waits.
type Census struct {
	// Polls wait. Grabs are those gathered or undecided, HandBacks those that history has not heard of,
	// Aside triggers of silent partitions.
	Polls, Grabs, HandBacks, Aside int
	// Slots are in use by attempts of the shard, Reported by what the tables know; Unbooked are those of
	// them for which nothing was booked.
	Slots, Reported, Unbooked int
	// Chunks wait to be stored, Calls and Questions to be answered, Receipts are batches of which some
	// grants may not have been received.
	Chunks, Calls, Questions, Receipts int
	// Domains and Lists are kept for a while.
	Domains, Lists int
}

// Census counts what s holds.
func (s *Shard) Census() Census {
	c := Census{
		Polls: s.waiting.Len(), Questions: s.questions.Len(),
		Domains: len(s.domains), Lists: len(s.lists), Chunks: len(s.arrivals.All),
	}
	c.Grabs, c.HandBacks, c.Aside, c.Receipts = s.grabs.Census()
	for _, d := range s.domains {
		c.Chunks += d.Chunks()
		if d.Calling() {
			c.Calls++
		}
		slots, reported, unbooked := d.UsedSlots()
		c.Slots, c.Reported, c.Unbooked = c.Slots+slots, c.Reported+reported, c.Unbooked+unbooked
	}
	return c
}

// PartitionCount is how many triggers of a partition of a tasklist are in the table as far as is known, and how many of its polls are not answered.
type PartitionCount struct{ Partition, Ready, Polls int }

// Tasklist counts the partitions of a tasklist that are here, by number.
func (s *Shard) Tasklist(domain, name string) (all []PartitionCount) {
	if d := s.domains[domain]; d != nil {
		for _, l := range d.Sources {
			if l.Name == name {
				all = append(all, PartitionCount{l.Partition, l.Index.Triggers() + l.ReadAhead(), l.Polls.Alive()})
			}
		}
	}
	slices.SortFunc(all, func(a, b PartitionCount) int { return cmp.Compare(a.Partition, b.Partition) })
	return all
}

// Pollers are up to limit workers that polled a tasklist, behind the one called after; from the first, if that is empty.
func (s *Shard) Pollers(domain, tasklist, after string, limit int, now Now) report.Page {
	return s.waiting.Pollers(domain, tasklist, after, limit, now.Mono)
}

// LimitsInUse are the limits of a domain that are in use here or were full within the last hour; see limit.Domain.
func (s *Shard) LimitsInUse(domain string, each int, now Now) (all []limit.InUse, leftOut int) {
	if d := s.domains[domain]; d != nil {
		return d.LimitsInUse(each, now.Mono)
	}
	return nil, 0
}

// FullLimit is a limit of a domain for which tasklists wait.
type FullLimit struct {
	Domain string
	limit.InUse
}

// FullLimits are up to most limits of all domains for which tasklists wait, those that have been full for the longest; see limit.Waited.
func (s *Shard) FullLimits(most int, now Now) (all []FullLimit) {
	for _, d := range s.inOrder {
		looks := limit.Looks/len(s.inOrder) + 1 // each domain has its part
		for _, u := range d.Waited(now.Mono, &looks) {
			all = append(all, FullLimit{d.Name, u})
		}
	}
	slices.SortStableFunc(all, func(a, b FullLimit) int { return cmp.Compare(b.FullFor, a.FullFor) })
	return all[:min(len(all), most)]
}
