package yard

import (
	"context"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// SubmitFunc submits tasks and returns their ids, as SubmitMany does. The tasks are
// the caller's: change a copy, not the task.
type SubmitFunc func(ctx context.Context, tasks []Task) ([]string, error)

// SubmitMiddleware wraps the submits of a client: it sees each call of Submit, Run (one task) and
// SubmitMany (all tasks of the call) once, however often it is repeated. The first one given is the outermost.
type SubmitMiddleware func(next SubmitFunc) SubmitFunc

// WithSubmitMiddleware wraps all submits of the client; of several the first is the outermost. Default: none.
func WithSubmitMiddleware(m ...SubmitMiddleware) ClientOption {
	return func(c *clientConfig) { c.submits = append(c.submits, m...) }
}

// wrapSubmits puts the middleware around the client's own submits, nil where there is none.
func (c *Client) wrapSubmits(middleware []SubmitMiddleware) SubmitFunc {
	if len(middleware) == 0 {
		return nil
	}
	var submit SubmitFunc = func(ctx context.Context, tasks []Task) ([]string, error) {
		if len(tasks) != 1 || tasks[0].Unique != nil || tasks[0].OrderKey != "" || tasks[0].Batch != "" {
			return c.submitMany(ctx, tasks)
		}
		id, err := c.submitOne(ctx, tasks[0])
		if err != nil {
			return nil, err
		}
		return []string{id}, nil
	}
	return around(middleware, submit)
}

// around puts the middleware around submit, the first one outermost.
func around(middleware []SubmitMiddleware, submit SubmitFunc) SubmitFunc {
	for _, m := range slices.Backward(middleware) {
		submit = m(submit)
	}
	return submit
}

// submitWrapped is Submit through the middleware.
func (c *Client) submitWrapped(ctx context.Context, task Task) (string, error) {
	ids, err := c.wrapped(ctx, []Task{task})
	switch {
	case err != nil:
		return "", err
	case len(ids) != 1:
		return "", fault.New(fault.Internal, "the middleware returned %d ids for one task", len(ids))
	}
	return ids[0], nil
}
