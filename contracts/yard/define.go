package yard

import (
	"context"
	"maps"
	"slices"
)

// Definition is a task type with the Go types of its input and output, so that the side that submits it and the side that runs
// it cannot differ. Make it once, where both sides see it:
//
//	var SendEmail = yard.Define[Email, Receipt]("email.send", "mail")
type Definition[In, Out any] struct {
	task Task
	// fromInput set fields of a task by its input.
	fromInput []func(In, *Task)
}

// TaskOption changes the defaults of Define or Submit.
type TaskOption func(*Task)

// WithTask sets any field of a task, such as its priority, delay or retry policy:
//
//	SendEmail.Submit(ctx, client, email, yard.WithTask(func(t *yard.Task) { t.Priority = 1 }))
func WithTask(change func(*Task)) TaskOption { return change }

// Define names a task type and the tasklist of its tasks. Options apply to all of its tasks. An invalid name is an
// error of Submit and Worker.Run.
func Define[In, Out any](taskType, tasklist string, opts ...TaskOption) *Definition[In, Out] {
	d := &Definition[In, Out]{task: Task{Type: taskType, Tasklist: tasklist}}
	for _, opt := range opts {
		opt(&d.task)
	}
	return d
}

// FromInput returns the definition with fields that follow from the input, such as the group:
//
//	var MakeReport = yard.Define[Report, Link]("report.make", "reports").
//		FromInput(func(in Report, t *yard.Task) { t.Group = in.Customer })
//
// It runs for each task that is made of the definition, after the options of Define and before those of Submit, which so have
// the last word; of several the later runs later. Submits of several goroutines run it at once. The payload is the input,
// whatever it sets. Replace Retry rather than change what it points to: all tasks share it.
func (d *Definition[In, Out]) FromInput(set func(in In, t *Task)) *Definition[In, Out] {
	with := *d
	with.fromInput = append(slices.Clip(d.fromInput), set)
	return &with
}

// Type is the name of the task type.
func (d *Definition[In, Out]) Type() string { return d.task.Type }

// Tasklist is the tasklist of its tasks.
func (d *Definition[In, Out]) Tasklist() string { return d.task.Tasklist }

// Task is one task with this input, for SubmitMany.
func (d *Definition[In, Out]) Task(in In, opts ...TaskOption) Task {
	t := d.task
	if len(d.fromInput)+len(opts) > 0 {
		t.Headers = maps.Clone(t.Headers) // they may change them, and change those of this task only
	}
	for _, set := range d.fromInput {
		set(in, &t)
	}
	for _, opt := range opts {
		opt(&t)
	}
	t.Payload = in
	return t
}

// Submit submits one task, as Client.Submit does.
func (d *Definition[In, Out]) Submit(ctx context.Context, c *Client, in In, opts ...TaskOption) (string, error) {
	return c.Submit(ctx, d.Task(in, opts...))
}

// Run submits a task and waits for its output, as Client.Run does.
func (d *Definition[In, Out]) Run(ctx context.Context, c *Client, in In, opts ...TaskOption) (Out, error) {
	return Run[Out](ctx, c, d.Task(in, opts...))
}

// Wait waits for the output of a task, as Client.Wait does.
func (d *Definition[In, Out]) Wait(ctx context.Context, c *Client, taskID string) (out Out, err error) {
	result, err := c.Wait(ctx, taskID)
	if err != nil {
		return out, err
	}
	return out, result.Decode(&out)
}

// Handle registers the handler of the type with a worker of its tasklist, as the function Handle does.
func (d *Definition[In, Out]) Handle(w *Worker, handle func(context.Context, In) (Out, error), opts ...HandlerOption) {
	Handle(w, d.task.Type, handle, opts...)
}
