package yard

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// LiveWorker is a worker whose signs of life the engine hears (WithSignsOfLife).
type LiveWorker struct {
	// ID is new for each Run. Worker is its identity (WithIdentity), Version that of its program (WithVersion), Host where it runs.
	ID, Worker, Version, Host string
	// Tasklists are those that it polls, 16 at most.
	Tasklists []string
	// RunningFor is for how long it has been running, HeardAgo how long ago its last sign came, Every how often it sends one.
	RunningFor, HeardAgo, Every time.Duration
	// AttemptsCount is how many attempts it has, Attempts are the ten that have been running for the longest.
	AttemptsCount int
	Attempts      []LiveAttempt
	// Drain says that it is drained, or asked to stop; nil: it is not.
	Drain *WorkerDrain
}

// WorkerDrain says that a worker gets no new attempts.
type WorkerDrain struct {
	// Stop: it is to end, too.
	Stop bool
	// Reason is why, at most 256 bytes, and By who did it, at most 128 bytes; for people, also those who read the worker's log.
	Reason, By string
	// Since is when.
	Since time.Time
}

// LiveAttempt is an attempt that a worker runs.
type LiveAttempt struct {
	TaskID, Type, Tasklist string
	RunningFor             time.Duration
}

// LiveWorkers are those of a domain.
type LiveWorkers struct {
	// All are sorted by id.
	All []LiveWorker
	// KnownFor is for how long all nodes of the engine that are asked have listened. Below a minute, workers may be missing.
	KnownFor time.Duration
}

// Workers returns the workers of the domain that are alive, with their attempts. It asks for them page by page, so one that comes or goes meanwhile
// may be missing or included.
func (c *Client) Workers(ctx context.Context) (LiveWorkers, error) {
	var knownFor time.Duration
	all, err := collect(pages(func(cursor string) ([]LiveWorker, string, error) {
		resp, err := c.Wire().ListWorkers(ctx, &yardv1.ListWorkersRequest{Limit: listMax, Cursor: cursor})
		knownFor = milliTime(resp.GetKnownForMs())
		return each(resp.GetWorkers(), liveWorkerOf), resp.GetNextCursor(), err
	}))
	return LiveWorkers{all, knownFor}, err
}

// DrainWorker has a live worker get no new attempts, within a second; what it runs goes on to its end. Reason and By of d may be empty, the rest of d says nothing. It holds
// until the worker is resumed, or has not been heard for 10 minutes; a process that starts again is another worker. It returns the worker, with how many attempts are left. Repeat
// it at will. NOT_FOUND: no worker of the domain with this id (LiveWorker.ID) is heard; only those that send signs of life are. FAILED_PRECONDITION: 1000 workers of the
// domain are drained.
func (c *Client) DrainWorker(ctx context.Context, id string, d WorkerDrain) (LiveWorker, error) {
	resp, err := c.Wire().DrainWorker(ctx, &yardv1.DrainWorkerRequest{WorkerId: id, Reason: d.Reason, By: d.By})
	return liveWorkerOf(resp.GetWorker()), err
}

// StopWorker is DrainWorker, and asks the worker to end: its Run lets handlers finish as if its context had ended, and returns a *StoppedError. A
// worker that has no room for tasks learns of it within 5 s.
func (c *Client) StopWorker(ctx context.Context, id string, d WorkerDrain) (LiveWorker, error) {
	resp, err := c.Wire().StopWorker(ctx, &yardv1.StopWorkerRequest{WorkerId: id, Reason: d.Reason, By: d.By})
	return liveWorkerOf(resp.GetWorker()), err
}

// ResumeWorker has a drained worker get attempts again, within a second, and returns the drain that held. One that has learnt that it is to stop ends all the
// same. NOT_FOUND: it is not drained.
func (c *Client) ResumeWorker(ctx context.Context, id string) (WorkerDrain, error) {
	resp, err := c.Wire().ResumeWorker(ctx, &yardv1.ResumeWorkerRequest{WorkerId: id})
	if err != nil {
		return WorkerDrain{}, err
	}
	return *workerDrainOf(resp.Drain), nil
}

// listMax is the most entries of a page.
const listMax = 1000

func liveWorkerOf(w *yardv1.LiveWorker) LiveWorker {
	one := LiveWorker{
		ID: w.GetWorkerId(), Worker: w.GetWorker(), Version: w.GetVersion(), Host: w.GetHost(), Tasklists: w.GetTasklists(),
		RunningFor: milliTime(w.GetRunningForMs()), HeardAgo: milliTime(w.GetHeardAgoMs()), Every: milliTime(w.GetEveryMs()), AttemptsCount: int(w.GetAttemptsCount()),
	}
	one.Drain = workerDrainOf(w.GetDrain())
	for _, a := range w.GetAttempts() {
		one.Attempts = append(one.Attempts, LiveAttempt{TaskID: a.GetTaskId(), Type: a.GetType(), Tasklist: a.GetTasklist(), RunningFor: milliTime(a.GetRunningForMs())})
	}
	return one
}

func workerDrainOf(d *yardv1.WorkerDrain) *WorkerDrain {
	if d == nil {
		return nil
	}
	return &WorkerDrain{Stop: d.Stop, Reason: d.Reason, By: d.By, Since: time.UnixMilli(d.SinceMs)}
}
