package matching

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

const (
	// fullEvery is how often it is found out for which limits tasks wait.
	fullEvery = 5 * time.Second
	// fullMost is how many limits have a series.
	fullMost = 20
)

// fullLimits are the limits for which tasks wait, by shard. It is safe for concurrent use.
type fullLimits struct {
	mu sync.Mutex
	of map[int][]*yardv1.FullLimit
}

// set replaces what is known of a shard.
func (f *fullLimits) set(m int, all []*yardv1.FullLimit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[int][]*yardv1.FullLimit{}
	}
	f.of[m] = all
}

// show shows the limits of all shards that have been full for the longest.
func (f *fullLimits) show(set func(of signals.Metric, value float64, values ...string)) {
	type name struct{ domain, ref string }
	longest := map[name]int64{}
	f.mu.Lock()
	for _, all := range f.of {
		for _, l := range all {
			at := name{l.Domain, l.Ref}
			longest[at] = max(longest[at], l.FullForMs)
		}
	}
	f.mu.Unlock()
	names := slices.SortedFunc(maps.Keys(longest), func(a, b name) int {
		return cmp.Or(cmp.Compare(longest[b], longest[a]), strings.Compare(a.domain, b.domain), strings.Compare(a.ref, b.ref))
	})
	for _, at := range names[:min(len(names), fullMost)] {
		set(signals.LimitFull, (time.Duration(longest[at]) * time.Millisecond).Seconds(), at.domain, at.ref)
	}
}

// watchFull finds out for which limits tasks wait in shard m, until ctx ends.
func (s *Service) watchFull(ctx context.Context, m int, one *shard.Shard) {
	defer s.full.set(m, nil)
	for backoff.Sleep(ctx, pace.Of(fullEvery)) {
		resp, err := one.Describe(ctx, &rpcv1.DescribeShardRequest{Top: &yardv1.TopDomainsRequest{Limit: fullMost}})
		if err == nil {
			s.full.set(m, resp.Domains.FullLimits)
		}
	}
}
