package yard

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// SubmitOutcome is what became of one task of a submit. Later versions of the engine may have more; each of them means that the task with
// the id exists, if there is an id.
type SubmitOutcome string

// The outcomes.
const (
	// OutcomeCreated: the task is stored.
	OutcomeCreated SubmitOutcome = "created"
	// OutcomeExisting: nothing is stored; the id is that of the task that has the unique key.
	OutcomeExisting SubmitOutcome = "existing"
	// OutcomeRejected is the same with Unique.Reject.
	OutcomeRejected SubmitOutcome = "rejected"
	// OutcomeReplaced: the task with this id had the unique key, and is the submitted one now. With Unique.Replace.
	OutcomeReplaced SubmitOutcome = "replaced"
	// OutcomeRefused: the task is not stored, and has no id: its batch was closed, or its tasklist or type drained, while other tasks of the request were
	// stored. The submit returns an error then.
	OutcomeRefused SubmitOutcome = "refused"
)

// Submitted is what became of one task.
type Submitted struct {
	ID      string
	Outcome SubmitOutcome
}

// SubmitEach is SubmitMany with what became of each task.
func (c *Client) SubmitEach(ctx context.Context, tasks []Task) ([]Submitted, error) {
	var all []Submitted
	submit := around(c.submits, func(ctx context.Context, tasks []Task) ([]string, error) {
		some, err := c.submitEach(ctx, tasks)
		all = append(all, some...)
		return idsIn(some), err
	})
	ids, err := submit(ctx, tasks)
	if err == nil && len(ids) != len(all) {
		return all, fault.New(fault.Internal, "the middleware returned %d ids for %d tasks", len(ids), len(all))
	}
	return all, err
}

// submitUnique submits one task with a unique key.
func (c *Client) submitUnique(ctx context.Context, task Task) (string, error) {
	all, err := c.SubmitEach(ctx, []Task{task})
	switch {
	case err != nil:
		return "", err
	case len(all) != 1:
		return "", fault.New(fault.Internal, "%d results were answered for one task", len(all))
	case all[0].Outcome == OutcomeRejected:
		return all[0].ID, fault.At(fault.AlreadyExists, taskPath(0)+"/unique_key", "task %s has the key %q", all[0].ID, task.Unique.Key)
	}
	return all[0].ID, nil
}

func idsIn(all []Submitted) []string {
	ids := make([]string, len(all))
	for i, s := range all {
		ids[i] = s.ID
	}
	return ids
}
