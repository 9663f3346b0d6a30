package scenario_test

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// partitions are those of a tasklist as a description, the settings and a list tell, which must be the same.
func (w *world) partitions(tasklist string) (int, error) {
	d, err := w.client.DescribeTasklist(w.soon(), tasklist)
	if err != nil {
		return 0, err
	}
	set, err := w.client.GetTasklist(w.soon(), tasklist)
	if err != nil {
		return 0, err
	}
	listed := 0
	for l, err := range w.client.Tasklists(w.soon()) {
		if err != nil {
			return 0, err
		}
		if l.Name == tasklist {
			listed = l.Partitions
		}
	}
	if d.Partitions != set.Partitions || listed != set.Partitions {
		return 0, fmt.Errorf("described with %d partitions, set with %d, listed with %d", d.Partitions, set.Partitions, listed)
	}
	return set.Partitions, nil
}

// TestPartitionsAreSettings: they are put, read back, changed and deleted through any frontend, and what cannot be is refused whole.
func TestPartitionsAreSettings(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		want := func(n int) {
			t.Helper()
			w.eventually(func() error { // another frontend may not have heard yet
				if got, err := w.partitions(list); err != nil || got != n {
					return fmt.Errorf("%d partitions, %w; want %d", got, err, n)
				}
				return nil
			})
		}
		for _, n := range []int{3, 64, 2} {
			stored, err := w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, Description: "spread", Partitions: n})
			if err != nil || stored.Partitions != n {
				t.Fatalf("stored %+v, %v", stored, err)
			}
			want(n)
		}
		for _, n := range []int{-1, 65} {
			_, err := w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, Partitions: n})
			refused(t, err, fault.InvalidArgument)
			equal(t, "path", fault.From(err).Path, "/tasklist/partitions")
		}
		want(2)
		testkit.NoError(t, testkit.Err(w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list})))
		want(0)
	})
}
