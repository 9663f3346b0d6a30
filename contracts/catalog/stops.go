package catalog

import (
	"maps"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Stopped is what is paused, or drained, of a domain, by name.
type Stopped struct{ Tasklists, Types, Groups map[string]*yardv1.Pause }

// Len is how many there are.
func (s Stopped) Len() int { return len(s.Tasklists) + len(s.Types) + len(s.Groups) }

// stops are the pauses, or the drains, of tasklists, types and groups, by domain and name.
type stops struct {
	lists, types, groups map[string]map[string]*yardv1.Pause
}

func newStops() stops {
	return stops{lists: map[string]map[string]*yardv1.Pause{}, types: map[string]map[string]*yardv1.Pause{}, groups: map[string]map[string]*yardv1.Pause{}}
}

// all are those of tasklists, of types and of groups.
func (s stops) all() [3]map[string]map[string]*yardv1.Pause {
	return [...]map[string]map[string]*yardv1.Pause{s.lists, s.types, s.groups}
}

// clone is a copy of which what is of a domain may be changed.
func (s stops) clone(domain string) stops {
	s = stops{lists: maps.Clone(s.lists), types: maps.Clone(s.types), groups: maps.Clone(s.groups)}
	for _, all := range s.all() {
		if m, ok := all[domain]; ok {
			all[domain] = maps.Clone(m)
		}
	}
	return s
}

// of are those of a domain that are not over at an instant, Unix ms. The maps are copies.
func (s stops) of(domain string, nowMS int64) Stopped {
	now := func(all map[string]map[string]*yardv1.Pause) map[string]*yardv1.Pause {
		some := maps.Clone(all[domain])
		maps.DeleteFunc(some, func(_ string, p *yardv1.Pause) bool { return !Paused(p, nowMS) })
		return some
	}
	return Stopped{now(s.lists), now(s.types), now(s.groups)}
}

// names adds the domains that have any.
func (s stops) names(to map[string]bool) {
	for _, all := range s.all() {
		for name := range all {
			to[name] = true
		}
	}
}

func (s stops) same(other stops, domain string) bool {
	equal := func(a, b *yardv1.Pause) bool { return proto.Equal(a, b) }
	return maps.EqualFunc(s.lists[domain], other.lists[domain], equal) && maps.EqualFunc(s.types[domain], other.types[domain], equal) &&
		maps.EqualFunc(s.groups[domain], other.groups[domain], equal)
}

// stopOf is where the pause or the drain under a key belongs, nil where the key is of neither.
func (s *state) stopOf(key string) (all map[string]map[string]*yardv1.Pause, domain, name string) {
	if domain, name, ok := topology.TasklistPauseOfKey(key); ok {
		return s.pauses.lists, domain, name
	}
	if domain, name, ok := topology.TypePauseOfKey(key); ok {
		return s.pauses.types, domain, name
	}
	if domain, name, ok := topology.TasklistDrainOfKey(key); ok {
		return s.drains.lists, domain, name
	}
	if domain, name, ok := topology.TypeDrainOfKey(key); ok {
		return s.drains.types, domain, name
	}
	if domain, name, ok := topology.GroupPauseOfKey(key); ok {
		return s.pauses.groups, domain, name
	}
	if domain, name, ok := topology.GroupDrainOfKey(key); ok {
		return s.drains.groups, domain, name
	}
	return nil, "", ""
}
