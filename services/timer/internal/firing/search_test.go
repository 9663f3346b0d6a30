package firing_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/ahead"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/turns"
)

// heldStore gives its first two messages to no one until it is let, and counts how often they are asked for.
type heldStore struct {
	firing.Store
	let   chan struct{}
	reads atomic.Int64
}

func (s *heldStore) Get(ctx context.Context, seq uint64) ([]byte, error) {
	if seq > 2 {
		return s.Store.Get(ctx, seq)
	}
	s.reads.Add(1)
	<-s.let
	return s.Store.Get(context.WithoutCancel(ctx), seq)
}

// ownHeld starts an owner with such a store; let lets it, at the latest at the end of the test.
func (w *world) ownHeld() (held *heldStore, r *running, let func()) {
	w.tb.Helper()
	held = &heldStore{let: make(chan struct{})}
	r = w.own(func(d *firing.Deps) {
		held.Store = d.Store
		d.Store = held
	})
	let = sync.OnceFunc(func() { close(held.let) })
	w.tb.Cleanup(let)
	return held, r, let
}

// slowStore takes longer for a message than a search goes on.
type slowStore struct{ firing.Store }

func (s slowStore) Get(ctx context.Context, seq uint64) ([]byte, error) {
	select {
	case <-time.After(150 * time.Millisecond):
	case <-ctx.Done():
	}
	return s.Store.Get(ctx, seq)
}

func all(domain string) firing.Filter {
	return firing.Filter{Domain: domain, First: true, Retry: true, Limit: 10_000}
}

func none([][]byte) (bool, error) { return false, nil }

func ofBank(_ int, r *logv1.Record) { r.Domain = "bank" }

// TestI14_SearchesGoOneAfterTheOther: of a domain that searches without end one goes on at a time, a few wait, and the others are
// refused at once. Meanwhile another domain's tasks are counted, found and fired, and its search has the next turn.
func TestI14_SearchesGoOneAfterTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held, r, let := w.ownHeld()
	w.park(10, time.Now().Add(2*time.Minute))
	w.park(10, time.Now().Add(3*time.Minute))
	waits(t, r, 20)

	const floods = 50
	var searches sync.WaitGroup
	var refused, ended atomic.Int64
	search := func(domain string, failed func(error)) {
		searches.Go(func() {
			if _, _, err := r.List(t.Context(), all(domain), none); err != nil {
				failed(err)
			}
			ended.Add(1)
		})
	}
	for range floods {
		search("shop", func(err error) {
			if !errors.Is(err, turns.ErrBusy) {
				t.Error(err)
			}
			refused.Add(1)
		})
	}
	testkit.Eventually(t, soon, func() error {
		if n := refused.Load(); n != floods-5 || held.reads.Load() != 2 {
			return fmt.Errorf("%d refused, %d messages asked for", n, held.reads.Load())
		}
		return nil
	})
	soonDue, late := w.park(1, time.Now(), ofBank), w.park(2, time.Now().Add(2*time.Minute), ofBank)
	if _, err := r.Tasklists(t.Context(), "shop", "", 9); !errors.Is(err, turns.ErrBusy) {
		t.Errorf("a list of tasklists: %v", err)
	}
	if _, err := (firing.Ahead{Owner: r.Owner}).Count(t.Context(), ahead.New(ahead.Question{Domain: "shop", Until: 1, Width: 1})); !errors.Is(err, turns.ErrBusy) {
		t.Errorf("a count by due time: %v", err)
	}
	if _, _, err := (firing.Ahead{Owner: r.Owner}).List(t.Context(), all("shop"), firing.DueRange{Until: 1}, nil); !errors.Is(err, turns.ErrBusy) {
		t.Errorf("a list by due time: %v", err)
	}
	for _, tasklist := range []string{"mail", ""} {
		if n, err := r.Waiting(t.Context(), "shop", tasklist); err != nil || n != 20 {
			t.Errorf("%d wait in %q: %v", n, tasklist, err)
		}
	}
	if at, err := r.Locate(t.Context(), ids.TaskID(late[0].Id), "bank"); err != nil || at.Record == nil {
		t.Errorf("another's task: %+v, %v", at, err)
	}
	if a, err := r.FireEarly(t.Context(), []due.Wanted{{ID: ids.TaskID(soonDue[0].Id), Domain: "bank"}}); err != nil || len(a.Coming)+len(a.Fired) != 1 {
		t.Errorf("a call by another: %+v, %v", a, err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := r.List(gone, all("bank"), none); !errors.Is(err, context.Canceled) {
		t.Errorf("who waits no longer: %v", err)
	}
	w.eachOnce(soonDue)
	search("bank", func(err error) { t.Error(err) })
	testkit.Equal(t, "messages were asked for in one turn", held.reads.Load(), 2)
	let()
	searches.Wait()
	if n := held.reads.Load(); ended.Load() != floods+1 || n != 2*5 {
		t.Errorf("%d ended, %d messages were asked for", ended.Load(), n)
	}
}

// TestASearchThatTakesLongGoesOnFromItsEnd: it hands out something, however slow the store is, and where it stops the next one goes on.
func TestASearchThatTakesLongGoesOnFromItsEnd(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for tasks to be due, or for answers that do not come")
	w := newWorld(t)
	r := w.own(func(d *firing.Deps) { d.Store = slowStore{d.Store} })
	const tasks = 2500
	for range tasks / 500 {
		w.park(500, time.Now().Add(2*time.Minute))
	}
	waits(t, r, tasks)
	f, found, steps := all("shop"), 0, 0
	for more := true; more; steps++ {
		step := 0
		var err error
		f.Before, more, err = r.List(t.Context(), f, func(records [][]byte) (bool, error) {
			step += len(records)
			return false, nil
		})
		testkit.NoError(t, err)
		if found += step; step == 0 || step >= tasks {
			t.Fatalf("%d of %d in a step, more %v", step, tasks, more)
		}
	}
	if found != tasks {
		t.Errorf("%d of %d in %d steps", found, tasks, steps)
	}
}

// TestAListEndsBehindWhatIsGone: the next page goes on behind tasks that were found and are no longer stored.
func TestAListEndsBehindWhatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.own(func(d *firing.Deps) { d.Store = onlyFirst{d.Store} })
	w.park(3, time.Now().Add(2*time.Minute))
	w.park(3, time.Now().Add(2*time.Minute))
	waits(t, r, 6)
	f := all("shop")
	f.Limit = 3
	var pages []int
	for more := true; more; {
		n := 0
		var err error
		f.Before, more, err = r.List(t.Context(), f, func(records [][]byte) (bool, error) {
			n += len(records)
			return false, nil
		})
		testkit.NoError(t, err)
		pages = append(pages, n)
	}
	if len(pages) != 3 || pages[0] != 0 || pages[1] != 3 || pages[2] != 0 {
		t.Errorf("pages of %v", pages)
	}
}

// onlyFirst has lost all but its first message.
type onlyFirst struct{ firing.Store }

func (s onlyFirst) Get(ctx context.Context, seq uint64) ([]byte, error) {
	if seq > 1 {
		return nil, firing.ErrGone
	}
	return s.Store.Get(ctx, seq)
}
