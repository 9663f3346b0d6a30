package replica

import (
	"strconv"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestOnceUsedTasklistsAreForgotten: R9. A tenant names a new tasklist for each of its tasks.
func TestOnceUsedTasklistsAreForgotten(t *testing.T) {
	testkit.Slow(t, "reads tens of thousands of tasks")
	const start = 1_700_000_000_000
	now, fx := Now{MS: start}, new(Effects)
	r := New(Config{Shards: 1, WindowTasks: 100, WindowBytes: 1 << 20, CheckpointEveryMS: 500, PurgeEveryMS: 10_000, SnapshotBytes: 1 << 50, SnapshotEveryMS: 1 << 50}, begin(0))
	r.Step(Recovered{}, now, fx)
	seq := uint64(0)
	for n := range uint64(100_000) {
		id := ids.NewTaskID(time.UnixMilli(start), 0, n)
		e := &Entry{Task: taskstate.Task{ID: id, Domain: "shop", Tasklist: "list-" + strconv.FormatUint(n, 10), Type: "t", Priority: 3, Policy: &taskstate.Policy{MaxAttempts: 1}}}
		r.Step(&Submits{Lane: 3, Seq: seq + 1, At: now.MS, Tasks: []*Entry{e}}, now, fx)
		r.Step(&Events{Seq: seq + 2, At: now.MS, Events: []taskstate.Event{{Kind: taskstate.Cancel, ID: id}}}, now, fx)
		seq += 2
		now.MS += archiveLingerMS
		if r.Flush(now, fx); fx.Archive != nil {
			r.Step(Stored{Kind: JobArchive, Seq: n + 1}, now, fx)
		}
		*fx = Effects{}
	}
	testkit.Check(t, r.Check())
	testkit.Equal(t, "tasks in memory", r.Len(), 0)
}
