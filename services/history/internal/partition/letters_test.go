package partition_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/letters"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
)

// letterStore is dead letters in memory, two on a page.
type letterStore struct {
	mu   sync.Mutex
	all  []partition.Letter
	fail bool
	// marked tells that marks are among them.
	marked bool
}

func (m *letterStore) failing(is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = is
}

func (m *letterStore) marks(are bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marked = are
}

func (m *letterStore) Oldest(_ context.Context, domain string, after uint64, _, _ int) (page partition.LetterPage, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	page.Sure = !m.marked
	for _, l := range m.all {
		switch {
		case l.Record.Domain != domain || l.Seq <= after:
		case len(page.Letters) == 2:
			page.Behind++
		default:
			page.Letters = append(page.Letters, l)
		}
	}
	if m.fail {
		err = errors.New("no answer")
	}
	return page, err
}

func (m *letterStore) Drop(_ context.Context, gone []replica.Letter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(l partition.Letter) bool {
		return slices.ContainsFunc(gone, func(g replica.Letter) bool { return g.Seq == l.Seq && g.ID == ids.TaskID(l.Record.Id) })
	})
	return nil
}

// die adds the letter of a task of a partition that ended some time ago.
func (m *letterStore) die(seq uint64, domain string, p int, ago time.Duration) ids.TaskID {
	id := ids.NewTaskID(time.Now(), p, seq)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, partition.Letter{Seq: seq, Record: &logv1.Record{Id: id[:], Domain: domain, Tasklist: "mail", FinishedAtMs: time.Now().Add(-ago).UnixMilli()}})
	return id
}

func (m *letterStore) left() (seqs []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.all {
		seqs = append(seqs, l.Seq)
	}
	return seqs
}

// TestDeadLettersBeyondTheLimitsGo: those of this partition, the oldest ones, and none that a redrive works on.
func TestDeadLettersBeyondTheLimitsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newShell(t), new(letterStore)
		d := s.deps("a")
		d.Timer = silentTimer{s.world} // so that the redrive waits
		o, stop := run(d)
		<-o.Ready()
		for seq := range uint64(8) {
			store.die(1+seq, "shop", 0, time.Hour)
		}
		store.die(9, "shop", 1, time.Hour)
		store.all[1].Record.Id = func() []byte { id := ids.NewTaskID(time.Now(), 1, 2); return id[:] }() // another partition's
		store.die(10, "bank", 0, time.Hour)
		redriven := ids.TaskID(store.all[2].Record.Id)
		s.event(&logv1.Event{
			Kind: logv1.EventKind_EVENT_KIND_REDRIVEN, TaskId: redriven[:], Domain: "shop", Redrive: &logv1.Redrive{Letter: 3, Tasklist: "mail", Request: 7},
		})
		var limits atomic.Pointer[letters.Limits]
		limits.Store(&letters.Limits{Max: 4}) // of nine: five are too many
		sweeper := &partition.Sweeper{Owner: o, Store: store, Limits: func() []partition.LetterLimits {
			return []partition.LetterLimits{{Domain: "shop", Limits: *limits.Load()}}
		}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		store.marks(true)
		go func() { ended <- sweeper.Run(ctx) }()
		time.Sleep(d.Config.SweepEvery + time.Second)
		if len(store.left()) != 10 {
			t.Errorf("by a number that counts marks: left are %v", store.left())
		}
		store.marks(false)
		time.Sleep(d.Config.SweepEvery + time.Second)
		if got := fmt.Sprint(store.left()); got != "[2 3 6 7 8 9 10]" {
			t.Errorf("by number: left are %v", got)
		}
		limits.Store(&letters.Limits{MaxAgeMS: time.Hour.Milliseconds()})
		store.die(11, "shop", 0, 0)
		time.Sleep(2 * d.Config.SweepEvery)
		if got := fmt.Sprint(store.left()); got != "[2 3 9 10 11]" {
			t.Errorf("by age: left are %v", got)
		}
		store.failing(true)
		time.Sleep(2 * time.Hour)
		store.failing(false)
		time.Sleep(2 * d.Config.SweepEvery)
		if got := fmt.Sprint(store.left()); got != "[2 3 9 10]" {
			t.Errorf("after a failure: left are %v", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = stop()
	})
}

// TestAnOwnerWithoutALeaseDeletesNoLetter: another one may redrive it.
func TestAnOwnerWithoutALeaseDeletesNoLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newShell(t), new(letterStore)
		d := s.deps("a")
		checkpoints := &unsaved{Checkpoints: d.Checkpoints}
		d.Checkpoints = checkpoints
		o, stop := run(d)
		<-o.Ready()
		store.die(1, "shop", 0, time.Hour)
		checkpoints.away.Store(true)
		time.Sleep(5 * time.Second) // the lease is over
		sweeper := &partition.Sweeper{Owner: o, Store: store, Limits: func() []partition.LetterLimits {
			return []partition.LetterLimits{{Domain: "shop", Limits: letters.Limits{MaxAgeMS: 1}}}
		}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- sweeper.Run(ctx) }()
		time.Sleep(3 * d.Config.SweepEvery)
		if len(store.left()) != 1 {
			t.Error("it is deleted")
		}
		checkpoints.away.Store(false)
		time.Sleep(3 * d.Config.SweepEvery)
		if len(store.left()) != 0 {
			t.Error("it is not deleted by an owner that has a lease again")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = stop()
	})
}
