package chaos_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// pace is for how long partitions moved nothing: no task of theirs was handed to a worker, and
// none was completed.
type pace struct {
	mu    sync.Mutex
	began time.Time
	last  []time.Time
	// most is each one's longest time, with when it began.
	most []stall
}

type stall struct {
	from, lasts time.Duration
}

// reset begins to measure.
func (p *pace) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := topology.DefaultPartitioning().History
	p.began, p.last, p.most = time.Now(), make([]time.Time, n), make([]stall, n)
	for i := range p.last {
		p.last[i] = p.began
	}
}

// moved notes that something has become of a task.
func (p *pace) moved(task string, at time.Time) {
	id, err := ids.ParseTaskID(task)
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := id.Partition(); err == nil && n < len(p.last) && at.After(p.last[n]) {
		if gap := at.Sub(p.last[n]); gap > p.most[n].lasts {
			p.most[n] = stall{p.last[n].Sub(p.began), gap}
		}
		p.last[n] = at
	}
}

// worst is the longest time of all partitions, up to now.
func (p *pace) worst() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	most := slices.MaxFunc(p.most, func(a, b stall) int { return int(a.lasts - b.lasts) }).lasts
	for _, last := range p.last {
		most = max(most, now.Sub(last))
	}
	return most
}

func (p *pace) String() string {
	worst := p.worst()
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "the longest time that a partition moved nothing: %.1f s; of each, with when it began:", worst.Seconds())
	for i, s := range p.most {
		fmt.Fprintf(&b, " %d: %.1f s at %.1f s", i, s.lasts.Seconds(), s.from.Seconds())
	}
	return b.String()
}
