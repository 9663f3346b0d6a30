package linear

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// never is the answer's time of what has none.
const never = math.MaxInt64

// call is one entry of a history.
type call struct {
	in       input
	out      output
	from, to int64 // ns since the history began
	by       int   // client
}

// history is what all clients asked and heard. Its methods may be called by several goroutines.
type history struct {
	began time.Time

	mu    sync.Mutex
	calls []call
	// keys are the unique keys of tasks, as far as they are known; a task without one has "".
	keys map[string]string
	// polls are when each poll began, by the name that its worker had.
	polls map[string]int64
	// submits are those that are not known to have made a task, by the time in their ids, Unix ms.
	submits map[int64]call
	lastMS  int64
	// counts are calls by kind and answer.
	counts map[string]int
}

func newHistory() *history {
	return &history{began: time.Now(), keys: map[string]string{}, polls: map[string]int64{}, submits: map[int64]call{}, counts: map[string]int{}}
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

// instant is a time for the id of a request, each a millisecond after the one before: so a task's id names the submit that made it.
func (h *history) instant() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastMS = max(h.lastMS+1, time.Now().UnixMilli())
	return time.UnixMilli(h.lastMS)
}

func (h *history) poll(worker string) (from int64) {
	from = h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.polls[worker] = from
	return from
}

func (h *history) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.calls)
}

func (h *history) count(k kind, what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[string(k)+" "+what]++
}

// add writes a call down that has its answer now. What was refused, so that it did not happen, is counted and no more.
func (h *history) add(c call) {
	c.to = h.now()
	h.count(c.in.kind, c.out.code)
	all := []call{c}
	switch fault.Code(c.out.code) {
	case fault.Unknown:
		all[0].to = never
	case fault.Unavailable, fault.ResourceExhausted:
		return
	}
	if c.maybeTwice() {
		all = append(all, c)
		all[0].out = output{code: string(fault.Unknown)}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, all...)
}

// maybeTwice tells whether a call may have been made before it was answered: a frontend sends again what gets no verdict, and the answer may be
// the second one's.
func (c call) maybeTwice() bool {
	switch c.in.kind {
	case fail: // the next attempt has begun since
		return c.out.code == string(fault.Stale)
	case cancel: // the worker was asked to stop, and its task has ended since
		return c.out.code != string(fault.Unknown) && !c.out.stopping
	case update: // the task is a dead letter, and comes back before the copy
		return c.out.code == string(fault.FailedPrecondition)
	}
	return false
}

// submitted is add for a submit whose id has this time.
func (h *history) submitted(c call, at time.Time) {
	if c.out.code != created {
		h.mu.Lock()
		h.submits[at.UnixMilli()] = c
		h.mu.Unlock()
	}
	if c.out.task != "" {
		h.mu.Lock()
		h.keys[c.out.task] = c.in.key
		h.mu.Unlock()
	}
	h.add(c)
}

// partition is which of the lives a call is about.
func (h *history) partition(c call) string {
	if c.in.key != "" {
		return "key " + c.in.key
	}
	id := cmp.Or(c.in.task, c.out.task)
	if key := h.keys[id]; key != "" {
		return "key " + key
	}
	return "task " + id
}

// lives are the calls of each key, and of each task without one.
func (h *history) lives() map[string][]porcupine.Operation {
	all := map[string][]porcupine.Operation{}
	for _, c := range h.calls {
		if c.in.kind == submit && c.in.key == "" && c.out.task == "" {
			continue // it made nothing that is known
		}
		p := h.partition(c)
		all[p] = append(all[p], porcupine.Operation{ClientId: c.by, Input: c.in, Call: c.from, Output: c.out, Return: c.to})
	}
	for _, ops := range all {
		slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	}
	return all
}
