package scenario_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestDomainsBeyondOneMessage (R9): all domains together are more than one message, and lists of
// them come page by page, each once, by name.
func TestDomainsBeyondOneMessage(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "floods the system for half a minute and more")
	s := own(t, stack.Config{Tables: stack.TablesMemory, Sync: "2m", Partitioning: topology.Partitioning{History: 1, Matching: 1}})
	w := enter(t, s)
	const domains = 1300
	for i := range domains {
		d := yard.Domain{Name: fmt.Sprintf("t%04d", i), Description: strings.Repeat("ä", 512)}
		testkit.NoError(t, testkit.Err(w.admin.PutDomain(w.soon(), d)))
	}
	all, err := w.admin.ListDomains(w.soon())
	testkit.NoError(t, err)
	if len(all) != domains+1 || !slices.IsSortedFunc(all, func(a, b yard.Domain) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("%d domains", len(all))
	}
	first := must[yardv1.ListDomainsResponse](&world{t: t, nc: w.operator, domain: topology.ReservedDomain}, "domains.list", &yardv1.ListDomainsRequest{Limit: 2})
	equal(t, "domains on a page of two", len(first.Domains), 2)
	equal(t, "its cursor", first.NextCursor, first.Domains[1].Name)
}

// TestTasksArePaged (R9): tasks in history, in the timer store and in the archive are on one
// list, whose pages hold each once. Those that are not due soon come last.
func TestTasksArePaged(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var ids, later []string
		for i := range 30 {
			if i%3 == 0 {
				later = append(later, w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 3_600_000}))
			} else {
				ids = append(ids, w.submitOne(&yardv1.NewTask{Type: "x"}))
			}
		}
		equal(t, "complete", w.complete(w.take(10)...), strings.TrimSpace(strings.Repeat("OK ", 10)))
		slices.Sort(ids)
		slices.Reverse(ids)
		slices.Sort(later)
		w.eventually(func() error { // the delayed ones are parked, the completed ones filed a moment later
			var seen []string
			for task, err := range w.client.Wire().Tasks(w.soon(), &yardv1.ListRequest{Limit: 7}) {
				if err != nil {
					return err
				}
				seen = append(seen, task.TaskId)
			}
			if soon := min(len(ids), len(seen)); !slices.Equal(seen[:soon], ids) || !slices.Equal(slices.Sorted(slices.Values(seen[soon:])), later) {
				return fmt.Errorf("%d of %d tasks, or in another order: %v", len(seen), len(ids), seen)
			}
			return nil
		})
		waiting := 0
		for task, err := range w.client.Wire().Tasks(w.soon(), &yardv1.ListRequest{Limit: 3, States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_WAITING}}) {
			if err != nil || stateOf(task) != "waiting" {
				t.Fatalf("%v: %v", task, err)
			}
			waiting++
		}
		equal(t, "tasks that wait", waiting, 10)
	})
}

// TestALimitGoesWithItsType (R9): a deleted type's limit is gone at every shard; tasks of it go on.
func TestALimitGoesWithItsType(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.putType(yard.TaskType{Name: "x", MaxConcurrency: 1})
		for range 3 {
			w.submitOne(&yardv1.NewTask{Type: "x"})
		}
		first := w.takeOne()
		w.nothing(list)
		testkit.NoError(t, testkit.Err(w.client.DeleteType(w.soon(), "x", 0)))
		rest := w.take(2)
		equal(t, "complete", w.complete(append(rest, first)...), "OK OK OK")
		_, err := w.client.DeleteType(w.soon(), "x", 0)
		refused(t, err, fault.NotFound)
		for tt, err := range w.client.Types(w.soon()) {
			t.Errorf("a type is left: %v, %v", tt, err)
		}
		equal(t, "the next", len(w.submit(&yardv1.NewTask{Type: "x"})), 1)
	})
}

// TestADomainIsDeletedAndMadeAgain (R9): not while it holds tasks; deleted, it is as one that never
// was; made again, it has what was left, but no types and tasklists.
func TestADomainIsDeletedAndMadeAgain(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		admin := w.admin
		w.putType(yard.TaskType{Name: "x", MaxConcurrency: 1})
		testkit.NoError(t, testkit.Err(w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, Priority: 2})))
		id := w.submitOne(&yardv1.NewTask{Type: "x"})
		later := w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 3_600_000})
		p := w.takeOne()
		w.eventually(func() error {
			_, err := admin.DeleteDomain(w.soon(), w.domain, 0)
			refused(t, err, fault.FailedPrecondition)
			if detail := fault.From(err).Detail; detail["running"] != "1" || detail["waiting"] != "1" {
				return fmt.Errorf("it is reported to hold %v", detail)
			}
			return nil
		})
		equal(t, "complete", w.complete(p), "OK")
		equal(t, "cancel", w.cancel(later).Code, "OK")
		want(t, w.ended(id), "completed", "submitted started completed")
		w.ended(later)

		d, err := admin.GetDomain(w.soon(), w.domain)
		testkit.NoError(t, err)
		_, err = admin.DeleteDomain(w.soon(), w.domain, d.Revision+1)
		refused(t, err, fault.Stale)
		w.eventually(func() error {
			_, err := admin.DeleteDomain(w.soon(), w.domain, d.Revision)
			return err
		})
		for endpoint, body := range map[string]string{
			"tasks.submit": `{"tasklist":"work","tasks":[{"type":"x"}]}`, "tasks.get": `{"task_id":"` + id + `"}`,
			"tasks.poll": `{"tasklist":"work","max_tasks":1}`, "types.list": `{}`,
		} {
			_, err := w.raw(endpoint, body)
			refused(t, err, fault.NotFound)
		}

		again, err := admin.PutDomain(w.soon(), yard.Domain{Name: w.domain})
		if err != nil || again.Revision <= d.Revision {
			t.Fatalf("made again with revision %d after %d: %v", again.Revision, d.Revision, err)
		}
		want(t, w.get(id), "completed", "submitted started completed")
		for tt, err := range w.client.Types(w.soon()) {
			t.Errorf("a type is left: %v, %v", tt, err)
		}
		for l, err := range w.client.Tasklists(w.soon()) {
			t.Errorf("a tasklist is left: %v, %v", l, err)
		}
		equal(t, "complete", w.complete(w.redo()), "OK")
	})
}

// redo submits a task and takes it.
func (w *world) redo() *yardv1.PolledTask {
	w.t.Helper()
	w.submitOne(&yardv1.NewTask{Type: "x"})
	return w.takeOne()
}
