package matching

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/clock"
)

// pausesEvery is how often pauses are looked at that end by themselves. A shard reads the clock a moment later than that,
// and the clock may go back, so each end is announced for endedFor.
const (
	pausesEvery = 500 * time.Millisecond
	endedFor    = 5 * time.Second
)

// endPauses tells all shards of pauses that end by themselves, until ctx ends.
func (s *Service) endPauses(ctx context.Context, types *catalog.Catalog) {
	ticker := time.NewTicker(pausesEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := s.Clock.Now().UnixMilli()
		for domain, ends := range types.PauseEnds(now - endedFor.Milliseconds()) {
			if ends <= now {
				s.limitsChanged(domain)
			}
		}
	}
}

// limits reads limits and pauses out of the catalog. It is match.Catalog.
type limits struct {
	types *catalog.Catalog
	clock *clock.Clock
}

// Weights implements match.Catalog.
func (l limits) Weights(domain string) map[string]float64 { return l.types.Weights(domain) }

// Limits implements match.Catalog.
func (l limits) Limits(domain string) []match.Limit {
	var all []match.Limit
	add := func(one match.Limit, most int32) {
		if one.Max = int(most); most > 0 {
			all = append(all, one)
		}
	}
	if d, ok := l.types.Domain(domain); ok {
		add(match.Limit{Ref: table.DomainRef, Wide: true}, d.MaxConcurrency)
	}
	for _, t := range l.types.Tasklists(domain) {
		add(match.Limit{Ref: table.TasklistRef(t.Name), Tasklist: t.Name}, t.MaxConcurrency)
	}
	shared := map[string][]string{}
	for _, t := range l.types.Types(domain) {
		add(match.Limit{Ref: table.TypeRef(t.Name), Types: []string{t.Name}}, t.MaxConcurrency)
		for _, name := range t.Limits {
			shared[name] = append(shared[name], t.Name)
		}
	}
	for _, one := range l.types.Limits(domain) {
		if types := shared[one.Name]; len(types) > 0 {
			add(match.Limit{Ref: table.SharedRef(one.Name), Types: types}, one.MaxConcurrency)
		}
	}
	tasklists, types := l.types.Pauses(domain, l.clock.Now().UnixMilli())
	for name := range tasklists {
		all = append(all, match.Limit{Ref: table.PauseRef(table.TasklistRef(name)), Paused: true, Tasklist: name})
	}
	for name := range types {
		all = append(all, match.Limit{Ref: table.PauseRef(table.TypeRef(name)), Paused: true, Types: []string{name}})
	}
	slices.SortFunc(all, func(a, b match.Limit) int { return strings.Compare(string(a.Ref), string(b.Ref)) })
	return all
}
