package scenario_test

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
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
		if _, err := w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list}); err != nil {
			t.Fatal(err)
		}
		want(0)
	})
}

// TestI13PartitionsWaitForTheClustersVersion: before, they are refused and nothing is stored; other settings are not.
func TestI13PartitionsWaitForTheClustersVersion(t *testing.T) {
	t.Parallel()
	cfg := stack.Config{Tables: stack.TablesMemory, DataDir: t.TempDir()}
	w := enter(t, own(t, cfg))
	kv, err := w.inside().KeyValue(w.soon(), topology.ConfigBucket)
	if err != nil {
		t.Fatal(err)
	}
	// A cluster that an older program created.
	if _, err := kv.PutString(w.soon(), topology.VersionKey, fmt.Sprint(logversion.Partitions-1)); err != nil {
		t.Fatal(err)
	}
	if err := closeStack(w.stack); err != nil {
		t.Fatalf("the stack did not end well: %v", err)
	}
	w = join(t, own(t, cfg), w.domain)
	put := func(n int) error {
		_, err := w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, Priority: 2, Partitions: n})
		return err
	}
	err = put(2)
	refused(t, err, fault.FailedPrecondition)
	equal(t, "path", fault.From(err).Path, "/tasklist/partitions")
	_, err = w.client.GetTasklist(w.soon(), list)
	refused(t, err, fault.NotFound)
	if err := put(1); err != nil {
		t.Error(err)
	}
	id := w.submitOne(&yardv1.NewTask{Type: "x"})
	equal(t, "with one partition", w.takeOne().TaskId, id)

	if kv, err = w.inside().KeyValue(w.soon(), topology.ConfigBucket); err != nil {
		t.Fatal(err)
	}
	now, err := catalog.GetVersion(w.soon(), kv)
	if err != nil {
		t.Fatal(err)
	}
	if err := catalog.RaiseVersion(w.soon(), kv, now, logversion.Partitions); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error { return put(2) })
	if n, err := w.partitions(list); err != nil || n != 2 {
		t.Errorf("%d partitions, %v", n, err)
	}
}
