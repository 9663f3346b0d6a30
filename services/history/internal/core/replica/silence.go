package replica

import (
	"bytes"
	"iter"
	"maps"
	"slices"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// WorkerKey names a worker of a domain that sends signs of life.
type WorkerKey struct{ Domain, ID string }

// silent proposes that the attempts of workers end that fell silent. The log decides: it refuses that for an attempt that had a
// heartbeat meanwhile, and what it takes too late. Signs of life do not go through the log, so one that stands still is no reason to wait.
func (r *Replica) silent(all []WorkerKey, now Now) {
	if r.replay != nil || len(all) == 0 {
		return
	}
	wanted := make(map[WorkerKey]bool, len(all))
	domains := make(map[string]bool)
	for _, w := range all {
		wanted[w], domains[w.Domain] = true, true
	}
	var ended []*Entry
	for _, l := range r.order {
		if !domains[l.key.domain] {
			continue
		}
		for e := range l.attempts() {
			if id := e.Attempt.Worker.ID(); id != "" && wanted[WorkerKey{e.Domain, id}] {
				ended = append(ended, e)
			}
		}
	}
	slices.SortFunc(ended, func(a, b *Entry) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	for _, e := range ended {
		r.propose(e, Proposal{
			Kind: taskstate.Expired, Undelivered: e.burnsNothing(), NotAfter: now.MS + standsStillMS, SilentLease: e.WakeAt(),
		})
	}
}

// GaveSigns are the workers of running attempts that gave signs of life when these began, and how often, ms.
func GaveSigns(r *Replica) map[WorkerKey]int64 {
	all := make(map[WorkerKey]int64)
	for _, l := range r.order {
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
		for _, x := range append(slices.Collect(maps.Values(l.elsewhere)), &l.here) {
			for _, first := range [...]*Entry{x.booked.first, x.unbooked.first} {
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
	Oldest []*Entry
}

// WorkersRun is what workers of a domain run, those with these ids: all are counted, and at most so many are listed.
func (r *Replica) WorkersRun(domain string, ids []string, most int) map[string]*WorkerRuns {
	all := make(map[string]*WorkerRuns, len(ids))
	for _, id := range ids {
		all[id] = &WorkerRuns{}
	}
	for _, l := range r.order {
		if l.key.domain != domain {
			continue
		}
		for e := range l.attempts() {
			w := all[e.Attempt.Worker.ID()]
			if w == nil {
				continue
			}
			w.Count++
			w.Oldest = keepFirst(w.Oldest, e, most, compareStarts)
		}
	}
	return all
}
