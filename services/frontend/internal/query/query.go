// Package query is the verbs that only read: tasks, tasklists, workers, order keys and limits in use.
//
// Owns: which owners a question goes to, and the page that their answers make.
//
// Never does: change anything. How answers are put together is in package gather.
//
// On failure: a list or a count with a part that is missing is no answer, but UNAVAILABLE; limits.top, domains.top, queues.list and tasks.explain name the
// parts instead.
package query

import (
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/distribution"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// Deps is what Queries need.
type Deps struct {
	owners.Env
	// Queued is how many tasks of a tasklist with a cap are queued.
	Queued func(domain, tasklist string) int64
	// Share is the part of the submits that a partition gets.
	Share func(p int) distribution.Share
}

// Queries carries out the verbs that only read.
type Queries struct{ Deps }

// New makes Queries.
func New(d Deps) *Queries { return &Queries{d} }
