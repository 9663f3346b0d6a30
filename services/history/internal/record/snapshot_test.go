package record_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
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
