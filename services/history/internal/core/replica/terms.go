package replica

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// termsMax bounds the types of which a turn has terms, each of 5 KiB at most: they fit beside a full turn. A task of another one takes them with its next event.
const termsMax = 12

// OutOfDate are the types, each once, of which a turn with some batches must have the terms: an event starts or ends an attempt of a task of theirs, which
// has fields of an older revision than the settings have.
func OutOfDate(r *Replica, batches []*Events, revision func(taskstate.TypeName) int64) (all []taskstate.TypeName) {
	var last *Entry // most often the next one is alike
	for _, b := range batches {
		for i := range b.Events {
			if !b.Events[i].Kind.ByPolicy() {
				continue
			}
			e := r.tasks[b.Events[i].ID]
			if e == nil || last != nil && e.Policy == last.Policy && e.Type == last.Type && e.Domain == last.Domain {
				continue
			}
			last = e
			if of := typeOf(e); len(all) < termsMax && e.Policy.Precedes(revision(of)) && !slices.Contains(all, of) {
				all = append(all, of)
			}
		}
	}
	return all
}

func typeOf(e *Entry) taskstate.TypeName { return taskstate.TypeName{Domain: e.Domain, Type: e.Type} }

// byType are the terms of a turn, to be looked up; nil = it has none.
func byType(all []*taskstate.Terms) map[taskstate.TypeName]*taskstate.Terms {
	if len(all) == 0 {
		return nil
	}
	terms := make(map[taskstate.TypeName]*taskstate.Terms, len(all))
	for _, t := range all {
		terms[t.Of] = t
	}
	return terms
}
