package yard

import (
	"context"
	"sync"
)

// unreportedMax bounds the outcomes that wait for their verdicts, so that memory
// is bounded while a part of the engine is away.
const unreportedMax = 10_000

// slots counts what a worker holds: slots reserved by polls, handlers that run,
// outcomes not yet reported. The first two together never exceed the concurrency.
type slots struct {
	mu         sync.Mutex
	free       int
	running    int
	unreported int
	// changed tells those that wait.
	changed *sync.Cond
}

func newSlots(n int) *slots {
	s := &slots{free: n}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// reserve waits for free slots and takes up to n. It returns 0 when ctx has ended.
func (s *slots) reserve(ctx context.Context, n int) int {
	got := 0
	s.await(ctx, func() bool {
		got = min(n, s.available())
		s.free -= got
		return got > 0
	})
	return got
}

// available is how many slots a poll may take. The caller holds the lock.
func (s *slots) available() int {
	if s.unreported >= unreportedMax {
		return 0
	}
	return s.free
}

// cancel gives n reserved slots back.
func (s *slots) cancel(n int) { s.change(func() { s.free += n }) }

// start turns a reserved slot into a running handler.
func (s *slots) start() { s.change(func() { s.running++ }) }

// finish ends a running handler and frees its slot. If it has an outcome,
// that was counted by expectOutcome before.
func (s *slots) finish() { s.change(func() { s.running--; s.free++ }) }

// expectOutcome counts one more outcome to report.
func (s *slots) expectOutcome() { s.change(func() { s.unreported++ }) }

// reported counts n outcomes as reported.
func (s *slots) reported(n int) { s.change(func() { s.unreported -= n }) }

// idle waits until no handler runs.
func (s *slots) idle(ctx context.Context) { s.await(ctx, func() bool { return s.running == 0 }) }

// allReported waits until no outcome waits.
func (s *slots) allReported(ctx context.Context) {
	s.await(ctx, func() bool { return s.unreported == 0 })
}

// left returns how many handlers run and how many outcomes wait.
func (s *slots) left() (running, unreported int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running, s.unreported
}

func (s *slots) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.changed.Broadcast()
}

// wake has those look again that wait.
func (s *slots) wake() { s.change(func() {}) }

// await calls done, under the lock, until it returns true or ctx ends.
func (s *slots) await(ctx context.Context, done func() bool) {
	defer context.AfterFunc(ctx, s.wake)()
	s.mu.Lock()
	defer s.mu.Unlock()
	for ctx.Err() == nil && !done() {
		s.changed.Wait()
	}
}
