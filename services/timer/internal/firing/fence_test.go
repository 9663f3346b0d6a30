package firing_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/quarantine"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// R14, R24: what a replaced history owner parks is void, also for the next timer
// owner, whatever was purged.
func TestI12_WhatAReplacedHistoryOwnerParksIsVoid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	purging := func(d *firing.Deps) { d.Config.PurgeEvery = 10 * time.Millisecond }
	w.fence(1)
	past := time.Now().Add(-5 * time.Minute)
	first := w.park(1, past)
	w.fence(2)
	stale := func() *logv1.Record {
		w.made++
		r := proto.Clone(first[0]).(*logv1.Record)
		id := ids.NewTaskID(time.UnixMilli(int64(w.made)), 0, w.made)
		r.Id = id[:]
		return r
	}
	w.writeAs(1, first[0], stale())
	r := w.own(purging)
	w.eachOnce(first)
	w.writeAs(1, stale())
	second := proto.Clone(first[0]).(*logv1.Record)
	second.Parkings = 2
	w.writeAs(2, second)
	want := append(first, second)
	w.eachOnce(want)
	testkit.Equal(t, "void", r.outdated.Load(), 3)
	w.fence(3)
	w.checkpoint(100)
	w.left(1) // the last fence
	r.stop()
	w.writeAs(2, stale())
	r = w.own(purging)
	testkit.Equal(t, "void after a load", r.outdated.Load(), 1)
	want = append(want, w.park(1, time.Now())...)
	w.eachOnce(want)
}

// TestAFenceInTheWrongPlaceMeansNothing and goes into quarantine. R19.
func TestAFenceInTheWrongPlaceMeansNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	places := []string{topology.Timer(0, 7), topology.TimerFence(0)}
	w.append(places[0], &logv1.Batch{Fence: true, Epoch: 9})
	w.append(places[1], &logv1.Batch{Epoch: 9})
	r := w.own()
	want := w.park(1, time.Now())
	want = append(want, proto.Clone(want[0]).(*logv1.Record))
	want[1].Parkings = 2
	w.eachOnce(want[:1])
	w.writeAs(1, want[1])
	w.eachOnce(want)
	testkit.Equal(t, "void", r.outdated.Load(), 0)
	var from []string
	err := quarantine.List(t.Context(), w.js, quarantine.Filter{Service: "timer", Partition: 0}, func(i quarantine.Item) error {
		from = append(from, i.OriginSubject)
		return nil
	})
	if err != nil || !slices.Equal(from, places) {
		t.Errorf("in quarantine from %v: %v", from, err)
	}
}

// R2: another domain's task is as if there were no such task.
func TestR2_ATaskOfAnotherDomainDoesNotFire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.own()
	fired := w.park(1, time.Now())
	w.eachOnce(fired)
	all := append(w.park(1, time.Now().Add(time.Hour)), fired...)
	before := w.stored()
	ask := wanted(idsOf(all))
	for i := range ask {
		ask[i].Domain = "other"
	}
	if a, err := r.FireEarly(t.Context(), ask); err != nil || len(a.Coming) != 0 || len(a.Fired) != 0 || w.stored() != before {
		t.Errorf("it hears of %+v, %v; %d messages, were %d", a, err, w.stored(), before)
	}
	for i := range ask {
		ask[i].Domain = "shop"
	}
	if a, err := r.FireEarly(t.Context(), ask); err != nil || len(a.Coming) != 1 || len(a.Fired) != 1 {
		t.Errorf("the domain hears of %+v, %v", a, err)
	}
	w.eachOnce(all)
}

// R18: what was fired is found with the message of the log that it went into.
func TestR18_AFiredTaskIsLocatedInTheLog(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for tasks to be due, or for answers that do not come")
	w := newWorld(t)
	r := w.own()
	all := w.park(3, time.Now().Add(notSoon), func(i int, r *logv1.Record) { r.Tasklist = fmt.Sprint("list", i) })
	waits(t, r, 3)
	for _, task := range all {
		if at, err := r.Locate(t.Context(), ids.TaskID(task.Id), "shop"); err != nil || at.Record == nil && at.LogSeq == 0 {
			t.Errorf("before it is due: %+v, %v", at, err)
		}
	}
	w.eachOnce(all)
	waits(t, r, 0)
	answer, err := r.FireEarly(t.Context(), wanted(idsOf(all)))
	if err != nil || len(answer.Fired) != 3 {
		t.Fatalf("%+v, %v", answer, err)
	}
	for i, task := range all {
		id := ids.TaskID(task.Id)
		at, err := r.Locate(t.Context(), id, "shop")
		if err != nil || at.LogSeq == 0 || answer.Fired[i] != (due.Fate{ID: id, LogSeq: at.LogSeq}) {
			t.Errorf("%+v, %v", at, err)
		}
		m, err := natslog.Get(t.Context(), w.js, topology.HistoryStream(0), at.LogSeq)
		if err != nil || m == nil {
			t.Fatalf("nothing lies at %d: %v", at.LogSeq, err)
		}
		var b logv1.Batch
		if err := b.UnmarshalVT(m.Data); err != nil || len(b.Tasks) != 1 || !proto.Equal(b.Tasks[0], task) {
			t.Errorf("at %d lies %v", at.LogSeq, b.Tasks)
		}
		if other, err := r.Locate(t.Context(), id, "other"); err != nil || other.LogSeq > 0 || other.Record != nil {
			t.Errorf("another domain finds %+v, %v", other, err)
		}
	}
}
