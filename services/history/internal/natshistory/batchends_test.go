package natshistory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// member is a task of a batch that has ended.
func member(name batch.Name, p int, state taskstate.State) *taskstate.Task {
	t := finishedTask(name.Domain, time.Now(), rand.Uint64())
	t.ID = ids.NewTaskID(time.Now(), p, rand.Uint64())
	t.State, t.Extra = state, &taskstate.Extra{Batch: &taskstate.Batch{ID: name.ID, Made: name.Made}}
	return t
}

// TestAMemberIsKnownAfterItIsForgotten: an owner that takes over later than its domain keeps finished tasks does not end it, and count it, once more.
func TestAMemberIsKnownAfterItIsForgotten(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "stores much, or waits for the server")
	owner, _ := serverPorts(t)
	name := batch.Name{Domain: briefDomain, ID: "b", Made: 1}
	var all []*taskstate.Task
	for range 20 {
		all = append(all, member(name, 0, taskstate.Completed))
	}
	all[3].Parkings = 2
	testkit.NoError(t, testkit.Err(NewArchive(owner, suiteRetention).File(t.Context(), all, 0)))
	testkit.Eventually(t, time.Minute, func() error {
		r, err := natslog.Next(t.Context(), owner.JetStream, topology.ArchiveStream(0), topology.ArchiveTasks(0), 1)
		if err == nil && r != nil {
			err = fmt.Errorf("message %d is there still", r.Seq)
		}
		return err
	})
	there := map[replica.Stay]bool{}
	err := NewArchive(owner, suiteRetention).Tail(t.Context(), 0, func(some []replica.Stay) error {
		for _, s := range some {
			there[s] = true
		}
		return nil
	})
	testkit.NoError(t, err)
	for _, m := range all {
		if !there[replica.Stay{ID: m.ID, Parkings: m.Parkings}] {
			t.Fatalf("task %s is not known any more: %v", m.ID, there)
		}
	}
}

// unsure is an archive whose writes are cut off: some are made and not answered, some are answered and not made.
type unsure struct {
	partition.Archive
	dice *rand.Rand
}

var errCut = errors.New("cut off")

func (u unsure) File(ctx context.Context, tasks []*taskstate.Task, last uint64) (uint64, error) {
	switch u.dice.IntN(3) {
	case 0:
		return last, errCut
	case 1:
		_, _ = u.Archive.File(ctx, tasks, last) // no one hears of it
		return last, errCut
	}
	return u.Archive.File(ctx, tasks, last)
}

// TestEndsAreCountedAsTheyAreFiled: owners that replace each other, and file the same tasks at the same time, some of whose answers are lost, count each once.
func TestEndsAreCountedAsTheyAreFiled(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "stores much, or waits for the server")
	owner, _ := serverPorts(t)
	seed := testkit.Seed(t)
	var names []batch.Name
	for i := range 30 {
		names = append(names, batch.Name{Domain: "shop", ID: fmt.Sprint(i), Made: int64(i)})
	}
	states := []taskstate.State{taskstate.Completed, taskstate.Dead, taskstate.Cancelled, taskstate.Lapsed}
	var all []*taskstate.Task
	want := map[batch.Name]batch.Ends{}
	for range 1500 {
		name := names[seed.IntN(len(names))]
		m := member(name, 0, states[seed.IntN(len(states))])
		if seed.IntN(5) == 0 {
			m.Extra.Redriven = &taskstate.Redriven{Count: 1}
		}
		if seed.IntN(4) == 0 {
			m.Extra = nil
		} else {
			e := want[name]
			e.Add(m)
			want[name] = e
		}
		all = append(all, m)
	}
	var owners sync.WaitGroup
	for range 3 {
		dice := rand.New(rand.NewPCG(seed.Uint64(), 1))
		owners.Go(func() {
			cfg := Config{NATS: owner.NATS, JetStream: owner.JetStream, LogVersion: version1, Log: slog.New(slog.DiscardHandler)}
			for {
				a := unsure{NewArchive(cfg, suiteRetention), dice} // a new one knows nothing
				if fileAllMissing(t.Context(), a, all, dice) {
					return
				}
			}
		})
	}
	owners.Wait()
	cfg := Config{NATS: owner.NATS, JetStream: owner.JetStream, LogVersion: version1}
	for _, name := range names {
		if got, err := cfg.readEnds(t.Context(), 0, name); err != nil || got != want[name] {
			t.Errorf("batch %s: %+v %v, want %+v", name.ID, got, err, want[name])
		}
	}
}

// fileAllMissing files what is not there, as owners do, until it gives up; true = all is there.
func fileAllMissing(ctx context.Context, a unsure, all []*taskstate.Task, dice *rand.Rand) bool {
	for range 1 + dice.IntN(10) {
		last, err := a.Last(ctx)
		if err != nil {
			continue
		}
		there := map[replica.Stay]bool{}
		if err := a.Tail(ctx, 0, func(some []replica.Stay) error {
			for _, s := range some {
				there[s] = true
			}
			return nil
		}); err != nil {
			continue
		}
		var missing []*taskstate.Task
		for _, t := range all {
			if !there[replica.Stay{ID: t.ID, Parkings: t.Parkings}] {
				missing = append(missing, t)
			}
		}
		if len(missing) == 0 {
			return true
		}
		_, _ = a.File(ctx, missing[:min(len(missing), 1+dice.IntN(80))], last) // what is there is looked at again
	}
	return false
}
