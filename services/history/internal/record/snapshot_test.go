package record_test

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestASnapshotIsTheOneThatIsNamed, whole and unchanged: a takeover must not begin with another one.
func TestASnapshotIsTheOneThatIsNamed(t *testing.T) {
	snapshot := func(first byte) ([][]byte, replica.SnapshotRef) {
		s := &replica.Snapshot{Seq: 7}
		for n := range byte(3) {
			s.Tasks = append(s.Tasks, replica.SnapshotTask{Task: taskstate.Task{
				ID: ids.TaskID{first + n}, Domain: "shop", Tasklist: "mail", Type: "t", Priority: 3, State: taskstate.Ready, Policy: &taskstate.Policy{MaxAttempts: 1},
				Payload: taskstate.Blob{Data: make([]byte, 400<<10)},
			}})
		}
		var enc record.Encoder
		return enc.Snapshot(s, 1, 2)
	}
	chunks, ref := snapshot(1)
	testkit.MustEqual(t, "chunks", len(chunks), 3)
	read, err := record.NewDecoder().Snapshot(chunks, &ref)
	testkit.NoError(t, err)
	testkit.Equal(t, "tasks", len(read.Tasks), 3)

	other, _ := snapshot(5)
	changed := slices.Clone(chunks)
	changed[1] = bytes.Clone(changed[1])
	changed[1][len(changed[1])/2]++
	for what, torn := range map[string][][]byte{
		"nothing": nil, "the last one is missing": chunks[:2], "there are more": append(slices.Clone(chunks), chunks[2]),
		"in another order": {chunks[0], chunks[2], chunks[1]}, "a byte is changed": changed, "another one of this size": other,
	} {
		if _, err := record.NewDecoder().Snapshot(torn, &ref); !errors.Is(err, record.ErrTorn) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// filled sets each field of what v points to.
func filled(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			filled(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	default:
		v.SetUint(1)
	}
}

// TestASnapshotHasCommandsWhole: each field of what they ask for.
func TestASnapshotHasCommandsWhole(t *testing.T) {
	commands := []taskstate.Event{
		{Kind: taskstate.Cancel, Message: "by ann"},
		{Kind: taskstate.Changed, Update: new(taskstate.Update)},
		{Kind: taskstate.Skipped, OrderKey: "k", CancelRunning: true, Update: &taskstate.Update{Request: 3}},
		{Kind: taskstate.Redrove, Redrive: new(taskstate.Redrive)},
	}
	filled(reflect.ValueOf(commands[1].Update).Elem())
	filled(reflect.ValueOf(commands[3].Redrive).Elem())
	for i := range commands {
		ev := &commands[i]
		ev.ID, ev.Domain, ev.Seq, ev.Index, ev.At = ids.TaskID{byte(i)}, "shop", uint64(i+5), uint32(i+6), int64(i+7)
	}
	var enc record.Encoder
	chunks, ref := enc.Snapshot(&replica.Snapshot{Seq: 7, Waiting: commands}, 1, 2)
	read, err := record.NewDecoder().Snapshot(chunks, &ref)
	testkit.NoError(t, err)
	if !reflect.DeepEqual(read.Waiting, commands) {
		t.Errorf("read back %+v", read.Waiting)
	}
}

// TestASnapshotHasThePollOfAGrant: the next owner of a matching shard sends the grant to it again, with no more tasks than it takes.
func TestASnapshotHasThePollOfAGrant(t *testing.T) {
	want := dispatch.Poll{Domain: "shop", Worker: taskstate.NewWorker("ann", "ann-1", 0), ReplyTo: "inbox", JSON: true, Max: 7}
	s := &replica.Snapshot{Tasks: []replica.SnapshotTask{{
		Task:    taskstate.Task{ID: ids.NewTaskID(time.UnixMilli(1), 0, 1), Domain: "shop", Tasklist: "mail", Type: "t", Priority: 3, Policy: &taskstate.Policy{MaxAttempts: 1}, State: taskstate.Running},
		Granted: &dispatch.Granted{Shard: 1, Epoch: 2, Request: 3, Poll: &want},
	}}}
	chunks, ref := new(record.Encoder).Snapshot(s, 1, 1)
	got, err := record.NewDecoder().Snapshot(chunks, &ref)
	testkit.NoError(t, err)
	if poll := got.Tasks[0].Granted.Poll; !reflect.DeepEqual(*poll, want) {
		t.Errorf("read back %+v", poll)
	}
}
