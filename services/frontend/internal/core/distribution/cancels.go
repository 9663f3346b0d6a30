package distribution

import "slices"

// CancelsSentMax is how many cancels a partition gets without a report of its owner: one
// that no node owns must not find millions in its log.
const CancelsSentMax = 10_000

// Cancels knows which partitions take cancels. A cancel of a task that is not in memory waits there
// for a search, and what is in the log must be waited for: so the bound of what waits is
// kept here, by what the owners report. It is not safe for concurrent use.
type Cancels struct{ partitions []cancels }

type cancels struct {
	full   bool
	fullOf []string
	sent   int
}

// NewCancels makes the account of n partitions, which take cancels.
func NewCancels(n int) *Cancels { return &Cancels{partitions: make([]cancels, n)} }

// Report takes in what an owner says: it takes no cancels, or none of some domains. Unknown
// partitions are ignored.
func (c *Cancels) Report(p int, full bool, fullOf []string) {
	if p >= 0 && p < len(c.partitions) {
		c.partitions[p] = cancels{full: full, fullOf: fullOf}
	}
}

// Takes tells whether a partition takes cancels of a domain.
func (c *Cancels) Takes(p int, domain string) bool {
	at := &c.partitions[p]
	return !at.full && at.sent < CancelsSentMax && !slices.Contains(at.fullOf, domain)
}

// Sent counts n cancels that are on their way to a partition.
func (c *Cancels) Sent(p, n int) { c.partitions[p].sent += n }
