package timer

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

const (
	// lateEvery is how often it is found out which domains have late tasks, if any task is late.
	lateEvery = 5 * time.Second
	// lateAfter is how late the next task of a domain is that has a series, lateMost how many domains have one.
	lateAfter = time.Second
	lateMost  = 20
)

// lateDomains is how late the next task of each domain is, by partition. It is safe for concurrent use.
type lateDomains struct {
	mu sync.Mutex
	of map[int]map[string]time.Duration
}

// set replaces what is known of a partition; nil = nothing is late there.
func (l *lateDomains) set(p int, late map[string]time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[int]map[string]time.Duration{}
	}
	l.of[p] = late
}

// show shows the latest domains of all partitions.
func (l *lateDomains) show(set func(of signals.Metric, value float64, values ...string)) {
	l.mu.Lock()
	latest := map[string]time.Duration{}
	for _, domains := range l.of {
		for name, late := range domains {
			latest[name] = max(latest[name], late)
		}
	}
	l.mu.Unlock()
	names := slices.SortedFunc(maps.Keys(latest), func(a, b string) int {
		return cmp.Or(cmp.Compare(latest[b], latest[a]), strings.Compare(a, b))
	})
	for _, name := range names[:min(len(names), lateMost)] {
		set(signals.TimerDomainLate, latest[name].Seconds(), name)
	}
}

// watchLate finds out which domains have late tasks in partition p, until ctx ends.
func (s *Service) watchLate(ctx context.Context, p int, owner *firing.Owner) error {
	defer s.late.set(p, nil)
	for backoff.Sleep(ctx, pace.Of(lateEvery)) {
		now := s.Clock.Now()
		late := func(dueMS int64) time.Duration { return now.Sub(time.UnixMilli(dueMS)) }
		if next := s.next[p].Load(); next == 0 || late(next) < lateAfter {
			s.late.set(p, nil)
			continue
		}
		all, err := firing.OfDomains(ctx, owner)
		if err != nil {
			continue // it ends, or is asked again
		}
		found := map[string]time.Duration{}
		for _, d := range all {
			if d.NextMS > 0 && late(d.NextMS) >= lateAfter {
				found[d.Domain] = late(d.NextMS)
			}
		}
		s.late.set(p, found)
	}
	return nil
}
