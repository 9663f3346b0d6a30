package matching

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/clock"
)

// pausesEvery is how often pauses are looked at that end by themselves, at the pace of the process; and when the next one ends, but not within pausesRest: each
// look goes through all pauses. A shard reads the clock a moment later than that, and the clock may go back, so each end is announced for endedFor.
const (
	pausesRest  = 25 * time.Millisecond
	pausesEvery = 500 * time.Millisecond
	endedFor    = 5 * time.Second
)

// endPauses tells all shards of pauses that end by themselves, until ctx ends. There may be new ones when changed is ready.
func (s *Service) endPauses(ctx context.Context, types *catalog.Catalog, changed <-chan struct{}) {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if !backoff.Sleep(ctx, pausesEvery) { // each look goes through all pauses
				return
			}
		case <-next.C:
		}
		now, wait := s.Clock.Now().UnixMilli(), pace.Of(pausesEvery)
		for domain, ends := range catalog.Pauses.Ends(types, now-endedFor.Milliseconds()) {
			if ends <= now {
				s.changes.changed(domain)
				wait = min(wait, pausesEvery)
			} else {
				wait = min(wait, time.Duration(ends-now)*time.Millisecond)
			}
		}
		next.Reset(max(wait, pausesRest))
	}
}

// limits reads limits and pauses out of the catalog. It is match.Catalog.
type limits struct {
	*catalog.Catalog
	clock *clock.Clock
}

// Scales implements match.Catalog.
func (l limits) Scales(domain, tasklist string) bool {
	return catalog.Tasklists.Of(l.Catalog, domain, tasklist).GetPartitionsMax() > 0
}

// Strict implements match.Catalog.
func (l limits) Strict(domain, tasklist string) bool {
	return catalog.Tasklists.Of(l.Catalog, domain, tasklist).GetStrictPriorities()
}

// PausedGroups implements match.Catalog.
func (l limits) PausedGroups(domain string) map[string]bool {
	paused := catalog.Pauses.Of(l.Catalog, domain, l.clock.Now().UnixMilli()).Groups
	if len(paused) == 0 {
		return nil
	}
	groups := make(map[string]bool, len(paused))
	for name := range paused {
		groups[name] = true
	}
	return groups
}

// Limits implements match.Catalog.
func (l limits) Limits(domain string) []limit.Setting {
	var all []limit.Setting
	add := func(one limit.Setting, most, perGroup int32, rate *yardv1.Rate) {
		if perGroup > 0 {
			each := one
			each.Ref, each.PerGroup, each.Max = table.PerGroupRef(one.Ref), true, int(perGroup)
			all = append(all, each)
		}
		if rate != nil {
			rated := one
			rated.Ref, rated.Rate = table.RateRef(one.Ref), rateOf(rate)
			all = append(all, rated)
		}
		if one.Max = int(most); most > 0 {
			all = append(all, one)
		}
	}
	if d := l.Domain(domain); d != nil {
		add(limit.Setting{Ref: table.DomainRef, Wide: true}, d.MaxConcurrency, d.MaxConcurrencyPerGroup, d.Rate)
	}
	for _, t := range catalog.Tasklists.All(l.Catalog, domain) {
		add(limit.Setting{Ref: table.TasklistRef(t.Name), Tasklist: t.Name}, t.MaxConcurrency, t.MaxConcurrencyPerGroup, t.Rate)
	}
	shared := map[string][]string{}
	for _, t := range catalog.Types.All(l.Catalog, domain) {
		add(limit.Setting{Ref: table.TypeRef(t.Name), Types: []string{t.Name}}, t.MaxConcurrency, t.MaxConcurrencyPerGroup, t.Rate)
		for _, name := range t.Limits {
			shared[name] = append(shared[name], t.Name)
		}
	}
	for _, one := range catalog.Limits.All(l.Catalog, domain) {
		if types := shared[one.Name]; len(types) > 0 {
			add(limit.Setting{
				Ref: table.SharedRef(one.Name), Types: types, Shadow: one.Shadow, OnFull: onFull(one.OnFull), OnFullAfter: onFullAfter(one),
			}, one.MaxConcurrency, one.MaxConcurrencyPerGroup, one.Rate)
		}
	}
	paused := catalog.Pauses.Of(l.Catalog, domain, l.clock.Now().UnixMilli())
	if paused.Domain != nil {
		all = append(all, limit.Setting{Ref: table.PauseRef(table.DomainRef), Paused: true, Wide: true})
	}
	for name := range paused.Tasklists {
		all = append(all, limit.Setting{Ref: table.PauseRef(table.TasklistRef(name)), Paused: true, Tasklist: name})
	}
	for name := range paused.Types {
		all = append(all, limit.Setting{Ref: table.PauseRef(table.TypeRef(name)), Paused: true, Types: []string{name}})
	}
	slices.SortFunc(all, func(a, b limit.Setting) int { return strings.Compare(string(a.Ref), string(b.Ref)) })
	return all
}

// onFull is a policy as it was set.
func onFull(p yardv1.OnFull) limit.OnFull {
	switch p {
	case yardv1.OnFull_ON_FULL_REJECT_NEWEST:
		return limit.RejectNewest
	case yardv1.OnFull_ON_FULL_CANCEL_OLDEST:
		return limit.CancelOldest
	}
	return limit.Wait
}

// onFullAfterDefault is when a policy acts that does not say so.
const onFullAfterDefault = time.Second

func onFullAfter(l *yardv1.Limit) time.Duration {
	return cmp.Or(time.Duration(l.OnFullAfterMs)*time.Millisecond, onFullAfterDefault)
}

// rateOf is a rate as it was set, with its defaults.
func rateOf(r *yardv1.Rate) table.Rate {
	perMS := cmp.Or(r.PerMs, 1000)
	return table.Rate{
		EveryUS: float64(perMS) * 1000 / float64(r.Tasks),
		Burst:   int(cmp.Or(int64(r.Burst), max(1, int64(r.Tasks)*1000/perMS))),
	}
}
