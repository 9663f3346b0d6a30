package replica

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/admission"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Now is the time of a step.
type Now struct {
	// MS is the time of the log as this node knows it, Unix ms. It decides nothing about a task.
	MS int64
	// Mono is a clock that never jumps, from any origin: the lease is measured with it.
	Mono time.Duration
}

// Input is what a step takes: a type of this file, or a *Found.
type Input any

// Submits is one message of a lane. Lanes are read each in log order.
type Submits struct {
	Lane ids.Lane
	// Place is where it is filed. By is the queue whose reader has read it; "" = the lane.
	Place, By ids.Place
	Seq       uint64
	// At is when it was stored, Unix ms.
	At    int64
	Bytes int
	// Tasks as decoded; Position is what the record says, that of the stay before.
	Tasks []*Entry
}

// Turn is one message of events: the batches that an owner had gathered. Turns are read in log order.
type Turn struct {
	Seq uint64
	// At is when its events count as made, Unix ms.
	At int64
	// Admitted are the steps before it, in order. A takeover has taken them before the turn.
	Admitted []Admission
	Batches  []*Events
	// Terms are those of types that have changed. They hold for the events of this turn.
	Terms []*taskstate.Terms
}

// Events is one batch of a turn; alone it is a turn of one batch.
type Events struct {
	// Seq and At are those of its turn. First is the place of its first event among those of the turn.
	Seq   uint64
	At    int64
	First int
	Bytes int
	// ReplyTo is who wants the verdicts; empty = none.
	ReplyTo   string
	RequestID uint64
	// Shard is the matching shard that wrote this, plus one; 0 = not matching. Epoch is that of its
	// owner, whose batches RequestID then counts. Grants up to Delivered have been sent
	// to its polls. Polls are those that the events name.
	Shard            uint32
	Epoch, Delivered uint64
	Polls            []dispatch.Poll
	Events           []taskstate.Event
	// terms are those of its turn.
	terms map[taskstate.TypeName]*taskstate.Terms
}

// Stay names one stay of a task in the timer store, or what comes back from it.
type Stay struct {
	ID       ids.TaskID
	Parkings uint32
}

// Recovered ends a takeover: everything from the snapshot to the log's end has been
// stepped through.
type Recovered struct{}

// TurnRefused is that the log will never take the turn that began with these steps.
type TurnRefused struct{ Admitted []Admission }

// Tick is that time has passed. It is due every quarter of a second, and at NextWake.
type Tick struct{}

// Looked is the answer to a Look.
type Looked admission.Counts

// Stored is that the job under way of a kind is stored, as far as Seq in its store.
type Stored struct {
	Kind JobKind
	Seq  uint64
	// Others are what another owner has put into the archive meanwhile, the job's own
	// tasks not among them.
	Others []Stay
	// Refused are the proposals that the log will not take.
	Refused []Proposal
	// Snapshot names the snapshot that is stored.
	Snapshot SnapshotRef
}

// Saved is the outcome of Effects.Save.
type Saved struct {
	OK bool
	// SentAt is when it was sent, on the clock of Now.Mono.
	SentAt time.Duration
}

// Purged is that Effects.Purge was carried out.
type Purged struct {
	// Again: it failed, or there was more than is purged at a time. So it comes again, also if the levels stay as they are.
	Again bool
}

// Bounced is that the answer with these grants was not delivered.
type Bounced struct{ Grants []GrantRef }

// GrantRef names a granted attempt.
type GrantRef struct {
	ID    ids.TaskID
	Fence ids.Token
}

// Silent are workers that fell silent a moment ago: it is said again and again for a while.
type Silent struct{ Workers []dispatch.WorkerKey }

// Draining is that the owner leaves: nothing waits for a fuller batch any more.
type Draining struct{}
