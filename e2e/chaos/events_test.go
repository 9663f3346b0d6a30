package chaos_test

import (
	"context"
	"errors"
	"sync"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/events"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// ends is what a client hears of the ends of tasks.
type ends struct {
	load *load
	mu   sync.Mutex
	// states are those that were heard, by task; heard counts them, and repeated those that came twice.
	states          map[string]yard.State
	heard, repeated int
}

// hearsEnds listens from now on until the test ends.
func (l *load) hearsEnds() *ends {
	l.t.Helper()
	h := &ends{load: l, states: map[string]yard.State{}}
	all, err := events.Listen(l.t.Context(), l.client, events.Filter{Kinds: []events.Kind{events.Finished, events.Dead}})
	testkit.NoError(l.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var listening sync.WaitGroup
	listening.Go(func() {
		for e, err := range all.Events(ctx) {
			if errors.Is(err, events.ErrMissed) {
				continue // it is no promise
			}
			testkit.Check(l.t, err)
			h.add(e)
		}
	})
	l.t.Cleanup(func() {
		cancel()
		listening.Wait()
		all.Close()
	})
	return h
}

func (h *ends) add(e events.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.states[e.TaskID] != "" {
		h.repeated++
	}
	h.states[e.TaskID] = e.State
	h.heard++
}

func (h *ends) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.heard
}

// goOn waits until more is heard.
func (h *ends) goOn() {
	h.load.t.Helper()
	before := h.count()
	testkit.Eventually(h.load.t, within, func() error {
		if h.count() == before {
			return errors.New("no event comes")
		}
		return nil
	})
}

// agree checks that no event says of a task what is not so. An event of each end is no promise.
func (h *ends) agree(tasks map[string]*yardv1.Task) {
	h.load.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	silent := 0
	for _, task := range tasks {
		switch said := h.states[task.TaskId]; said {
		case "":
			silent++
		case yard.State(task.State.Name()):
		default:
			h.load.t.Errorf("task %s is %s, an event said %s", task.TaskId, task.State.Name(), said)
		}
	}
	h.load.t.Logf("events of %d ends, %d of them again; %d ends had none", h.heard, h.repeated, silent)
}
