package audit

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
)

// Fate is what the submitter of a task was answered.
type Fate string

// The fates.
const (
	Accepted Fate = "accepted"
	Refused  Fate = "refused" // it was certainly not accepted
	Unsure   Fate = "unsure"  // the submitter does not know
)

// Ledger is all that the outside of the system has seen.
type Ledger struct {
	Tasks  []*Task
	Limits []Limit
}

// Limit is how many attempts of some types may run at once; of all types if it names none.
type Limit struct {
	Name  string
	Max   int
	Types []string
}

func (l *Limit) covers(taskType string) bool {
	return len(l.Types) == 0 || slices.Contains(l.Types, taskType)
}

// Task is one task as the load knows it. All times are of the load's clock, which
// must be that of the NATS servers.
type Task struct {
	// Key is unique; the payload is its JSON string.
	Key         string
	Type        string
	Asked       string // what was asked for, for people
	MaxAttempts int
	Fate        Fate
	ID          string // of an accepted one
	SentAt      time.Time
	AnsweredAt  time.Time
	Grants      []*Grant
	Cancels     []Cancel
}

// Grant is one attempt as a worker received it.
type Grant struct {
	// Worker names the poll that got it, so it is unique among a task's grants.
	Worker string
	TaskID string
	At     time.Time
	// LeaseEnd is until when the attempt is certainly current if no outcome is sent.
	LeaseEnd time.Time
	Outcomes []Outcome
}

// OutcomeKind is what a worker says of its attempt.
type OutcomeKind string

// The outcomes.
const (
	Complete OutcomeKind = "complete"
	Fail     OutcomeKind = "fail"
)

// Outcome is one request of a worker about its attempt.
type Outcome struct {
	Kind       OutcomeKind
	SentAt     time.Time
	AnsweredAt time.Time
	// Code is the verdict; empty if no answer came.
	Code string
	// Result is what a completion brought, unique among all attempts.
	Result string
}

// Cancel is one request to cancel a task.
type Cancel struct {
	SentAt     time.Time
	AnsweredAt time.Time
	// Code is the verdict; empty if no answer came.
	Code string
	// Running: the verdict says that the task was running.
	Running bool
}

// Copy is one record of a finished task, as JetStream holds it.
type Copy struct {
	// Where is the stream and the sequence.
	Where string
	// Letter: it is a dead letter.
	Letter bool
	Record *logv1.Record
}

// codeOK is the verdict of what was done.
const codeOK = "OK"

// heldUntil is until when the worker certainly held the attempt.
func (g *Grant) heldUntil() time.Time {
	end := g.LeaseEnd
	if len(g.Outcomes) > 0 && g.Outcomes[0].SentAt.Before(end) {
		end = g.Outcomes[0].SentAt
	}
	return end
}

// completed tells whether a completion of it was confirmed, and its result.
func (g *Grant) completed() (result string, ok bool) {
	for _, o := range g.Outcomes {
		if o.Kind == Complete && o.Code == codeOK {
			return o.Result, true
		}
	}
	return "", false
}
