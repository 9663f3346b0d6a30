package partition_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// written is the sizes of the batches that an owner writes, in bytes, and how many of what each has.
type written struct {
	mu           sync.Mutex
	bytes, parts []int
}

func (w *written) add(bytes, parts int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes, w.parts = append(w.bytes, bytes), append(w.parts, parts)
}

// most is the largest batch, and all that they have together.
func (w *written) most() (bytes, parts, all int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, n := range w.parts {
		bytes, parts, all = max(bytes, w.bytes[i]), max(parts, n), all+n
	}
	return bytes, parts, all
}

// notedTimer notes what is parked.
type notedTimer struct {
	partition.TimerStore
	written
}

func (m *notedTimer) Park(ctx context.Context, bucket int64, batch []byte) (uint64, error) {
	var b logv1.Batch
	if err := b.UnmarshalVT(batch); err != nil {
		return 0, err
	}
	m.add(len(batch), len(b.Tasks))
	return m.TimerStore.Park(ctx, bucket, batch)
}

// notedLog notes the expiries that its owner appends.
type notedLog struct {
	partition.Log
	written
}

func (m *notedLog) Append(ctx context.Context, turn []byte, after uint64) (uint64, error) {
	var t logv1.Turn
	if err := t.UnmarshalVT(turn); err != nil {
		return 0, err
	}
	for _, b := range t.Batches {
		m.add(b.SizeVT(), len(b.Events))
	}
	return m.Log.Append(ctx, turn, after)
}

// TestWhatIsParkedIsWrittenInBatches of bounded size, each task once; then it leaves memory, and what comes later can be parked.
func TestWhatIsParkedIsWrittenInBatches(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		timer := &notedTimer{TimerStore: d.TimerStore}
		d.TimerStore = timer
		s.serves(d)
		const all = 12
		due := time.Now().Add(time.Hour).UnixMilli()
		for round := range uint64(2) {
			var tasks []*logv1.Record
			for n := range uint64(all / 2) {
				r := task(newID(1+n+round*all), "shop")
				r.DueAtMs, r.Payload = due, make([]byte, 150<<10)
				tasks = append(tasks, r)
			}
			s.submit(ids.LaneLater, tasks...)
			time.Sleep(5 * time.Second)
		}
		bytes, _, parked := timer.most()
		if bytes > 410<<10 || parked != all || len(timer.parts) != all/2 {
			t.Errorf("%d tasks in %d batches of up to %d bytes, want %d, two in each", parked, len(timer.parts), bytes, all)
		}
	})
}

// epochsTimer notes the epochs that batches are parked under.
type epochsTimer struct {
	partition.TimerStore
	all *[]uint64
}

func (m epochsTimer) Park(ctx context.Context, bucket int64, batch []byte) (uint64, error) {
	var b logv1.Batch
	if err := b.UnmarshalVT(batch); err != nil {
		return 0, err
	}
	*m.all = append(*m.all, b.Epoch)
	return m.TimerStore.Park(ctx, bucket, batch)
}

// TestL2_WhatIsParkedNamesTheEpochOfItsOwner, by which the timer knows that it is void behind the fence of a newer one; that one does not park it again.
func TestL2_WhatIsParkedNamesTheEpochOfItsOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		var epochs []uint64
		for n, node := range []string{"a", "b"} {
			d := s.deps(node)
			d.TimerStore = epochsTimer{d.TimerStore, &epochs}
			_, stop := ready(d)
			r := task(newID(uint64(n+1)), "shop")
			r.DueAtMs = time.Now().Add(time.Hour).UnixMilli()
			s.submit(ids.LaneLater, r)
			time.Sleep(time.Second) // there is no snapshot so far
			testkit.NoError(t, stop())
			fence, err := s.world.Fenced(t.Context())
			testkit.NoError(t, err)
			testkit.Equal(t, "the fence", fence, uint64(n+1))
		}
		testkit.Equal(t, "epochs", epochs, []uint64{1, 2})
	})
}

// TestEventsAreWrittenInBatches of bounded size: as many tasks expire at once as a window has.
func TestEventsAreWrittenInBatches(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		log := &notedLog{Log: d.Log}
		d.Log = log
		_, stop := ready(d)
		const all = 2500
		for n := range uint64(all / 100) {
			var tasks []*logv1.Record
			for i := range uint64(100) {
				r := task(newID(1+100*n+i), "shop")
				r.Expiry = &logv1.Expiry{StartWithinMs: 5000}
				tasks = append(tasks, r)
			}
			s.submit(3, tasks...)
		}
		time.Sleep(time.Minute)
		testkit.Check(t, stop())
		if bytes, most, appended := log.most(); most > 2000 || bytes > 400<<10 || appended != all || len(s.archived()) != all {
			t.Errorf("%d expiries, up to %d in a batch of up to %d bytes, want %d; %d tasks have ended", appended, most, bytes, all, len(s.archived()))
		}
	})
}
