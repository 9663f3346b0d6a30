package match

import (
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/report"
)

// Kind is the tasks of a type and a group in a tasklist.
type Kind struct{ Domain, Tasklist, Type, Group string }

// Explained is what a shard knows of tasks of a kind that wait.
type Explained struct {
	// Limits are those that cover them.
	Limits []limit.InUse
	// Workers are those of the tasklist. Polled: a poll waits here that accepts the type.
	Workers report.Serving
	Polled  bool
	// Triggers counts those of the type in the tasklist, as far as is known.
	Triggers int
}

// Explain says what the shard knows of tasks of a kind, with up to so many holders of each limit.
func (s *Shard) Explain(k Kind, holders int, now Now) Explained {
	out := Explained{Workers: s.waiting.Serving(k.Domain, k.Tasklist, k.Type, now.Mono)}
	d := s.domains[k.Domain]
	if d == nil {
		return out
	}
	out.Limits = d.Covering(k.Tasklist, k.Type, k.Group, holders, now.Mono)
	for _, l := range d.Sources {
		if l.Name == k.Tasklist {
			out.Triggers += l.Index.TriggersOfType(k.Type) + l.Ahead[k.Type]
			out.Polled = out.Polled || l.Polls.WaitsFor(k.Type)
		}
	}
	return out
}
