package yard

import (
	"context"
	"iter"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Wire is the API as it is on the wire, for programs with their own loop instead of a Worker, or that show answers
// unchanged. Its messages are those of package gen/yardv1, and nothing is done per task. Its methods repeat what is safe to repeat,
// as the Client's do.
type Wire struct{ c *Client }

// Wire is the low-level API of the client's domain, on the same connection.
func (c *Client) Wire() Wire { return Wire{c} }

// Poll asks for tasks once and returns them, none if the wait ended without
// work. It does not retry.
//
// Where ctx ends first, the poll takes back its interest in the answer, and
// returns the tasks, without an error, if they had come by then: the caller must
// run them or hand them back (Fail with not_started). An answer after that finds
// no one, and the engine hands its tasks to others by itself.
func (w Wire) Poll(ctx context.Context, req *yardv1.PollRequest) ([]*yardv1.PolledTask, error) {
	resp, err := w.c.poll(ctx, req)
	return resp.GetTasks(), err
}

// Complete reports up to 1000 attempts that succeeded and returns the verdict
// of each, in order. One request, repeated while no one takes it and until ctx
// ends; verdicts with code UNKNOWN are the caller's to repeat. Keep a request
// below the server's largest message (1 MiB by default).
func (w Wire) Complete(ctx context.Context, tasks []*yardv1.Completion) ([]*yardv1.Verdict, error) {
	return w.c.outcome(ctx, "tasks.complete", &yardv1.CompleteRequest{Tasks: tasks}, len(tasks))
}

// Fail reports up to 1000 attempts that failed, or hands them back with
// not_started. Otherwise it is like Complete.
func (w Wire) Fail(ctx context.Context, tasks []*yardv1.Failure) ([]*yardv1.Verdict, error) {
	return w.c.outcome(ctx, "tasks.fail", &yardv1.FailRequest{Tasks: tasks}, len(tasks))
}

// Heartbeat is a sign of life of up to 1000 attempts. A verdict with
// cancel_requested asks the worker to stop. Otherwise it is like Complete.
func (w Wire) Heartbeat(ctx context.Context, tasks []*yardv1.Beat) ([]*yardv1.Verdict, error) {
	return w.c.outcome(ctx, "tasks.heartbeat", &yardv1.HeartbeatRequest{Tasks: tasks}, len(tasks))
}

// Cancel is Client.Cancel in one request, with the engine's verdict for each task, in order.
func (w Wire) Cancel(ctx context.Context, req *yardv1.CancelRequest) ([]*yardv1.Verdict, error) {
	return w.c.outcome(ctx, "tasks.cancel", req, len(req.TaskIds))
}

// Update changes up to 100 tasks in one request, with the engine's verdict for each, in order. Without a request_id it repeats the request until
// each task has a verdict; with one it is a single try, which the caller counts in tries.
func (w Wire) Update(ctx context.Context, req *yardv1.UpdateRequest) ([]*yardv1.Verdict, error) {
	if req.RequestId == "" {
		return w.c.update(ctx, req.Tasks)
	}
	return w.c.outcomeOnce(ctx, "tasks.update", req, len(req.Tasks))
}

// SubmitOnce is a single try of a submit. The caller names the request, counts its tries, and repeats it.
func (w Wire) SubmitOnce(ctx context.Context, req *yardv1.SubmitRequest) (*yardv1.SubmitResponse, error) {
	return callOnce[yardv1.SubmitResponse](ctx, &w.c.transport, w.c.subject("tasks.submit"), req)
}

// Get returns a task with its whole history, or NOT_FOUND.
func (w Wire) Get(ctx context.Context, taskID string) (*yardv1.Task, error) {
	resp, err := call[yardv1.GetResponse](ctx, &w.c.transport, w.c.subject("tasks.get"), &yardv1.GetRequest{TaskId: taskID})
	return resp.GetTask(), err
}

// List returns one page of tasks.
func (w Wire) List(ctx context.Context, filter *yardv1.ListRequest) (*yardv1.ListResponse, error) {
	return call[yardv1.ListResponse](ctx, &w.c.transport, w.c.subject("tasks.list"), filter)
}

// Tasks yields the tasks of all pages from filter's cursor on, as Client.Tasks does. A nil filter matches all.
func (w Wire) Tasks(ctx context.Context, filter *yardv1.ListRequest) iter.Seq2[*yardv1.Task, error] {
	return pages(func(cursor string) ([]*yardv1.Task, string, error) {
		req := &yardv1.ListRequest{}
		if filter != nil {
			req = filter.CloneVT()
		}
		if cursor != "" {
			req.Cursor = cursor
		}
		resp, err := w.List(ctx, req)
		return resp.GetTasks(), resp.GetNextCursor(), err
	})
}

// DescribeTasklist counts the tasks of a tasklist.
func (w Wire) DescribeTasklist(ctx context.Context, tasklist string) (*yardv1.DescribeTasklistResponse, error) {
	req := &yardv1.DescribeTasklistRequest{Tasklist: tasklist}
	return call[yardv1.DescribeTasklistResponse](ctx, &w.c.transport, w.c.subject("tasklists.describe"), req)
}

// TasklistPollers returns one page of the workers that polled a tasklist.
func (w Wire) TasklistPollers(ctx context.Context, req *yardv1.TasklistPollersRequest) (*yardv1.TasklistPollersResponse, error) {
	return call[yardv1.TasklistPollersResponse](ctx, &w.c.transport, w.c.subject("tasklists.pollers"), req)
}

// ListWorkers returns one page of the workers that are alive.
func (w Wire) ListWorkers(ctx context.Context, req *yardv1.ListWorkersRequest) (*yardv1.ListWorkersResponse, error) {
	return call[yardv1.ListWorkersResponse](ctx, &w.c.transport, w.c.subject("workers.list"), req)
}

// DrainWorker has a worker get no new attempts.
func (w Wire) DrainWorker(ctx context.Context, req *yardv1.DrainWorkerRequest) (*yardv1.DrainWorkerResponse, error) {
	return call[yardv1.DrainWorkerResponse](ctx, &w.c.transport, w.c.subject("workers.drain"), req)
}

// StopWorker drains a worker and asks it to end.
func (w Wire) StopWorker(ctx context.Context, req *yardv1.StopWorkerRequest) (*yardv1.StopWorkerResponse, error) {
	return call[yardv1.StopWorkerResponse](ctx, &w.c.transport, w.c.subject("workers.stop"), req)
}

// ResumeWorker ends the drain of a worker.
func (w Wire) ResumeWorker(ctx context.Context, req *yardv1.ResumeWorkerRequest) (*yardv1.ResumeWorkerResponse, error) {
	return call[yardv1.ResumeWorkerResponse](ctx, &w.c.transport, w.c.subject("workers.resume"), req)
}

// TopLimits returns the use of limits.
func (w Wire) TopLimits(ctx context.Context, req *yardv1.TopLimitsRequest) (*yardv1.TopLimitsResponse, error) {
	return call[yardv1.TopLimitsResponse](ctx, &w.c.transport, w.c.subject("limits.top"), req)
}

// PeekTasklist shows the ready tasks of a tasklist in the order in which they are to start.
func (w Wire) PeekTasklist(ctx context.Context, req *yardv1.PeekTasklistRequest) (*yardv1.PeekTasklistResponse, error) {
	return call[yardv1.PeekTasklistResponse](ctx, &w.c.transport, w.c.subject("tasklists.peek"), req)
}

// Call sends a request of a verb of the client's domain, such as "schedules.get", and returns its answer. It repeats the request, which has to have the same
// effect twice, as the Client's methods do.
func Call[Resp any, P interface {
	*Resp
	codec.Message
}](ctx context.Context, c *Client, verb string, req codec.Message) (P, error) {
	return call[Resp, P](ctx, &c.transport, c.subject(verb), req)
}

// CallAdmin is Call for an administrative verb, such as "domains.audit".
func CallAdmin[Resp any, P interface {
	*Resp
	codec.Message
}](ctx context.Context, a *Admin, verb string, req codec.Message) (P, error) {
	return call[Resp, P](ctx, &a.transport, topology.Admin(verb), req)
}
