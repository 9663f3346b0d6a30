package record_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI8_CarriedStatesNameTheShardOfTheirAttempt: where it is another one than that of the first partition. One that says nothing is read as one of
// that. No other record names a shard.
func TestI8_CarriedStatesNameTheShardOfTheirAttempt(t *testing.T) {
	for shard, want := range map[uint16]uint32{0: 0, 1: 1, 1024: 1024} {
		task := taskstate.Task{
			ID: ids.TaskID(readable.Id), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: &taskstate.Policy{MaxAttempts: 1},
			State: taskstate.Running, Version: 2, Position: ids.NewPosition(5, 3),
			Attempt: taskstate.Attempt{Nonce: 7, Worker: taskstate.NewWorker("w", ""), Limits: taskstate.NewPath("type/send"), Shard: shard},
		}
		enc := new(record.Encoder)
		stored := enc.Carried(&replica.Proposal{Kind: taskstate.Carried, ID: task.ID, Carried: &task, AsOf: 9})
		if got := stored.Attempt.Shard; got != want {
			t.Errorf("shard %d is stored as %d", shard, got)
		}
		if plain := enc.Record(&task); plain.Attempt.Shard != 0 {
			t.Errorf("the record of a task names shard %d", plain.Attempt.Shard)
		}
		before := stored.CloneVT()
		before.Attempt.Shard = 0
		if got, was := stored.SizeVT(), before.SizeVT(); (got == was) != (shard == 0) {
			t.Errorf("shard %d: %d bytes, without it %d", shard, got, was)
		}
		data, err := (&logv1.EventBatch{Events: []*logv1.Event{
			{Kind: logv1.EventKind_EVENT_KIND_CARRIED, TaskId: readable.Id, Position: uint64(task.Position), Carried: stored},
		}}).MarshalVT()
		testkit.NoError(t, err)
		events, err := record.NewDecoder().Events(data)
		testkit.NoError(t, err)
		if got := events.Carried[0].Entry.Attempt.Shard; got != shard {
			t.Errorf("shard %d is read as %d", shard, got)
		}
	}
}

// A record of another kind that names a shard is read without it: only carried states run.
func TestOnlyCarriedStatesHaveAShard(t *testing.T) {
	r := changed(func(r *logv1.Record) { r.Version, r.Attempt = 1, &logv1.Attempt{Nonce: 1, Shard: 3} })
	e, err := record.NewDecoder().Entry(r)
	if err != nil || e.Attempt.Nonce != 1 || e.Attempt.Shard != 0 {
		t.Errorf("%+v, %v", e.Attempt, err)
	}
	again := new(record.Encoder).Record(&e.Task)
	if !proto.Equal(again.Attempt, &logv1.Attempt{Nonce: 1}) {
		t.Errorf("written as %v", again.Attempt)
	}
}
