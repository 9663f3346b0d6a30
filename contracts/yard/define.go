package yard

import "context"

// Definition is a task type with the Go types of its input and output, so that who submits it and who runs it cannot
// differ. Make it once, where both sides see it:
//
//	var SendEmail = yard.Define[Email, Receipt]("email.send", "mail")
type Definition[In, Out any] struct {
	task Task
}

// TaskOption changes what Define or Submit take for a task.
type TaskOption func(*Task)

// WithTask sets anything of a task, such as its priority, delay or retry policy:
//
//	SendEmail.Submit(ctx, client, email, yard.WithTask(func(t *yard.Task) { t.Priority = 1 }))
func WithTask(change func(*Task)) TaskOption { return change }

// Define names a task type and the tasklist on which its tasks queue. Options hold for all of its tasks. What is wrong
// with a name is returned by Submit and Worker.Run.
func Define[In, Out any](taskType, tasklist string, opts ...TaskOption) *Definition[In, Out] {
	d := &Definition[In, Out]{task: Task{Type: taskType, Tasklist: tasklist}}
	for _, opt := range opts {
		opt(&d.task)
	}
	return d
}

// Type is the name of the task type.
func (d *Definition[In, Out]) Type() string { return d.task.Type }

// Tasklist is where its tasks queue.
func (d *Definition[In, Out]) Tasklist() string { return d.task.Tasklist }

// Task is one task with this input, for SubmitMany.
func (d *Definition[In, Out]) Task(in In, opts ...TaskOption) Task {
	t := d.task
	for _, opt := range opts {
		opt(&t)
	}
	t.Payload = in
	return t
}

// Submit hands in one task, as Client.Submit does.
func (d *Definition[In, Out]) Submit(ctx context.Context, c *Client, in In, opts ...TaskOption) (string, error) {
	return c.Submit(ctx, d.Task(in, opts...))
}

// Run hands in a task and waits for its output, as Client.Run does.
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
