package firing_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var errRefused = errors.New("refused")

// luck is what becomes of an append on a bad network. It is safe for concurrent use.
type luck struct {
	mu     sync.Mutex
	random *rand.Rand
}

func (l *luck) try(store func() error) error {
	l.mu.Lock()
	n := l.random.IntN(6)
	l.mu.Unlock()
	switch n {
	case 0:
		return errRefused
	case 1:
		return firing.ErrOutcomeUnknown // lost on the way there
	case 2:
		if err := store(); err != nil { // lost on the way back
			return err
		}
		return firing.ErrOutcomeUnknown
	}
	return store()
}

type lossyLog struct {
	firing.Log
	luck *luck
}

func (l lossyLog) Append(ctx context.Context, all []firing.Submit, c due.Cursor, expected uint64) (seq uint64, err error) {
	err = l.luck.try(func() (err error) {
		seq, err = l.Log.Append(ctx, all, c, expected)
		return err
	})
	return seq, err
}

type lossyPruner struct {
	firing.Pruner
	luck *luck
}

func (l lossyPruner) Early(ctx context.Context, bucket int64, data []byte) error {
	return l.luck.try(func() error { return l.Pruner.Early(ctx, bucket, data) })
}

func TestI10_LostAnswersNeitherDoubleNorLose(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for tasks to be due, or for answers that do not come")
	w := newWorld(t)
	var want []*logv1.Record
	for range 20 {
		want = append(want, w.park(20, time.Now().Add(50*time.Millisecond))...)
	}
	far := w.park(20, time.Now().Add(time.Hour))
	lucky := &luck{random: testkit.Seed(t)}
	r := w.own(func(d *firing.Deps) {
		d.Config.ChunkTasksMax = 20
		d.Log, d.Pruner = lossyLog{d.Log, lucky}, lossyPruner{d.Pruner, lucky}
	})
	for _, id := range idsOf(far) {
		testkit.Eventually(t, soon, func() error {
			a, err := r.FireEarly(t.Context(), []due.Wanted{{ID: id}})
			if err == nil && len(a.Coming)+len(a.Fired) != 1 {
				t.Fatalf("%+v", a)
			}
			return err
		})
	}
	w.eachOnce(append(want, far...))
}

// goneStore has lost the message of a sequence.
type goneStore struct {
	firing.Store
	seq uint64
}

func (s goneStore) Get(ctx context.Context, seq uint64) ([]byte, error) {
	if seq == s.seq {
		return nil, firing.ErrGone
	}
	return s.Store.Get(ctx, seq)
}

func TestALostRecordDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.park(2, time.Now().Add(-time.Second))
	want := w.park(2, time.Now().Add(-time.Second))
	r := w.own(func(d *firing.Deps) {
		d.Config.CacheBytes = 0
		d.Store = goneStore{d.Store, 1}
	})
	w.eachOnce(want)
	waits(t, r, 0)
}
