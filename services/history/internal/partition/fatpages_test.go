package partition_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
)

// keyedTask has an order key, and a payload of so many bytes.
func keyedTask(n uint64, key string, payload int) *logv1.Record {
	r := task(newID(n), "shop")
	r.Order, r.Payload = &logv1.Order{Key: key, Blocks: true}, bytes.Repeat([]byte{'x'}, payload)
	return r
}

// TestPagesOfAnySize: the end of a long line goes to the shelf, whatever the size of its tasks is, and comes back.
func TestPagesOfAnySize(t *testing.T) {
	for _, payload := range []int{0, 1500, 10_000, 300_000} {
		synctest.Test(t, func(t *testing.T) {
			s := newShell(t)
			const behind = 600
			d := s.deps("a")
			d.LogVersion = func() uint32 { return 10 }
			d.Config.WindowBytes = max(10<<20, behind/4*int64(payload+1000))
			d.Config.WindowTasks, d.Config.LineTasks = behind/4, 20
			var away atomic.Int64
			d.Shelved = func(n int) { away.Store(int64(n)) }
			o, stop := run(d)
			<-o.Ready()
			for n := range uint64(behind) {
				s.submit(ids.LaneKeyed, keyedTask(n+1, "a", payload))
			}
			time.Sleep(time.Minute)
			if n := away.Load(); n < behind-behind/8 {
				t.Errorf("payloads of %d bytes: %d of %d tasks are on the shelf", payload, n, behind)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// refusingShelf takes no page at first.
type refusingShelf struct {
	partition.Shelf
	refusals atomic.Int64
}

func (s *refusingShelf) Write(ctx context.Context, epoch, n uint64, page []byte) (uint64, error) {
	if s.refusals.Add(-1) >= 0 {
		return 0, partition.ErrRefused
	}
	return s.Shelf.Write(ctx, epoch, n, page)
}

// TestAPageThatIsRefused leaves its tasks in memory, and is tried again later, no more often than it must.
func TestAPageThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		d := s.deps("a")
		d.LogVersion = func() uint32 { return 10 }
		d.Config.WindowTasks, d.Config.LineTasks = 100, 20
		shelf := &refusingShelf{Shelf: d.Shelf}
		shelf.refusals.Store(3)
		d.Shelf = shelf
		var away atomic.Int64
		d.Shelved = func(n int) { away.Store(int64(n)) }
		o, stop := run(d)
		<-o.Ready()
		for n := range uint64(100) {
			s.submit(ids.LaneKeyed, keyedTask(n+1, "a", 10))
		}
		time.Sleep(25 * time.Second)
		if away.Load() != 0 || shelf.refusals.Load() != 0 {
			t.Errorf("%d tasks are on the shelf, %d more refusals", away.Load(), shelf.refusals.Load())
		}
		time.Sleep(10 * time.Second)
		if n := away.Load(); n < 50 {
			t.Errorf("%d tasks are on the shelf", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
