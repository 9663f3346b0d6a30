package batcher_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/shared/batcher"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// item is what the tests batch: its place among the accepted ones and its weight.
type item struct{ place, weight int }

// flushes is a flush that holds every batch until it is released.
type flushes struct {
	release chan struct{}

	mu      sync.Mutex
	batches [][]item // as they came
	under   int      // flushes under way
	most    int      // of them at once
}

func (f *flushes) flush(_ context.Context, batch []item) {
	f.mu.Lock()
	f.batches = append(f.batches, batch)
	f.under++
	f.most = max(f.most, f.under)
	f.mu.Unlock()
	<-f.release
	f.mu.Lock()
	f.under--
	f.mu.Unlock()
}

func (f *flushes) sizes() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	sizes := make([]int, len(f.batches))
	for i, b := range f.batches {
		sizes[i] = len(b)
	}
	return sizes
}

func add(t *testing.T, b *batcher.Batcher[item], n int) {
	t.Helper()
	for range n {
		testkit.NoError(t, b.Add(item{}, 1))
	}
}

// The bubble ends only when no goroutine is left, and Close is never called: an
// idle batcher has none.
func TestIdleHasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flushes{release: make(chan struct{})}
		close(f.release)
		b := batcher.New(batcher.Config{}, f.flush)
		add(t, b, 1)
		synctest.Wait()
		add(t, b, 1)
		synctest.Wait()
		testkit.Equal(t, "batches of", f.sizes(), []int{1, 1})
	})
}

func TestBatchGathersWhileFlushesRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flushes{release: make(chan struct{})}
		b := batcher.New(batcher.Config{MaxItems: 5}, f.flush)
		for range 2 {
			add(t, b, 1)
			synctest.Wait()
		}
		for range 8 {
			add(t, b, 1)
			synctest.Wait()
		}
		if items, bytes := b.Queued(); items != 8 || bytes != 8 {
			t.Errorf("%d items and %d bytes wait, want 8", items, bytes)
		}
		testkit.Equal(t, "batches of", f.sizes(), []int{1, 1})
		f.release <- struct{}{}
		synctest.Wait()
		testkit.Equal(t, "batches of", f.sizes(), []int{1, 1, 5})
		close(f.release)
		synctest.Wait()
		testkit.Equal(t, "batches of", f.sizes(), []int{1, 1, 5, 3})
	})
}

func TestBurstUsesAllFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flushes{release: make(chan struct{})}
		b := batcher.New(batcher.Config{InFlight: 3, MaxItems: 10}, f.flush)
		add(t, b, 40)
		synctest.Wait()
		testkit.Equal(t, "flushes at once", f.most, 3)
		close(f.release)
	})
}

func TestFullQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flushes{release: make(chan struct{})}
		b := batcher.New(batcher.Config{
			InFlight: 1, MaxItems: 2, MaxBytes: 10, MaxQueuedItems: 3, MaxQueuedBytes: 20,
		}, f.flush)
		add(t, b, 1)
		synctest.Wait() // under way, so no longer queued
		add(t, b, 2)
		if err := b.Add(item{}, 19); !errors.Is(err, batcher.ErrFull) {
			t.Errorf("too many bytes: %v", err)
		}
		add(t, b, 1)
		if err := b.Add(item{}, 0); !errors.Is(err, batcher.ErrFull) {
			t.Errorf("too many items: %v", err)
		}
		close(f.release)
		synctest.Wait()
		testkit.Check(t, b.Add(item{}, 1000))
		synctest.Wait()
		testkit.Equal(t, "batches of", f.sizes(), []int{1, 2, 1, 1})
	})
}

func TestCloseDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flushed atomic.Int64
		b := batcher.New(batcher.Config{MaxItems: 3}, func(ctx context.Context, batch []item) {
			time.Sleep(time.Second)
			flushed.Add(int64(len(batch)))
			if ctx.Err() != nil {
				t.Error("the context is cancelled although there was time")
			}
		})
		add(t, b, 20)
		testkit.Check(t, b.Close(t.Context()))
		testkit.Equal(t, "flushed when Close returned", flushed.Load(), 20)
		if err := b.Add(item{}, 1); !errors.Is(err, batcher.ErrClosed) {
			t.Errorf("Add after Close: %v", err)
		}
		testkit.Check(t, b.Close(t.Context()))
	})
}

func TestCloseIdle(t *testing.T) {
	b := batcher.New(batcher.Config{}, func(context.Context, []item) {})
	testkit.NoError(t, b.Close(t.Context()))
}

func TestCloseOutOfTimeStillTellsEveryItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		b := batcher.New(batcher.Config{MaxItems: 3}, func(ctx context.Context, batch []item) {
			<-ctx.Done() // a publish that no one answers
			told.Add(int64(len(batch)))
		})
		add(t, b, 20)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		synctest.Wait()
		testkit.Equal(t, "items were reported", told.Load(), 20)
	})
}

// Whatever is added and however long flushes take: each accepted item is in
// exactly one batch, in order, and every cap holds.
func TestEachItemInOneBatchInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(rt, name) }
		cfg := batcher.Config{
			InFlight: draw("in flight", 1, 4),
			MaxItems: draw("max items", 1, 10),
			MaxBytes: draw("max bytes", 1, 50),
		}
		cfg.MaxQueuedItems = cfg.MaxItems + draw("more queued items", 0, 20)
		cfg.MaxQueuedBytes = cfg.MaxBytes + draw("more queued bytes", 0, 100)
		f := &flushes{release: make(chan struct{})}
		b := batcher.New(cfg, f.flush)

		accepted := 0
		for range draw("steps", 0, 60) {
			if draw("add or release", 0, 3) == 0 {
				select {
				case f.release <- struct{}{}:
				default: // no flush under way
				}
				continue
			}
			weight := draw("weight", 0, 60)
			switch err := b.Add(item{accepted, weight}, weight); {
			case err == nil:
				accepted++
			case !errors.Is(err, batcher.ErrFull):
				rt.Fatal(err)
			}
			items, bytes := b.Queued()
			if items > cfg.MaxQueuedItems || items > 1 && bytes > cfg.MaxQueuedBytes {
				rt.Fatalf("%d items of %d bytes are queued", items, bytes)
			}
		}
		close(f.release)
		if err := b.Close(t.Context()); err != nil {
			rt.Fatal(err)
		}
		if items, bytes := b.Queued(); items != 0 || bytes != 0 {
			rt.Fatalf("%d items of %d bytes are left", items, bytes)
		}
		if f.most > cfg.InFlight {
			rt.Fatalf("%d flushes at once, want at most %d", f.most, cfg.InFlight)
		}
		checkBatches(rt, cfg, f.batches, accepted)
	})
}

func checkBatches(t *rapid.T, cfg batcher.Config, batches [][]item, accepted int) {
	// Two flushes in flight may begin in either order; with one, they may not.
	if cfg.InFlight > 1 {
		slices.SortFunc(batches, func(a, b []item) int { return a[0].place - b[0].place })
	}
	place := 0
	for _, batch := range batches {
		bytes := 0
		for _, it := range batch {
			if it.place != place {
				t.Fatalf("item %d where %d belongs, in %v", it.place, place, batches)
			}
			place++
			bytes += it.weight
		}
		if len(batch) == 0 || len(batch) > cfg.MaxItems || len(batch) > 1 && bytes > cfg.MaxBytes {
			t.Fatalf("a batch of %d items and %d bytes", len(batch), bytes)
		}
	}
	if place != accepted {
		t.Fatalf("%d items flushed, %d accepted", place, accepted)
	}
}

func TestManyProducers(t *testing.T) {
	const producers, each = 8, 2000
	var seen [producers]int // the next item of each producer
	b := batcher.New(batcher.Config{InFlight: 1}, func(_ context.Context, batch []item) {
		for _, it := range batch { // place is the producer here, weight its count
			if seen[it.place] != it.weight {
				t.Errorf("producer %d: item %d where %d belongs", it.place, it.weight, seen[it.place])
			}
			seen[it.place]++
		}
	})
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				testkit.Check(t, b.Add(item{p, i}, 1))
			}
		})
	}
	wg.Wait()
	testkit.NoError(t, b.Close(t.Context()))
	for p, n := range seen {
		if n != each {
			t.Errorf("producer %d: %d of %d items", p, n, each)
		}
	}
}

func TestConfigProblems(t *testing.T) {
	testkit.Check(t, (batcher.Config{}).Validate())
	for _, bad := range []batcher.Config{
		{InFlight: -1}, {MaxItems: 10, MaxQueuedItems: 9}, {MaxBytes: 10, MaxQueuedBytes: 9},
	} {
		if bad.Validate() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("New takes a bad config")
		}
	}()
	batcher.New(batcher.Config{InFlight: -1}, func(context.Context, []item) {})
}

func BenchmarkAdd(b *testing.B) {
	var flushed atomic.Int64
	bt := batcher.New(batcher.Config{MaxQueuedItems: 1 << 40, MaxQueuedBytes: 1 << 60},
		func(_ context.Context, batch []item) { flushed.Add(1) })
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			testkit.Check(b, bt.Add(item{}, 100))
		}
	})
	testkit.NoError(b, bt.Close(b.Context()))
	b.ReportMetric(float64(b.N)/float64(flushed.Load()), "items/flush")
}
