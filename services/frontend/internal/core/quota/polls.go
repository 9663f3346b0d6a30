package quota

import "time"

// Polls are those that are open, here and at other frontends, by domain.
type Polls struct {
	own   map[string]int
	heard map[uint64]report
}

// report is what a frontend has said last.
type report struct {
	at    time.Duration
	polls map[string]int
	// paced is up to when its reports are counted, at one in ReportEvery.
	paced time.Duration
}

const (
	// ReportEvery is how often a frontend reports.
	ReportEvery = 100 * time.Millisecond
	// reportFor is for how long a report holds: a frontend that has no polls any more says nothing, nor does an owner that has ended.
	reportFor = 2 * time.Second
	// backlogMax bounds what counts of the reports that a frontend hears at once after it was stalled: these are of a time that is over.
	backlogMax = time.Second
)

// NewPolls makes them.
func NewPolls() *Polls { return &Polls{map[string]int{}, map[uint64]report{}} }

// Open counts one of a domain, unless it has as many as it may; most 0 = any number.
func (p *Polls) Open(domain string, most int, now time.Duration) bool {
	if most > 0 && p.Count(domain, now) >= most {
		return false
	}
	p.own[domain]++
	return true
}

// Close counts one out.
func (p *Polls) Close(domain string) {
	if p.own[domain]--; p.own[domain] <= 0 {
		delete(p.own, domain)
	}
}

// Count is how many of a domain are open.
func (p *Polls) Count(domain string, now time.Duration) int {
	n := p.own[domain]
	for _, r := range p.heard {
		if now-r.at < reportFor {
			n += r.polls[domain]
		}
	}
	return n
}

// Own are those that are open here, by domain. It is read-only.
func (p *Polls) Own() map[string]int { return p.own }

// Heard takes in what a frontend has open, and reports whether what it has let in counts, too.
func (p *Polls) Heard(from uint64, polls map[string]int, now time.Duration) (counts bool) {
	for id, r := range p.heard {
		if now-r.at >= reportFor {
			delete(p.heard, id)
		}
	}
	paced := max(p.heard[from].paced, now-backlogMax)
	if counts = paced <= now; counts {
		paced += ReportEvery
	}
	p.heard[from] = report{now, polls, paced}
	return counts
}
