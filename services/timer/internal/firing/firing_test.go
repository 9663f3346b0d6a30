package firing_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func smallChunks(d *firing.Deps) { d.Config.ChunkTasksMax = 100 }

func TestFiresWholeOnTimeAndOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	loaded := w.park(3, time.Now().Add(300*time.Millisecond))
	w.own()
	later := w.park(3, time.Now().Add(600*time.Millisecond))
	sooner := w.park(3, time.Now().Add(400*time.Millisecond), func(i int, r *logv1.Record) {
		r.Priority = int32(i + 1)
		r.Tasklist = fmt.Sprint("list", i)
	})
	want := append(append(loaded, later...), sooner...)
	got := w.eachOnce(want)
	for _, r := range want {
		f := got[key(r)][0]
		if !proto.Equal(f.record, r) {
			t.Errorf("%s was changed: %v", key(r), f.record)
		}
		testkit.Equal(t, "filed under", f.subject, topology.Submit(0, ids.Lane(r.Priority), r.Domain, r.Tasklist))
		if f.at.Before(time.UnixMilli(r.DueAtMs)) {
			t.Errorf("%s fired %v early", key(r), time.UnixMilli(r.DueAtMs).Sub(f.at))
		}
	}
}

// TestI11_OverdueTasksOfDomainsFireInTurn, each once, also if the owner is killed in the middle of the flood. Without turns the quiet ones are the last.
func TestI11_OverdueTasksOfDomainsFireInTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dueAt := time.Now().Add(-time.Second)
	of := func(domain string) func(int, *logv1.Record) {
		return func(_ int, r *logv1.Record) { r.Domain = domain }
	}
	var want []*logv1.Record
	for range 20 {
		want = append(want, w.park(100, dueAt, of("flood"))...)
	}
	for n := range 5 {
		want = append(want, w.park(10, dueAt, of(fmt.Sprint("quiet", n)))...)
	}
	first := w.own(smallChunks)
	testkit.Eventually(t, soon, func() error {
		if first.fired.Load() == 0 {
			return errors.New("nothing fired yet")
		}
		return nil
	})
	first.stop()
	w.own(smallChunks)
	w.eachOnce(want)

	fired, lastQuiet := 0, 0
	err := natslog.ReadAll(t.Context(), w.js, natslog.ReadConfig{Stream: topology.HistoryStream(0)}, func(r natslog.Record) error {
		var b logv1.Batch
		if r.Subject == topology.Fired(0) {
			return nil
		}
		if err := b.UnmarshalVT(r.Data); err != nil {
			return err
		}
		if fired += len(b.Tasks); b.Tasks[0].Domain != "flood" {
			lastQuiet = fired
		}
		return nil
	})
	testkit.NoError(t, err)
	if lastQuiet > 500 { // one chunk finds the flood, one has its turn, one has the quiet ones; the other owner may find it again
		t.Errorf("the last of the quiet ones is number %d of %d", lastQuiet, fired)
	}
}

// TestATaskThatHasFailedTooOftenIsFiredAsTheLeastUrgent, unless it has an order key, whose tasks stay together.
func TestATaskThatHasFailedTooOftenIsFiredAsTheLeastUrgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := w.park(3, time.Now(), func(i int, r *logv1.Record) {
		r.Priority, r.Failures = 2, int32(3+i)
		if i == 2 {
			r.Order = &logv1.Order{Key: "k"}
		}
	})
	w.own(func(d *firing.Deps) { d.Config.CriticalFailures = 3 })
	got := w.eachOnce(want)
	for i, lane := range []ids.Lane{2, ids.LaneLast, ids.LaneKeyed} {
		f := got[key(want[i])][0]
		testkit.Equal(t, "filed under", f.subject, topology.Submit(0, lane, f.record.Domain, f.record.Tasklist))
		testkit.Equal(t, "its priority", f.record.Priority, 2)
	}
}

func TestI10_KilledInTheMiddleEachFiresOnce(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for tasks to be due, or for answers that do not come")
	w := newWorld(t)
	var want []*logv1.Record
	dueAt := time.Now().Add(-time.Second)
	for range 50 {
		want = append(want, w.park(100, dueAt)...)
	}
	for range 8 {
		r := w.own(smallChunks)
		testkit.Eventually(t, soon, func() error {
			if r.fired.Load() == 0 {
				return errors.New("nothing fired yet")
			}
			return nil
		})
		r.stop()
	}
	w.own(smallChunks)
	w.eachOnce(want)
}

func TestI10_TwoOwnersAtOnceEachFiresOnce(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for tasks to be due, or for answers that do not come")
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	// Far more than overtake each other in this time; a broken run uses them up.
	spare := make(chan *running, 500)
	for range cap(spare) {
		spare <- w.owner(smallChunks)
	}
	close(spare)
	var owners sync.WaitGroup
	for range 2 {
		owners.Go(func() {
			testkit.Check(t, serve(ctx, spare))
		})
	}
	var want []*logv1.Record
	for range 40 {
		want = append(want, w.park(50, time.Now().Add(20*time.Millisecond))...)
	}
	w.eachOnce(want)
	stop()
	owners.Wait()
	w.eachOnce(want)
}

func TestI10_WrittenLateFiresAtOnceAndOnceAcrossTakeover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.own()
	want := w.park(10, time.Now().Add(-time.Second))
	w.eachOnce(want)
	want = append(want, w.park(10, time.Now().Add(-time.Hour))...) // before all that was fired
	w.eachOnce(want)
	r.stop()
	want = append(want, w.park(10, time.Now().Add(-2*time.Hour))...)
	w.own()
	w.eachOnce(want)
}

func TestI10_ASecondCopyOfAStayIsVoid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.own()
	want := w.park(1, time.Now().Add(-time.Second))
	w.eachOnce(want)
	w.write(want[0]) // a late copy
	r.stop()
	w.write(want[0]) // one that only the next owner sees
	again := proto.Clone(want[0]).(*logv1.Record)
	again.Parkings = 2
	w.write(again)
	w.own()
	w.eachOnce([]*logv1.Record{want[0], again})
}

func TestPurgeStopsAtHistorysCheckpointAndAtTheNewestMessage(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for tasks to be due, or for answers that do not come")
	w := newWorld(t)
	r := w.own(func(d *firing.Deps) { d.Config.PurgeEvery = 10 * time.Millisecond })
	start := time.Now().Add(-10 * time.Minute)
	var want []*logv1.Record
	for i := range 4 {
		want = append(want, w.park(5, start.Add(time.Duration(i)*2*time.Minute))...)
	}
	w.eachOnce(want)
	w.left(4)
	w.checkpoint(2)
	w.left(2)
	w.checkpoint(4)
	w.left(1)
	want = append(want, w.park(1, start)...) // purged before, and used again
	w.eachOnce(want)
	r.stop()
	w.own() // must not fire what is left again
	want = append(want, w.park(1, time.Now())...)
	w.eachOnce(want)
}

func TestABucketWithAWaitingTaskIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.own(func(d *firing.Deps) { d.Config.PurgeEvery = 10 * time.Millisecond })
	start := time.Now().Truncate(time.Minute).Add(time.Hour)
	w.park(1, start)
	done := w.park(1, time.Now().Add(-5*time.Minute))
	w.park(1, start.Add(time.Second))
	w.checkpoint(100)
	w.eachOnce(done)
	w.left(2)
}

func TestNATSRestarts(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for tasks to be due, or for answers that do not come")
	w := newWorld(t)
	r := w.own(smallChunks)
	far := w.park(3, time.Now().Add(time.Hour))
	var want []*logv1.Record
	for range 20 {
		want = append(want, w.park(100, time.Now().Add(100*time.Millisecond))...)
	}
	for range 3 {
		before := r.fired.Load()
		testkit.Eventually(t, soon, func() error {
			if r.fired.Load() == before && before < int64(len(want)) {
				return errors.New("nothing fired yet")
			}
			return nil
		})
		w.server.Restart(t)
	}
	// A connection that has not noticed yet says that it is connected.
	testkit.Eventually(t, soon, func() error { return w.nc.FlushTimeout(time.Second) })
	want = append(want, w.park(10, time.Now())...)
	w.eachOnce(want)
	countsTo(t, "wait", r.waiting.Load, int64(len(far)))
	select {
	case err := <-r.ended:
		t.Errorf("the owner ended: %v", err)
		r.ended <- err
	default:
	}
}

// countsTo waits until a metric has a value: it follows the write that it counts.
func countsTo(t *testing.T, what string, value func() int64, want int64) {
	t.Helper()
	testkit.Eventually(t, soon, func() error {
		if got := value(); got != want {
			return fmt.Errorf("%s: %d, want %d", what, got, want)
		}
		return nil
	})
}

func TestAStoreMadeAnewIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.own()
	w.eachOnce(append(w.park(1, time.Now()), w.park(1, time.Now())...))
	r.stop()
	stream, err := w.js.Stream(t.Context(), topology.TimerStream(0))
	testkit.NoError(t, err)
	cfg := stream.CachedInfo().Config
	testkit.NoError(t, w.js.DeleteStream(t.Context(), cfg.Name))
	testkit.NoError(t, testkit.Err(w.js.CreateStream(t.Context(), cfg)))
	o := firing.New(w.deps())
	if err := o.Load(t.Context()); err == nil {
		t.Error("loaded")
	}
}
