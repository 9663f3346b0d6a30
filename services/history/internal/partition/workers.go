package partition

import (
	"context"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/roster"
	"github.com/yardmaster-io/yardmaster/shared/paging"
)

// workerAttemptsMax is how many attempts of a worker are listed.
const workerAttemptsMax = 10

// Workers is the roster of a process, for all partitions that it owns, safe for concurrent use. It outlives them, so an owner knows
// what the process heard before.
type Workers struct {
	origin time.Time
	mu     sync.Mutex
	roster *roster.Roster
	// watchers learn that workers fell silent.
	watchers map[*Owner]struct{}
}

// NewWorkers makes the roster of a process that begins to listen.
func NewWorkers() *Workers {
	return &Workers{origin: time.Now().Add(-time.Second), roster: roster.New(), watchers: map[*Owner]struct{}{}}
}

// Now is the roster's clock.
func (w *Workers) Now() time.Duration { return time.Since(w.origin) }

// Heard takes in a sign of life that came for a domain. One that breaks a rule is left out.
func (w *Workers) Heard(domain string, data []byte) {
	w.mu.Lock()
	passes := w.roster.Passes(domain, len(data), w.Now())
	w.mu.Unlock()
	if !passes {
		return
	}
	m := &yardv1.WorkerAlive{}
	if codec.Unmarshal(codec.JSON, data, m) != nil {
		return
	}
	s := &roster.Sign{
		ID: m.WorkerId, Name: m.Worker, Version: m.Version, Host: m.Host, Tasklists: m.Tasklists, Leaving: m.Leaving,
		Every: time.Duration(m.EveryMs) * time.Millisecond, RunningFor: time.Duration(m.RunningForMs) * time.Millisecond,
	}
	if !s.Valid() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roster.Heard(domain, s, w.Now())
}

// Listens takes in a message of the process to itself, which it sent at a time of Now.
func (w *Workers) Listens(number uint64, sentAt time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roster.Listens(number, sentAt, w.Now())
}

// Deaf takes in that signs may have been lost.
func (w *Workers) Deaf() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roster.Deaf(w.Now())
}

// Fall looks who is silent by now. Tell is called with all that fell silent a moment ago, if there are any, and whether there are
// fresh ones. Owners learn of these afterwards, since their polls must end before their tasks are ready again.
func (w *Workers) Fall(tell func(all *rpcv1.Silent, fresh bool)) {
	w.mu.Lock()
	found, fallen := w.roster.Fall(w.Now()), w.roster.Fallen()
	var watchers []*Owner
	for o := range w.watchers {
		watchers = append(watchers, o)
	}
	w.mu.Unlock()
	if len(fallen) == 0 {
		return
	}
	m := &rpcv1.Silent{}
	for _, k := range fallen {
		m.Workers = append(m.Workers, &rpcv1.SilentWorker{Domain: k.Domain, WorkerId: k.ID})
	}
	tell(m, found > 0)
	if found == 0 {
		return // owners look for themselves
	}
	for _, o := range watchers {
		o.post(o.work, o.endSilent)
	}
}

func (w *Workers) watch(o *Owner) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watchers[o] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.watchers, o)
	}
}

func (w *Workers) fallen() []roster.Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.roster.Fallen()
}

// endSilent has the attempts end of workers that fell silent.
func (o *Owner) endSilent() {
	fallen := o.Workers.fallen()
	if len(fallen) == 0 {
		return
	}
	in := replica.Silent{Workers: make([]replica.WorkerKey, len(fallen))}
	for i, k := range fallen {
		in.Workers[i] = replica.WorkerKey(k)
	}
	o.step(in)
}

// ListWorkers tells of workers of a domain that are heard, and what they run here.
func (o *Owner) ListWorkers(ctx context.Context, req *rpcv1.ListWorkersRequest) (*rpcv1.ListWorkersResponse, error) {
	w := o.Workers
	w.mu.Lock()
	now := w.Now()
	var page []roster.Worker
	more := false
	if len(req.WorkerIds) > 0 {
		page = w.roster.These(req.Domain, req.WorkerIds)
	} else {
		page, more = w.roster.List(req.Domain, req.After, int(req.Limit))
	}
	known := w.roster.KnownFor(now)
	w.mu.Unlock()
	out := &rpcv1.ListWorkersResponse{More: more, KnownForMs: known.Milliseconds()}
	ids := make([]string, len(page))
	for i := range page {
		one := &page[i]
		ids[i] = one.ID
		out.Workers = append(out.Workers, &yardv1.LiveWorker{
			WorkerId: one.ID, Worker: one.Name, Version: one.Version, Host: one.Host, Tasklists: one.Tasklists,
			RunningForMs: (one.RunningFor + now - one.HeardAt).Milliseconds(), HeardAgoMs: (now - one.HeardAt).Milliseconds(), EveryMs: one.Every.Milliseconds(),
		})
	}
	err := o.look(ctx, req.Domain, func() {
		runs, at := o.core.WorkersRun(req.Domain, ids, workerAttemptsMax), o.now().MS
		for _, one := range out.Workers {
			one.AttemptsCount = runs[one.WorkerId].Count
			for _, e := range runs[one.WorkerId].Oldest {
				one.Attempts = append(one.Attempts, &yardv1.LiveAttempt{
					TaskId: e.ID.String(), Type: e.Type, Tasklist: e.Tasklist, RunningForMs: max(0, at-e.Attempt.StartedAt),
				})
			}
		}
	})
	if err != nil {
		return nil, err
	}
	cut := false
	out.Workers, cut = paging.Cut(out.Workers, int(req.Limit), paging.BytesMax, (*yardv1.LiveWorker).SizeVT)
	out.More = out.More || cut
	return out, nil
}
