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

// Workers tells which workers of the domain are alive, and what they run. It asks for them page by page, so one that comes or goes meanwhile
// may be missing or included.
func (c *Client) Workers(ctx context.Context) (LiveWorkers, error) {
	var found LiveWorkers
	for w, err := range pages(func(cursor string) ([]*yardv1.LiveWorker, string, error) {
		resp, err := c.Wire().ListWorkers(ctx, &yardv1.ListWorkersRequest{Limit: listMax, Cursor: cursor})
		found.KnownFor = milliTime(resp.GetKnownForMs())
		return resp.GetWorkers(), resp.GetNextCursor(), err
	}) {
		if err != nil {
			return LiveWorkers{}, err
		}
		found.All = append(found.All, liveWorkerOf(w))
	}
	return found, nil
}

// listMax is the most entries of a page.
const listMax = 1000

func liveWorkerOf(w *yardv1.LiveWorker) LiveWorker {
	one := LiveWorker{
		ID: w.GetWorkerId(), Worker: w.GetWorker(), Version: w.GetVersion(), Host: w.GetHost(), Tasklists: w.GetTasklists(),
		RunningFor: milliTime(w.GetRunningForMs()), HeardAgo: milliTime(w.GetHeardAgoMs()), Every: milliTime(w.GetEveryMs()), AttemptsCount: int(w.GetAttemptsCount()),
	}
	for _, a := range w.GetAttempts() {
		one.Attempts = append(one.Attempts, LiveAttempt{TaskID: a.GetTaskId(), Type: a.GetType(), Tasklist: a.GetTasklist(), RunningFor: milliTime(a.GetRunningForMs())})
	}
	return one
}
