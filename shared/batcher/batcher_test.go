package batcher_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
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

// config has room for all that the tests add.
func config(inFlight, batchMax int) batcher.Config {
	return batcher.Config{InFlight: inFlight, BatchMax: batchMax, QueuedMax: 1 << 30}
}

func add(t *testing.T, b *batcher.Batcher[item], n int) {
	t.Helper()
	for range n {
		testkit.NoError(t, b.Add("shop", item{}, 1))
	}
}

// The bubble ends only when no goroutine is left, and Close is never called: an
// idle batcher has none.
func TestIdleHasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flushes{release: make(chan struct{})}
		close(f.release)
		b := batcher.New(config(2, 1000), f.flush)
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
		b := batcher.New(config(2, 5), f.flush)
		for range 2 {
			add(t, b, 1)
			synctest.Wait()
		}
		for range 8 {
			add(t, b, 1)
			synctest.Wait()
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
		b := batcher.New(config(3, 10), f.flush)
		add(t, b, 40)
		synctest.Wait()
		testkit.Equal(t, "flushes at once", f.most, 3)
		close(f.release)
	})
}

// A key has three quarters of the places, and more than its share is refused; others find theirs.
func TestI14_FullQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flushes{release: make(chan struct{})}
		b := batcher.New(batcher.Config{InFlight: 1, BatchMax: 30, QueuedMax: 100}, f.flush)
		add(t, b, 1)
		synctest.Wait() // under way, so no longer queued
		testkit.NoError(t, b.Add("shop", item{}, 60))
		testkit.NoError(t, b.Add("shop", item{}, 15))
		if err := b.Add("shop", item{}, 1); !errors.Is(err, batcher.ErrFull) {
			t.Errorf("more than three quarters: %v", err)
		}
		testkit.NoError(t, b.Add("mail", item{}, 1))
		close(f.release)
		synctest.Wait()
		testkit.NoError(t, b.Add("shop", item{}, 75))
		synctest.Wait()
		testkit.Equal(t, "batches of", f.sizes(), []int{1, 1, 1, 1, 1})
	})
}

// I14: of a thousand items of one key only those under way come before the one of another key; and a key with three turns gets three times as much.
func TestI14_KeysTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flushes{release: make(chan struct{})}
		c := config(1, 8)
		c.Turns = func(key string) int { return map[string]int{"heavy": 3}[key] + 1 }
		b := batcher.New(c, f.flush)
		for i := range 1000 {
			testkit.NoError(t, b.Add("flood", item{place: i}, 1))
		}
		synctest.Wait()
		testkit.NoError(t, b.Add("shop", item{place: -1}, 1))
		for range 100 {
			testkit.NoError(t, b.Add("heavy", item{place: -2}, 1))
		}
		close(f.release)
		synctest.Wait()
		shop := slices.ContainsFunc(f.batches[1], func(it item) bool { return it.place == -1 })
		heavy := 0
		for _, batch := range f.batches[1:11] {
			for _, it := range batch {
				if it.place == -2 {
					heavy++
				}
			}
		}
		if !shop || heavy < 60 || heavy > 66 {
			t.Errorf("of 80 items %d were of the key with four turns; the one of another key came next: %v", heavy, shop)
		}
	})
}

func TestCloseDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flushed atomic.Int64
		b := batcher.New(config(2, 3), func(ctx context.Context, batch []item) {
			time.Sleep(time.Second)
			flushed.Add(int64(len(batch)))
			if ctx.Err() != nil {
				t.Error("the context is cancelled although there was time")
			}
		})
		add(t, b, 20)
		testkit.Check(t, b.Close(t.Context()))
		testkit.Equal(t, "flushed when Close returned", flushed.Load(), 20)
		if err := b.Add("shop", item{}, 1); !errors.Is(err, batcher.ErrClosed) {
			t.Errorf("Add after Close: %v", err)
		}
		testkit.Check(t, b.Close(t.Context()))
	})
}

func TestCloseIdle(t *testing.T) {
	b := batcher.New(config(2, 1000), func(context.Context, []item) {})
	testkit.NoError(t, b.Close(t.Context()))
}

func TestCloseOutOfTimeStillTellsEveryItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		b := batcher.New(config(2, 3), func(ctx context.Context, batch []item) {
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
			InFlight:  draw("in flight", 1, 4),
			BatchMax:  draw("batch", 1, 50),
			QueuedMax: draw("queued", 80, 200),
		}
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
			weight := draw("weight", 1, 60)
			switch err := b.Add("shop", item{accepted, weight}, weight); {
			case err == nil:
				accepted++
			case !errors.Is(err, batcher.ErrFull):
				rt.Fatal(err)
			}
		}
		close(f.release)
		if err := b.Close(t.Context()); err != nil {
			rt.Fatal(err)
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
		if len(batch) == 0 || len(batch) > 1 && bytes > cfg.BatchMax {
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
	b := batcher.New(config(1, 1000), func(_ context.Context, batch []item) {
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
				testkit.Check(t, b.Add(strconv.Itoa(p), item{p, i}, 1))
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

func BenchmarkAdd(b *testing.B) {
	var flushed atomic.Int64
	bt := batcher.New(batcher.Config{InFlight: 2, BatchMax: 400 << 10, QueuedMax: 1 << 60},
		func(_ context.Context, batch []item) { flushed.Add(1) })
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			testkit.Check(b, bt.Add("shop", item{}, 100))
		}
	})
	testkit.NoError(b, bt.Close(b.Context()))
	b.ReportMetric(float64(b.N)/float64(flushed.Load()), "items/flush")
}
