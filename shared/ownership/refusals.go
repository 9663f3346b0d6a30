package ownership

import (
	"maps"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// refusals are the partitions that this node gave up. It is pure: times come in.
type refusals struct {
	// first and last bound the wait before one that no node serves is tried again.
	first, last time.Duration
	all         map[int]*refusal
}

type refusal struct {
	// open: it is given up now. Else it is being tried again.
	open bool
	at   time.Time
	// wait is what lies before the next trial, waits are those after it.
	wait  time.Duration
	waits *backoff.Backoff
}

func newRefusals(first time.Duration) *refusals {
	return &refusals{first: first, last: max(first, stoppedRetryLast), all: map[int]*refusal{}}
}

// giveUp notes that a partition was given up. Each time in a row its next trial is
// put off for longer.
func (r *refusals) giveUp(p int, now time.Time) {
	one := r.all[p]
	if one == nil {
		one = &refusal{waits: backoff.New(r.first, r.last)}
		r.all[p] = one
	}
	one.open, one.at, one.wait = true, now, one.waits.Next()
}

// retry forgets, and returns, the partitions that no one else serves and whose wait
// is over: the reason may be gone, and there is nothing to lose.
func (r *refusals) retry(owners []string, now time.Time) []int {
	var due []int
	for _, p := range r.partitions() {
		one := r.all[p]
		if owners[p] == "" && now.Sub(one.at) >= one.wait {
			one.open = false
			due = append(due, p)
		}
	}
	return due
}

// partitions are those given up now, sorted.
func (r *refusals) partitions() []int {
	var all []int
	for _, p := range slices.Sorted(maps.Keys(r.all)) {
		if r.all[p].open {
			all = append(all, p)
		}
	}
	return all
}
