package natshistory

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/porttest"
)

// TestAnEarlierLetterGoes that an owner has left behind: it died after it had stored the next one, and its successor stores that again.
func TestAnEarlierLetterGoes(t *testing.T) {
	t.Parallel()
	owner, _ := archivePorts(t)
	a, ctx := NewArchive(owner, porttest.Retention), t.Context()
	task := porttest.Finished("shop", time.UnixMilli(1_700_000_000_000), 7)
	other := porttest.Finished("shop", time.UnixMilli(1_700_000_000_000), 8)
	task.State, other.State = taskstate.Dead, taskstate.Dead
	if err := a.StoreDead(ctx, []*taskstate.Task{other, task}); err != nil {
		t.Fatal(err)
	}
	task.Parkings++
	subject := topology.Dead("shop", task.Tasklist, task.ID)
	store(t, owner.NATS, subject, a.enc.AppendTask(nil, task))
	if err := a.StoreDead(ctx, []*taskstate.Task{task}); err != nil {
		t.Fatal(err)
	}
	stream, err := owner.JetStream.Stream(ctx, topology.DeadLetterStream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(topology.DeadFilter("shop")))
	if err != nil || info.State.Subjects[subject] != 1 || len(info.State.Subjects) != 2 {
		t.Errorf("letters %v: %v", info.State.Subjects, err)
	}
}
