// Package batches is the verbs about batches: create, get, list, close, wait, cancel.
//
// Owns: the message of a batch in the log of its home partition, as far as frontends change it, and the search for its end.
//
// Never does: store the tasks of a batch, which is package intake's, or end a batch, which is its keeper's in history.
//
// On failure: a change is stored over what was read, or not at all; where that is not known the batch is read again.
package batches

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/batchclose"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/quotas"
)

const (
	// askedAtOnce bounds the partitions that are asked at once.
	askedAtOnce = 16
)

// List reads of batches what the log does not hold as a single message that is known by name. Its errors are *fault.Error.
type List interface {
	// Page returns batches of a domain whose home is partition p, behind a message of the log. More: others follow.
	Page(ctx context.Context, p int, domain string, after uint64, limit int) (page []Kept, more bool, err error)
	// Count is how many batches of a domain have their home in partition p.
	Count(ctx context.Context, p int, domain string) (int, error)
}

// Kept is what the log says of a batch, and where.
type Kept struct {
	Seq  uint64
	Home *logv1.BatchHome
}

// Deps is what Batches need.
type Deps struct {
	Homes
	List List
	// HasRoom tells whether the log of a partition has some for tasks.
	HasRoom func(p int) bool
	// Drained refuses a submit to what is drained.
	Drained func(c call.Call, req *yardv1.SubmitRequest) error
	// Charge is what a domain's quota counts of a submit.
	Charge func(domain string, tasks, bytes int) *quotas.Charge
	// PurgeStep cancels a page of tasks.
	PurgeStep func(ctx context.Context, c call.Call, p validate.Purge) (*yardv1.Purged, error)
}

// Batches carries out the verbs about batches.
type Batches struct {
	Deps
	// batchWaits are the batches that requests wait for.
	batchWaits batchWaits
}

// New makes Batches.
func New(d Deps) *Batches { return &Batches{Deps: d} }

// Homes are the batches as the log has them.
type Homes struct {
	owners.Env
	Log batchclose.Log
	// AppendTimeout is how long one append to the log may take until its outcome counts as unknown.
	AppendTimeout time.Duration
}
