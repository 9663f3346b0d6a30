// Package hearing is which workers a process hears.
//
// Owns: the roster of the process, for all partitions that it owns, and who learns that workers fell silent.
// Never does: end attempts, or listen by itself. On failure: a sign that breaks a rule is left out.
package hearing

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/roster"
)

// Workers is the roster of a process, for all partitions that it owns, safe for concurrent use. It outlives them, so an
// owner knows what the process heard before.
type Workers struct {
	origin time.Time
	mu     sync.Mutex
	roster *roster.Roster
	// watchers learn that workers fell silent.
	watchers map[int]func()
	watched  int
	// expected holds a token if a worker has become known by Expect.
	expected chan struct{}
}

// New makes the roster of a process that begins to listen.
func New() *Workers {
	return &Workers{origin: time.Now().Add(-time.Second), roster: roster.New(pace.Of(roster.LateMax)), watchers: map[int]func(){}, expected: make(chan struct{}, 1)}
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
	if !s.Valid(pace.Of(roster.EveryMax)) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roster.Heard(domain, s, w.Now())
}

// Next is how long it takes until Fall finds something, if no sign comes before; false: never.
func (w *Workers) Next() (in time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.roster.Next()
	return at - w.Now(), ok
}

// Any reports whether there is a worker that may fall silent, or that has a moment ago.
func (w *Workers) Any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.roster.Any()
}

// SignsEvery is how often a worker gives signs of life while it runs something; 0 = it is not heard.
func (w *Workers) SignsEvery(domain, id string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	every := w.roster.SignsEvery(roster.Key{Domain: domain, ID: id})
	if every > roster.EveryMax { // it runs nothing, and goes by package pace
		return pace.Usual(every)
	}
	return every
}

// Expect takes in that a worker gave signs of life so often to another process.
func (w *Workers) Expect(domain, id string, every time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roster.Expect(roster.Key{Domain: domain, ID: id}, every, w.Now())
	select {
	case w.expected <- struct{}{}:
	default:
	}
}

// Expected is ready when there may be a new worker by Expect.
func (w *Workers) Expected() <-chan struct{} { return w.expected }

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
	watchers := slices.Collect(maps.Values(w.watchers))
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
	for _, learn := range watchers {
		learn()
	}
}

// Watch has learn called, from any goroutine, whenever workers fell silent.
func (w *Workers) Watch(learn func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched++
	number := w.watched
	w.watchers[number] = learn
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.watchers, number)
	}
}

// Fallen are the workers that fell silent a moment ago.
func (w *Workers) Fallen() []roster.Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.roster.Fallen()
}

// List tells of workers of a domain that are heard, but for what they run; ids are theirs.
func (w *Workers) List(req *rpcv1.ListWorkersRequest) (out *rpcv1.ListWorkersResponse, ids []string) {
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
	out = &rpcv1.ListWorkersResponse{More: more, KnownForMs: known.Milliseconds()}
	ids = make([]string, len(page))
	for i := range page {
		one := &page[i]
		ids[i] = one.ID
		out.Workers = append(out.Workers, &yardv1.LiveWorker{
			WorkerId: one.ID, Worker: one.Name, Version: one.Version, Host: one.Host, Tasklists: one.Tasklists,
			RunningForMs: (one.RunningFor + now - one.HeardAt).Milliseconds(), HeardAgoMs: (now - one.HeardAt).Milliseconds(), EveryMs: one.Every.Milliseconds(),
		})
	}
	return out, ids
}
