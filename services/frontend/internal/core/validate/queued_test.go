package validate

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestCursorsOfQueuedTasks: a list of tasks on disk goes on at a place in a partition, and others go on at a task.
func TestCursorsOfQueuedTasks(t *testing.T) {
	queued, ready := []yardv1.TaskState{yardv1.TaskState_TASK_STATE_QUEUED}, []yardv1.TaskState{yardv1.TaskState_TASK_STATE_READY}
	for _, good := range []*yardv1.ListRequest{
		{States: queued},
		{States: queued, Cursor: QueuedPlace(0, "")},
		{States: queued, Cursor: QueuedPlace(31, "3.77.1")},
		{States: ready, Cursor: ids.Last.String()},
		{States: append(ready, queued...), Cursor: ids.Last.String()},
	} {
		testkit.NoError(t, List(good))
	}
	for _, bad := range []*yardv1.ListRequest{
		{States: queued, Cursor: ids.Last.String()},
		{States: queued, Cursor: "/"},
		{States: queued, Cursor: "-1/"},
		{States: queued, Cursor: "70000/"},
		{States: queued, Cursor: "3"},
		{States: ready, Cursor: QueuedPlace(1, "")},
		{Cursor: QueuedPlace(1, "")},
	} {
		wants{fault.InvalidArgument, "/cursor"}.check(t, List(bad))
	}
	part, at := QueuedCursor(QueuedPlace(12, "1.2.3"))
	testkit.Equal(t, "the partition", part, 12)
	testkit.Equal(t, "the place", at, "1.2.3")
}
