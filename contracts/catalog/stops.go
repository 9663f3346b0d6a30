package catalog

import (
	"maps"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// stops are the pauses, or the drains, of tasklists and of types, by domain and name.
type stops struct {
	lists, types map[string]map[string]*yardv1.Pause
}

func newStops() stops {
	return stops{lists: map[string]map[string]*yardv1.Pause{}, types: map[string]map[string]*yardv1.Pause{}}
}

// clone is a copy of which what is of a domain may be changed.
func (s stops) clone(domain string) stops {
	s = stops{lists: maps.Clone(s.lists), types: maps.Clone(s.types)}
	for _, all := range []map[string]map[string]*yardv1.Pause{s.lists, s.types} {
		if m, ok := all[domain]; ok {
			all[domain] = maps.Clone(m)
		}
	}
	return s
}

// of are those of a domain that are not over at an instant, Unix ms. The maps are copies.
func (s stops) of(domain string, nowMS int64) (tasklists, types map[string]*yardv1.Pause) {
	over := func(_ string, p *yardv1.Pause) bool { return !Paused(p, nowMS) }
	tasklists, types = maps.Clone(s.lists[domain]), maps.Clone(s.types[domain])
	maps.DeleteFunc(tasklists, over)
	maps.DeleteFunc(types, over)
	return tasklists, types
}

// names adds the domains that have any.
func (s stops) names(to map[string]bool) {
	for name := range s.lists {
		to[name] = true
	}
	for name := range s.types {
		to[name] = true
	}
}

func (s stops) same(other stops, domain string) bool {
	equal := func(a, b *yardv1.Pause) bool { return proto.Equal(a, b) }
	return maps.EqualFunc(s.lists[domain], other.lists[domain], equal) && maps.EqualFunc(s.types[domain], other.types[domain], equal)
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
	return nil, "", ""
}
