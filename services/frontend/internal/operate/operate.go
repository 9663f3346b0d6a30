// Package operate is the verbs of people who operate tasks in bulk: purges, dead letters, order keys, stuck attempts, and the drains of workers.
//
// Owns: the steps of a bulk operation, and what this frontend says of drained workers.
//
// Never does: decide about a task. A step reads a page, and sends its tasks as tasks.cancel does; history decides about each.
//
// On failure: a step whose outcome is unknown is repeated with its cursor, which is safe.
package operate

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// Reads is the questions that precede a change.
type Reads interface {
	// Page reads a page of a list of tasks.
	Page(ctx context.Context, c call.Call, req *yardv1.ListRequest) (page []*yardv1.Task, next string, err error)
	// Unread counts the log messages that history has not read.
	Unread(ctx context.Context, domain, tasklist string) (batches int64, err error)
	// Workers asks all owners of partitions for workers.
	Workers(ctx context.Context, ask *rpcv1.ListWorkersRequest) (*rpcv1.ListWorkersResponse, error)
	// Line asks for the line of an order key.
	Line(ctx context.Context, domain, key string) (*yardv1.OrderKey, error)
}

// Outcomes decides about single tasks.
type Outcomes interface {
	// Decide returns the verdicts on entries of a request that does more than that.
	Decide(c call.Call, entries []validate.Outcome) ([]*yardv1.Verdict, error)
}

// Polls are those that this frontend has.
type Polls interface {
	// ReleaseDrained lets go on what rests here of workers that were resumed.
	ReleaseDrained()
}

// Bus sends what is not waited for.
type Bus interface {
	// PublishSilent has the polls of workers end, wherever they wait.
	PublishSilent(data []byte) error
}

// Deps is what an Operator needs.
type Deps struct {
	owners.Env
	Bucket      catalog.Bucket
	DeadLetters DeadLetters
	Reads       Reads
	Outcomes    Outcomes
	Polls       Polls
	Bus         Bus
}

// Operator carries out these verbs.
type Operator struct {
	Deps
	// voice is of the goroutine that calls Tick.
	voice drainVoice
}

// New makes an Operator. The caller calls Tick now and then.
func New(d Deps) *Operator { return &Operator{Deps: d} }
