package validate

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/paging"
)

// Get checks a get and returns the id it asks for.
func Get(req *yardv1.GetRequest) (ids.TaskID, error) {
	id, err := ids.ParseTaskID(req.TaskId)
	if err != nil {
		return id, invalid("/task_id", "%v", err)
	}
	return id, between("/wait_ms", req.WaitMs, 0, ms(WaitMax))
}

// Explain checks a tasks.explain.
func Explain(req *yardv1.ExplainRequest) (ids.TaskID, error) {
	return Get(&yardv1.GetRequest{TaskId: req.TaskId})
}

// StuckTasks checks a tasks.stuck and fills in its default limit.
func StuckTasks(req *yardv1.StuckTasksRequest) error {
	req.Limit = cmp.Or(req.Limit, ListDefault)
	return firstError(
		ifNamed(name, "/tasklist", req.Tasklist),
		ifNamed(typeName, "/type", req.Type),
		optional("/running_for_ms", req.RunningForMs, 1, ms(AheadMax)),
		between("/limit", req.Limit, 1, ListMax),
	)
}

// List checks a list and fills in its default limit.
func List(req *yardv1.ListRequest) error {
	if err := firstError(
		ifNamed(name, "/tasklist", req.Tasklist),
		ifNamed(typeName, "/type", req.Type),
		ifNamed(typeName, "/group", req.Group),
		orderKey("/order_key", req.OrderKey),
		ifNamed(BatchID, "/batch_id", req.BatchId),
		states(req.States, yardv1.TaskState_name, "no task state"),
	); err != nil {
		return err
	}
	if len(req.Headers) > HeaderFiltersMax {
		return invalid("/headers", "holds %d headers, at most %d are allowed", len(req.Headers), HeaderFiltersMax)
	}
	if err := headers("/headers", req.Headers); err != nil {
		return err
	}
	req.Limit = cmp.Or(req.Limit, ListDefault)
	if req.DueWithinMs != 0 {
		return firstError(due(req), between("/limit", req.Limit, 1, ListMax))
	}
	if req.Cursor != "" && !(strings.HasPrefix(req.Cursor, paging.Far) && !OnlyQueued(req)) {
		_, err := ids.ParseTaskID(req.Cursor)
		if part, _ := QueuedCursor(req.Cursor); OnlyQueued(req) != (part >= 0) || part < 0 && err != nil {
			return notNext()
		}
	}
	return between("/limit", req.Limit, 1, ListMax)
}

// AuditLimit checks a list of what operators did, and fills its default in.
func AuditLimit(req *yardv1.ListAuditRequest) (limit int, err error) {
	req.Limit = cmp.Or(req.Limit, ListDefault)
	return int(req.Limit), between("/limit", req.Limit, 1, topology.AuditEntries)
}

// OnlyQueued reports whether a list is of the tasks that are not admitted. It goes by partitions, and by their logs.
func OnlyQueued(req *yardv1.ListRequest) bool {
	return len(req.States) == 1 && req.States[0] == yardv1.TaskState_TASK_STATE_QUEUED
}

// QueuedPlace spells a place in a list of such tasks: a partition, and what its owner calls a place there.
func QueuedPlace(partition int, at string) string { return strconv.Itoa(partition) + "/" + at }

// QueuedCursor is the place that a cursor spells, the first one if it is empty; a partition below 0 if it spells none.
func QueuedCursor(cursor string) (partition int, at string) {
	if cursor == "" {
		return 0, ""
	}
	part, at, ok := strings.Cut(cursor, "/")
	if n, err := strconv.ParseUint(part, 10, 16); ok && err == nil {
		return int(n), at
	}
	return -1, ""
}

// Describe checks a tasklists.describe.
func Describe(req *yardv1.DescribeTasklistRequest) error { return name("/tasklist", req.Tasklist) }
