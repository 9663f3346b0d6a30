package partition_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
)

// groupedFifth makes tasks, with ids behind n; one of five is of a group.
func groupedFifth(n *uint64, domain string, tasks int) (all []*logv1.Record) {
	for range tasks {
		*n++
		one := task(newID(*n), domain)
		if *n%5 == 1 {
			one.Group = "acme"
		}
		all = append(all, one)
	}
	return all
}

// I7: the report tells all that a tasklist with a cap has queued, in memory and on disk, up to where it says; of others
// nothing is read or said.
func TestI7_TheLoadReportTellsWhatIsQueued(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		w := newWire()
		d := s.deps("a")
		d.Wire, d.Config.WindowTasks, d.Config.SnapshotEvery = w, 10, time.Hour
		var caps atomic.Pointer[backlog.Caps]
		var scans atomic.Int64
		broken := errors.New("the server is away")
		d.Capped = partition.Capped{Caps: caps.Load, Scan: func(ctx context.Context, lane ids.Lane, domains []string, from uint64, handle func(partition.Record) error) (uint64, error) {
			if fmt.Sprint(lane, domains) != "p3 [shop]" {
				t.Errorf("lane %v of %v is read", lane, domains)
			}
			if scans.Add(1) == 1 {
				return 0, broken
			}
			last, _, err := s.world.Ends(ctx)
			if err != nil {
				return 0, err
			}
			return last, s.world.Read(ctx, partition.Source(lane), "", from, last, handle)
		}}
		s.serves(d)
		report := func() *rpcv1.HistoryLoad { t.Helper(); return w.load(t, 5*time.Second) }
		last, n := uint64(1), uint64(0) // its owner has claimed the log
		submit := func(domain string, tasks int) {
			s.submit(3, groupedFifth(&n, domain, tasks)...)
			last++
		}
		for range 30 {
			submit("shop", 2)
			submit("bank", 3)
		}
		if load := report(); load.Queued != nil || load.Counted != nil || scans.Load() != 0 {
			t.Error("without a cap:", load, scans.Load())
		}
		name := task(newID(1), "shop").Tasklist
		caps.Store(backlog.NewCaps(map[backlog.Tasklist]int64{{Domain: "shop", Name: name}: 5}, map[backlog.Tasklist]int64{{Domain: "shop", Name: name}: 100}))
		load := report()
		if len(load.Queued) != 1 || load.Queued[0].Domain != "shop" || load.Queued[0].Tasklist != name || load.Queued[0].Tasks != 60 ||
			len(load.Counted) != ids.Lanes || load.Counted[3] != last {
			t.Errorf("with a cap: %v, want 60 up to %d", load, last)
		}
		if got := fmt.Sprint(load.QueuedGroups); len(load.QueuedGroups) != 1 || load.QueuedGroups[0].Group != "acme" || load.QueuedGroups[0].Tasks != 30 {
			t.Errorf("of groups: %v, want 30", got)
		}
		later := task(newID(1000), "shop")
		later.DueAtMs = time.Now().Add(time.Hour).UnixMilli()
		s.submit(3, later, task(newID(1001), "shop"))
		if load = report(); load.Queued[0].Tasks != 61 || load.Counted[3] != last+1 {
			t.Errorf("one that is due, and one that is not: %v", load)
		}
	})
}
