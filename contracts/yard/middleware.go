package yard

import (
	"context"
	"slices"
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

// submitPlain is what the middleware wraps. One task goes together with those of other callers, if it may.
func (c *Client) submitPlain(ctx context.Context, tasks []Task) ([]string, error) {
	if len(tasks) != 1 || tasks[0].Unique != nil || tasks[0].OrderKey != "" || tasks[0].Batch != "" {
		all, err := c.submitEach(ctx, tasks)
		return idsIn(all), err
	}
	id, err := c.submitOne(ctx, tasks[0])
	if err != nil {
		return nil, err
	}
	return []string{id}, nil
}

// wrap puts middleware around what submits, or runs, tasks, the first one outermost.
func wrap[F any, M ~func(F) F](inner F, middleware []M) F {
	for _, m := range slices.Backward(middleware) {
		inner = m(inner)
	}
	return inner
}
