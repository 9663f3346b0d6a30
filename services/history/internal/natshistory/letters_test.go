package natshistory

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAnEarlierLetterGoes that an owner has left behind: it died after it had stored the next one, and its successor stores that again.
func TestAnEarlierLetterGoes(t *testing.T) {
	t.Parallel()
	owner, _ := serverPorts(t)
	a, ctx := NewArchive(owner, suiteRetention), t.Context()
	task := finishedTask("shop", time.UnixMilli(1_700_000_000_000), 7)
	other := finishedTask("shop", time.UnixMilli(1_700_000_000_000), 8)
	task.State, other.State = taskstate.Dead, taskstate.Dead
	testkit.NoError(t, a.StoreDead(ctx, []*taskstate.Task{other, task}))
	task.Parkings++
	subject := topology.Dead("shop", task.Tasklist, task.ID)
	store(t, owner.NATS, subject, a.enc.AppendTask(nil, task))
	testkit.NoError(t, a.StoreDead(ctx, []*taskstate.Task{task}))
	stream, err := owner.JetStream.Stream(ctx, topology.DeadLetterStream)
	testkit.NoError(t, err)
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(topology.DeadFilter("shop")))
	if err != nil || info.State.Subjects[subject] != 1 || len(info.State.Subjects) != 2 {
		t.Errorf("letters %v: %v", info.State.Subjects, err)
	}
}

// TestManyLettersAreDeleted: those that are dropped are gone for all readers; those that were stored again stay.
func TestManyLettersAreDeleted(t *testing.T) {
	t.Parallel()
	owner, reader := serverPorts(t)
	a, ctx := NewArchive(owner, suiteRetention), t.Context()
	all := dead(t, a, 30)
	drop := wanted(t, reader, all)
	for range 2 { // the answer to the first one was lost
		testkit.NoError(t, a.DropDead(ctx, drop[:20]))
	}
	for i, l := range find(t, reader, all) {
		if (l == nil) != (i < 20) {
			t.Errorf("the letter of task %d is %v", i, l)
		}
	}
	// One comes back, and dies again; an owner that is late drops what it knows.
	all[3].Parkings++
	testkit.NoError(t, a.StoreDead(ctx, all[3:4]))
	testkit.NoError(t, a.DropDead(ctx, drop))
	for i, l := range find(t, reader, all) {
		if (l != nil) != (i == 3) || i == 3 && l.Record.Parkings != 1 {
			t.Errorf("the letter of task %d is %v", i, l)
		}
	}
}

// dead are n tasks that have letters.
func dead(t *testing.T, a *Archive, n uint64) (all []*taskstate.Task) {
	for i := range n {
		task := finishedTask("shop", time.UnixMilli(1_700_000_000_000), i)
		task.State = taskstate.Dead
		all = append(all, task)
	}
	testkit.NoError(t, a.StoreDead(t.Context(), all))
	return all
}

func find(t *testing.T, r *Reader, all []*taskstate.Task) []*partition.Letter {
	var searches []replica.Search
	for _, task := range all {
		searches = append(searches, replica.Search{ID: task.ID, Domain: task.Domain})
	}
	found, err := r.Letters(t.Context(), searches)
	testkit.NoError(t, err)
	return found
}

func wanted(t *testing.T, r *Reader, all []*taskstate.Task) (drop []replica.Letter) {
	for i, l := range find(t, r, all) {
		drop = append(drop, replica.Letter{Domain: all[i].Domain, Tasklist: all[i].Tasklist, ID: all[i].ID, Seq: l.Seq})
	}
	return drop
}
