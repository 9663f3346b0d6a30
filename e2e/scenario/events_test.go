package scenario_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/events"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// listener is a client that listens to events of a domain.
type listener struct {
	w  *world
	in chan events.Event
}

func (w *world) listen(f events.Filter) *listener {
	w.t.Helper()
	all, err := events.Listen(w.soon(), w.client, f)
	testkit.NoError(w.t, err)
	l := &listener{w, make(chan events.Event, 1000)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e, err := range all.Events(ctx) {
			testkit.Check(w.t, err)
			l.in <- e
		}
	}()
	w.t.Cleanup(func() {
		cancel()
		<-ended
		all.Close()
	})
	return l
}

// next is the next event, if one comes in time.
func (l *listener) next(within time.Duration) (e events.Event, came bool) {
	select {
	case e = <-l.in:
		return e, true
	case <-time.After(within):
		return e, false
	}
}

// wants waits for the next event, which has to be this one.
func (l *listener) wants(kind events.Kind, taskType, id string, state yard.State) events.Event {
	l.w.t.Helper()
	e, _ := l.next(within)
	got := fmt.Sprint(e.Kind, " ", e.Type, " ", e.TaskID, " ", e.Tasklist, " ", e.State)
	equal(l.w.t, "event", got, fmt.Sprint(kind, " ", taskType, " ", id, " ", list, " ", state))
	return e
}

// TestClientsHearWhatBecomesOfTasks: of each task that is late, is stuck or has ended, once. Of another domain, and before the domain has events, of none.
func TestClientsHearWhatBecomesOfTasks(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		other := enter(t, w.stack)
		all, letters, theirs := w.listen(events.Filter{}), w.listen(events.Filter{Kinds: []events.Kind{events.Dead}, Tasklist: list}), other.listen(events.Filter{})
		w.submitOne(&yardv1.NewTask{Type: "before"})
		equal(t, "verdict", w.complete(w.takeOne()), "OK")
		testkit.NoError(t, testkit.Err(w.admin.PutDomain(w.soon(), yard.Domain{Name: w.domain, Events: true, LateAfter: time.Second, StuckAfter: time.Second})))
		w.eventually(func() error { // the owners learn of it a moment later
			id := w.submitOne(&yardv1.NewTask{Type: "probe"})
			equal(t, "verdict", w.cancel(id).Code, "OK")
			e, came := all.next(2 * time.Second)
			if !came {
				return errNothing
			}
			equal(t, "the first event", fmt.Sprint(e.Kind, e.TaskID), fmt.Sprint(events.Finished, id))
			return nil
		})

		id := w.submitOne(&yardv1.NewTask{Type: "mail"})
		late := all.wants(events.Late, "mail", id, yard.StateReady)
		if d := late.At.Sub(taskID(t, id).Time()); d < -time.Minute || d > time.Minute || late.Grants != 0 {
			t.Errorf("it is due %v after its submit, and has %d grants", d, late.Grants)
		}
		p := w.takeOne()
		all.wants(events.Stuck, "mail", id, yard.StateRunning)
		equal(t, "verdict", w.complete(p), "OK")
		all.wants(events.Finished, "mail", id, yard.StateCompleted)

		dead := w.dead(1, "invoice", "network")[0]
		equal(t, "class of error", letters.wants(events.Dead, "invoice", dead, yard.StateDead).ErrorType, "network")
		for kind := events.Kind(""); kind != events.Dead; { // on a slow machine it was late, or stuck
			e, _ := all.next(within)
			testkit.MustEqual(t, "event of", e.TaskID, dead)
			kind = e.Kind
		}

		// What comes twice comes before the next task is late.
		all.wants(events.Late, "last", w.submitOne(&yardv1.NewTask{Type: "last"}), yard.StateReady)
		equal(t, "more dead letters", len(letters.in), 0)
		equal(t, "events of another domain", len(theirs.in), 0)
	})
}
