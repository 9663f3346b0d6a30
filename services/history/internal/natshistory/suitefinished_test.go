package natshistory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func anyTask(*logv1.Record) bool { return true }

// listAll lists the wanted tasks of a domain in pages of a size.
func listAll(t *testing.T, r partition.Reader, domain string, limit int, wanted func(*logv1.Record) bool) (all []ids.TaskID) {
	t.Helper()
	for before := ids.Last; ; {
		end, err := r.Finished(t.Context(), domain, before, limit, func(task *logv1.Record) bool {
			if task.Domain != domain {
				t.Fatalf("a list of %s has %v", domain, task)
			}
			if !wanted(task) {
				return false
			}
			all = append(all, ids.TaskID(task.Id))
			return true
		})
		testkit.NoError(t, err)
		if end.IsZero() {
			return all
		}
		if compareIDs(end, before) >= 0 {
			t.Fatalf("the page before %v ends at %v", before, end)
		}
		before = end
	}
}

// wantListed lists all tasks of a domain in pages of some sizes.
func wantListed(t *testing.T, r partition.Reader, domain string, tasks []*taskstate.Task, limits ...int) {
	t.Helper()
	want := idsOf(tasks)
	slices.SortFunc(want, func(a, b ids.TaskID) int { return compareIDs(b, a) })
	for _, limit := range limits {
		if got := listAll(t, r, domain, limit, anyTask); !slices.Equal(got, want) {
			t.Errorf("%d tasks of %s in pages of %d, want %d in the order of their ids", len(got), domain, limit, len(want))
		}
	}
}

// A quiet domain's tasks stay listed while others finish many, also if another owner files them.
func listedBesideOthers(t *testing.T, p archivePorts) {
	a := p.Archive()
	now := func(int) time.Time { return time.Now() }
	var quiet []*taskstate.Task
	for i := range 5 {
		own := many(1, func(int) string { return "quiet" }, now)
		quiet = append(quiet, own...)
		fileAll(t, a, append(own, many(3, func(k int) string { return fmt.Sprint("d", k) }, now)...))
		for range 120 {
			fileAll(t, a, many(2, func(k int) string { return fmt.Sprint("d", (i+k)%40) }, now))
		}
		fileAll(t, a, many(3000, shop, now))
		wantListed(t, p.Reader, "quiet", quiet, 1, 2, 100)
		a = p.Archive() // a takeover
	}
	wantListed(t, p.Reader, "none", nil, 1, 100)
	if end, err := p.Reader.Finished(t.Context(), "quiet", ids.Last, 0, nil); err != nil || !end.IsZero() {
		t.Errorf("a page of none: %v, %v", end, err)
	}
}

// Tasks are listed in the order of their ids, whenever they were created and in whatever order they ended.
func listedInOrder(t *testing.T, p archivePorts) {
	a := p.Archive()
	domain := func(i int) string { return []string{"shop", "media"}[i%2] }
	var all []*taskstate.Task
	for round, spread := range []time.Duration{0, time.Second, time.Minute, time.Hour, 7 * 24 * time.Hour} {
		some := many(2500, domain, func(int) time.Time { return time.Now().Add(-time.Duration(rand.Int64N(int64(spread) + 1))) })
		all = append(all, some...)
		for chunk := range slices.Chunk(some, 500-90*round) {
			fileAll(t, a, chunk)
		}
	}
	again := *all[77] // ends once more
	again.Parkings++
	fileAll(t, a, []*taskstate.Task{&again})
	mine := slices.DeleteFunc(all, func(t *taskstate.Task) bool { return t.Domain != "shop" })
	wantListed(t, p.Reader, "shop", mine, 97, 1000)
	wanted := func(r *logv1.Record) bool {
		return ids.TaskID(r.Id) == mine[0].ID || ids.TaskID(r.Id) == mine[len(mine)-1].ID
	}
	if got := listAll(t, p.Reader, "shop", 5, wanted); len(got) != 2 || compareIDs(got[0], got[1]) < 0 {
		t.Errorf("the two that are wanted: %v", got)
	}
	last := func(r *logv1.Record) bool { return ids.TaskID(r.Id) != again.ID || r.Parkings == again.Parkings }
	if got := listAll(t, p.Reader, "media", 1000, last); !slices.Contains(got, again.ID) {
		t.Error("of a task that ended twice the first end is listed")
	}
}
