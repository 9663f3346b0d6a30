package dispatch

import (
	"bytes"
	"iter"
	"maps"
	"slices"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// WorkerKey names a worker of a domain that sends signs of life.
type WorkerKey struct{ Domain, ID string }

// AttemptsOf are the running attempts of some workers, in the order of their tasks.
func (x *Lists) AttemptsOf(all []WorkerKey) (running []*taskstate.Task) {
	wanted := make(map[WorkerKey]bool, len(all))
	domains := make(map[string]bool)
	for _, w := range all {
		wanted[w], domains[w.Domain] = true, true
	}
	for _, l := range x.order {
		if !domains[l.key.domain] {
			continue
		}
		for e := range l.attempts() {
			if id := e.Attempt.Worker.ID(); id != "" && wanted[WorkerKey{e.Domain, id}] {
				running = append(running, e.Task)
			}
		}
	}
	slices.SortFunc(running, func(a, b *taskstate.Task) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return running
}

// GaveSigns are the workers of running attempts that gave signs of life when these began, and how often, ms.
func (x *Lists) GaveSigns() map[WorkerKey]int64 {
	all := make(map[WorkerKey]int64)
	for _, l := range x.order {
		for e := range l.attempts() {
			if every := e.Attempt.Worker.SignsEvery(); every > 0 {
				all[WorkerKey{e.Domain, e.Attempt.Worker.ID()}] = every
			}
		}
	}
	return all
}

// attempts are those that run of the tasklist, in no order.
func (l *tasklist) attempts() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, of := range append(slices.Collect(maps.Values(l.elsewhere)), &l.here) {
			for _, first := range [...]*Entry{of.booked.first, of.unbooked.first} {
				for e := first; e != nil; e = e.after {
					if !yield(e) {
						return
					}
				}
			}
		}
	}
}

// WorkerRuns is what a worker runs.
type WorkerRuns struct {
	Count int64
	// Oldest are those that have been running for the longest, in that order.
	Oldest []*taskstate.Task
}

// WorkersRun is what workers of a domain run, those with these ids: all are counted, and at most so many are listed.
func (x *Lists) WorkersRun(domain string, ids []string, most int) map[string]*WorkerRuns {
	all := make(map[string]*WorkerRuns, len(ids))
	for _, id := range ids {
		all[id] = &WorkerRuns{}
	}
	for _, l := range x.order {
		if l.key.domain != domain {
			continue
		}
		for e := range l.attempts() {
			w := all[e.Attempt.Worker.ID()]
			if w == nil {
				continue
			}
			w.Count++
			w.Oldest = KeepFirst(w.Oldest, e.Task, most, compareStarts)
		}
	}
	return all
}
