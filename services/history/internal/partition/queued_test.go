package partition_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/queries"
)

// TestI7_TasksOnDiskAreListed: those of the domain that are not admitted, each once, page by page, in the order of their lanes; those in memory are not.
func TestI7_TasksOnDiskAreListed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		d.Config.WindowTasks, d.Config.SnapshotEvery = 10, time.Hour
		d.Capped = partition.Capped{Scan: func(ctx context.Context, lane ids.Lane, _ []string, from uint64, handle func(partition.Record) error) (uint64, error) {
			last, _, err := s.world.Ends(ctx)
			if err != nil {
				return 0, err
			}
			return last, s.world.Read(ctx, partition.Source(lane), "", from, last, handle)
		}}
		o := s.serves(d)
		n := uint64(0)
		for range 20 {
			s.submit(4, groupedFifth(&n, "shop", 3)...)
			s.submit(4, groupedFifth(&n, "bank", 2)...)
			s.submit(2, groupedFifth(&n, "shop", 1)...)
		}
		synctest.Wait()
		list := func(filter *yardv1.ListRequest) (tasks []string, pages int) {
			for filter.Limit = 7; ; pages++ {
				resp, err := queries.Of(o).List(t.Context(), &rpcv1.ListTasksRequest{Domain: "shop", Filter: filter})
				if err != nil {
					t.Fatal(err)
				}
				for _, one := range resp.Tasks {
					if one.State != yardv1.TaskState_TASK_STATE_QUEUED || one.Domain != "shop" {
						t.Fatalf("%v", one)
					}
					tasks = append(tasks, one.TaskId)
				}
				if filter.Cursor = resp.End; !resp.More {
					return tasks, pages
				}
			}
		}
		queued := []yardv1.TaskState{yardv1.TaskState_TASK_STATE_QUEUED}
		all, pages := list(&yardv1.ListRequest{States: queued})
		seen := map[string]bool{}
		for _, id := range all {
			seen[id] = true
		}
		if held := 80 - len(all); len(seen) != len(all) || held < 10 || held > 40 || pages < 5 {
			t.Errorf("%d tasks on %d pages, %d of them once", len(all), pages, len(seen))
		}
		acme, _ := list(&yardv1.ListRequest{States: queued, Group: "acme"})
		if len(acme) == 0 || len(acme) > len(all)/3 || !seen[acme[0]] {
			t.Errorf("%d tasks of the group", len(acme))
		}
		for _, bad := range []string{"x", "1.2", "99.1.0", "1.1.-1"} {
			if _, err := queries.Of(o).List(t.Context(), &rpcv1.ListTasksRequest{Domain: "shop", Filter: &yardv1.ListRequest{States: queued, Cursor: bad}}); err == nil {
				t.Error(fmt.Sprint("a list goes on at ", bad))
			}
		}
	})
}
