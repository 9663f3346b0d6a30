package partition_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
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
		caps.Store(backlog.NewCaps(map[backlog.Tasklist]int64{{Domain: "shop", Name: name}: 5}, map[backlog.Tasklist]int64{{Domain: "shop", Name: name}: 100}, nil))
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

// stored is the last report of what waits, nil if there was none, after a while.
func (w *wire) stored(t *testing.T) []*rpcv1.DomainStored {
	t.Helper()
	w.load(t, 5*time.Second)
	w.mu.Lock()
	defer w.mu.Unlock()
	data, sent := w.published[topology.HintStored]
	delete(w.published, topology.HintStored)
	var report rpcv1.StoredTasks
	if testkit.NoError(t, report.UnmarshalVT(data)); !sent {
		return nil
	}
	return append([]*rpcv1.DomainStored{}, report.Domains...)
}

// TestI7_WhatADomainHasWaitingIsReported if it has a quota of it: in memory, and on disk. Those that run or have ended are not.
func TestI7_WhatADomainHasWaitingIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		w := newWire()
		d := s.deps("a")
		d.Wire, d.Config.WindowTasks, d.Config.SnapshotEvery = w, 10, time.Hour
		var bounded atomic.Pointer[catalog.Bounded]
		var scans atomic.Int64
		d.Capped = partition.Capped{
			Bounded: bounded.Load,
			Caps: func() *backlog.Caps {
				if b := bounded.Load(); b != nil {
					return backlog.NewCaps(nil, nil, map[string]bool{"shop": true, "idle": true})
				}
				return nil
			},
			Scan: func(ctx context.Context, lane ids.Lane, _ []string, from uint64, handle func(partition.Record) error) (uint64, error) {
				scans.Add(1)
				last, _, err := s.world.Ends(ctx)
				if err != nil {
					return 0, err
				}
				return last, s.world.Read(ctx, partition.Source(lane), "", from, last, handle)
			},
		}
		s.serves(d)
		n := uint64(0)
		for range 30 {
			s.submit(3, groupedFifth(&n, "shop", 2)...)
			s.submit(3, groupedFifth(&n, "bank", 3)...)
		}
		if got := w.stored(t); got != nil || scans.Load() != 0 {
			t.Errorf("without a quota: %v, %d scans", got, scans.Load())
		}
		bounded.Store(&catalog.Bounded{Quotas: map[string]*yardv1.Quota{"shop": {WaitingTasks: 5}, "idle": {WaitingTasks: 5}}})
		got := w.stored(t)
		if len(got) != 1 || got[0].Domain != "shop" || got[0].Tasks != 60 {
			t.Fatalf("with a quota: %v, want 60 tasks", got)
		}
		each := int64(task(newID(1), "shop").SizeVT())
		if least, most := 60*each/2, 60*each*3; got[0].Bytes < least || got[0].Bytes > most {
			t.Errorf("they take %d bytes, want %d to %d", got[0].Bytes, least, most)
		}
	})
}
