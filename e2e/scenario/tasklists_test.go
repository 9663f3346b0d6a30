package scenario_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestTasklistSettings (R9): tasks that name no priority have that of their tasklist, from the moment of the put; accepted ones keep
// theirs. What has settings or work is listed, with what history and timer hold, and deleted settings take no task with them.
func TestTasklistSettings(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		set := func(l yard.Tasklist) yard.Tasklist {
			stored, err := w.client.PutTasklist(w.soon(), l)
			testkit.NoError(t, err)
			return stored
		}
		priorities := func(tasks ...*yardv1.NewTask) (all []int32) {
			for _, id := range w.submit(tasks...) {
				all = append(all, w.reach(id, "ready").Priority)
			}
			return all
		}
		equal(t, "without settings", priorities(&yardv1.NewTask{Type: "x"})[0], 3)
		first := set(yard.Tasklist{Name: list, Description: "for customers", Priority: 1})
		got := priorities(&yardv1.NewTask{Type: "x"}, &yardv1.NewTask{Type: "x", Priority: 5}, &yardv1.NewTask{Type: "x", Tasklist: "other"})
		testkit.Equal(t, "priorities", got, []int32{1, 5, 3})
		_, err := w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, Revision: first.Revision + 1000})
		refused(t, err, fault.Stale)
		set(yard.Tasklist{Name: "unused"})
		w.submitOne(&yardv1.NewTask{Type: "x", Tasklist: "parked", DelayMs: 3_600_000})
		equal(t, "the most urgent", w.takeOne().Priority, 1)

		listed := func() string {
			var all []string
			for l, err := range w.client.Tasklists(w.soon()) {
				if err != nil {
					return err.Error()
				}
				all = append(all, fmt.Sprintf("%s:%d/%d/%d/%d/%t", l.Name, l.Ready, l.Running, l.Backoff, l.Waiting, l.Revision > 0))
			}
			return strings.Join(all, " ")
		}
		whole := []string{list + ":2/1/0/0/true", "other:1/0/0/0/false", "parked:0/0/0/1/false", "unused:0/0/0/0/true"}
		slices.Sort(whole)
		w.eventually(func() error { // the delayed one is parked a moment later
			if got, want := listed(), strings.Join(whole, " "); got != want {
				return fmt.Errorf("listed %s, want %s", got, want)
			}
			return nil
		})

		gone, err := w.client.DeleteTasklist(w.soon(), list, first.Revision)
		if err != nil || gone != first {
			t.Errorf("deleted %+v: %v", gone, err)
		}
		_, err = w.client.GetTasklist(w.soon(), list)
		refused(t, err, fault.NotFound)
		if got := listed(); !strings.Contains(got, list+":2/1/0/0/false") {
			t.Errorf("listed %s", got)
		}
		w.eventually(func() error { // another frontend may not have heard yet
			if got := priorities(&yardv1.NewTask{Type: "x"})[0]; got != 3 {
				return fmt.Errorf("priority %d after the deletion", got)
			}
			return nil
		})
	})
}
