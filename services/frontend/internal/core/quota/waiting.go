package quota

import "time"

// Source is who reports what waits: the owner of a partition, in history or in timer.
type Source struct {
	Partition int32
	Timer     bool
}

// Waiting is what domains have waiting, as the owners of partitions reported last. An old report counts as nothing: its owner may have ended, and the next one
// may know better.
type Waiting struct{ from map[Source]waits }

type waits struct {
	at      time.Duration
	domains map[string]Use
}

// NewWaiting makes one that knows of nothing.
func NewWaiting() *Waiting { return &Waiting{map[Source]waits{}} }

// Report takes in what an owner says, in place of what was said of its partition before. Domains that it does not name have nothing there.
func (w *Waiting) Report(from Source, domains map[string]Use, now time.Duration) {
	for of, last := range w.from {
		if now-last.at >= reportFor {
			delete(w.from, of)
		}
	}
	w.from[from] = waits{now, domains}
}

// Count is what a domain has waiting.
func (w *Waiting) Count(domain string, now time.Duration) (sum Use) {
	for _, last := range w.from {
		if now-last.at < reportFor {
			sum = sum.plus(last.domains[domain])
		}
	}
	return sum
}

// All is Count of each domain in a report that holds.
func (w *Waiting) All(now time.Duration) map[string]Use {
	all := map[string]Use{}
	for _, last := range w.from {
		if now-last.at >= reportFor {
			continue
		}
		for domain, some := range last.domains {
			all[domain] = all[domain].plus(some)
		}
	}
	return all
}
