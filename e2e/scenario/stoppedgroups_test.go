package scenario_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// ofGroup makes n tasks of a group.
func ofGroup(group string, n int) []*yardv1.NewTask {
	return many(n, &yardv1.NewTask{Type: "x", Group: group})
}

// TestAPausedGroupStartsNothing: the pause of one of three groups comes while its tasks wait between those of the others, and under load. From
// when it holds, by the log's own times, none of that group starts until it is resumed, what runs goes on, and the others' tasks end; then all end.
func TestAPausedGroupStartsNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const each = 120
		running := w.submitOne(&yardv1.NewTask{Type: "x", Group: "acme"})
		attempt := w.takeOne()
		equal(t, "running", attempt.TaskId, running)
		all := map[string][]string{}
		submit := func() {
			for range each / 20 {
				for _, group := range []string{"acme", "b", ""} {
					all[group] = append(all[group], w.submit(ofGroup(group, 20)...)...)
				}
			}
		}
		submit()
		w.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "x", func(context.Context, any) (any, error) { return nil, nil })
		}, yard.WithConcurrency(4))
		if p, err := w.client.Pause(w.soon(), yard.OfGroup("acme"), yard.PauseOptions{Reason: "it complains", By: "ann"}); err != nil || p.By != "ann" {
			t.Fatalf("%+v %v", p, err)
		}
		w.startsNothing(&yardv1.NewTask{Type: "probe", Group: "acme"})
		mark := func() int64 { return w.get(w.submitOne(&yardv1.NewTask{Type: "mark", Tasklist: "other"})).CreatedAtMs }
		from := mark()
		submit()
		for _, group := range []string{"b", ""} {
			for _, id := range all[group] {
				want(t, w.ended(id), "completed", "submitted started completed")
			}
		}
		d, err := w.client.DescribeTasklist(w.soon(), list)
		if err != nil || fmt.Sprint(d.PausedGroups) != "[acme]" || d.Ready < each {
			t.Errorf("%+v %v", d, err)
		}
		equal(t, "what runs", w.complete(attempt), "OK")
		to := mark()
		testkit.NoError(t, testkit.Err(w.client.Resume(w.soon(), yard.OfGroup("acme"))))
		for _, id := range all["acme"] {
			want(t, w.ended(id), "completed", "submitted started completed")
			if at := w.started(id); at > from && at < to {
				t.Errorf("a task of the paused group started at %d, between %d and %d", at, from, to)
			}
		}
		equal(t, "the probes", len(w.take(1, "probe")), 1)
	})
}

// TestStopsOfOneGroup: new tasks of a drained group are refused whole, of others accepted; a peek and a list show its tasks only; a purge cancels
// them only, wherever they wait.
func TestStopsOfOneGroup(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		acme, other := w.submit(ofGroup("acme", 5)...), w.submit(ofGroup("other", 5)...)
		delayed := w.submitOne(&yardv1.NewTask{Type: "y", Group: "acme", DelayMs: 3_600_000})
		elsewhere := w.submitOne(&yardv1.NewTask{Type: "x", Group: "acme", Tasklist: "other"})
		w.reach(delayed, "waiting")
		for _, id := range append(append([]string{elsewhere}, acme...), other...) {
			w.reach(id, "ready")
		}
		testkit.NoError(t, testkit.Err(w.client.Drain(w.soon(), yard.OfGroup("acme"), yard.PauseOptions{Reason: "it moves"})))
		w.eventually(func() error {
			_, err := w.handIn(&yardv1.SubmitRequest{Tasklist: list, Tasks: append(ofGroup("other", 1), ofGroup("acme", 1)...)})
			if e := fault.From(err); e == nil || e.Code != fault.FailedPrecondition || e.Path != "/tasks/1/group" {
				return fmt.Errorf("a task of the group is accepted: %v", err)
			}
			return nil
		})
		peek, err := w.client.PeekTasklist(w.soon(), list, yard.PeekOptions{Group: "acme", Limit: 100})
		if err != nil || len(peek.Tasks) != 5 {
			t.Errorf("%d tasks are next: %v", len(peek.Tasks), err)
		}
		for _, next := range peek.Tasks {
			equal(t, "the group of what is next", next.Group, "acme")
		}
		listed, err := w.client.List(w.soon(), yard.Filter{Group: "acme", Limit: 100})
		if err != nil || len(listed) != 7 {
			t.Errorf("%d tasks are listed: %v", len(listed), err)
		}
		purge := func(what string, n int64, p yard.Purged, err error) {
			t.Helper()
			if err != nil || p.Found != n {
				t.Errorf("%s: %+v %v, want %d", what, p, err, n)
			}
		}
		p, err := w.client.Purge(w.soon(), yard.OfTasklist(list), yard.PurgeOptions{Group: "acme", Preview: true})
		purge("of the tasklist", 6, p, err)
		p, err = w.client.Purge(w.soon(), yard.OfType("x"), yard.PurgeOptions{Group: "acme", Preview: true})
		purge("of the type", 6, p, err)
		p, err = w.client.Purge(w.soon(), yard.OfGroup("acme"), yard.PurgeOptions{Tasklist: "other", Reason: "sent twice"})
		purge("of the group in one tasklist", 1, p, err)
		want(t, w.ended(elsewhere), "cancelled", "submitted cancelled")
		p, err = w.client.Purge(w.soon(), yard.OfGroup("acme"), yard.PurgeOptions{By: "ann"})
		purge("of the group", 6, p, err)
		for _, id := range append(acme, delayed) {
			equal(t, "purged", string(w.ended(id).State.String()), "TASK_STATE_CANCELLED")
		}
		for _, id := range other {
			want(t, w.get(id), "ready", "submitted")
		}
		testkit.NoError(t, testkit.Err(w.client.ResumeDrained(w.soon(), yard.OfGroup("acme"))))
		w.eventually(func() error {
			_, err := w.handIn(&yardv1.SubmitRequest{Tasklist: list, Tasks: ofGroup("acme", 1)})
			return err
		})
	})
}

// TestAGroupAtItsCapRefuses: four clients flood a tasklist with tasks of one group up to its cap and are refused, no task too many and
// none too few; other groups, and tasks without one, are accepted; when its tasks have run, the group takes as many again.
func TestAGroupAtItsCapRefuses(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const most = 200
		if l, err := w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, MaxQueuedPerGroup: most}); err != nil || l.MaxQueuedPerGroup != most {
			t.Fatalf("%+v %v", l, err)
		}
		w.counting()
		flood := func(clients int) (accepted, unsure int) {
			return w.fillUp(clients, 3, &yardv1.NewTask{Type: "x", Group: "acme"}, "/tasks/0/group")
		}
		for range 2 {
			n, unsure := flood(4)
			more, again := 0, 0
			w.eventually(func() error { // what is on its way may be counted twice for a moment
				a, u := flood(1)
				if more, again = more+a, again+u; n+more <= most-3 {
					return fmt.Errorf("%d tasks were accepted", n+more)
				}
				return nil
			})
			acceptedWithin(t, n+more, unsure+again, most, 3)
			w.submit(append(ofGroup("other", 50), ofGroup("", 50)...)...)
			drain(w, map[string]bool{}, n+more+100)
		}
	})
}
