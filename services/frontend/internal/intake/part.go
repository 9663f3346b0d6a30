package intake

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/caps"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// part is what a request has in one partition, as one write of the log: as a submission it has the tasks that are still open.
type part struct {
	submission
	// of is the request, and open are those of its tasks of which nothing is decided, in the order of accepted.Records. It began with all of them.
	of   *submission
	open []openTask
	all  int
	// lane and seq are the message that its tasks are in; 0 = none so far.
	lane ids.Lane
	seq  uint64
	// done takes how a group commit went.
	done chan error
}

// openTask is one of which nothing is decided.
type openTask struct {
	// where is its place in the request.
	where int
	// over is the last message about its key that it was checked by.
	over uint64
	// asked is the task that it was to replace if history has not said whether it did; zero: none. sent are those that a replacement was sent to.
	asked ids.TaskID
	sent  []ids.TaskID
}

// partTasksMax bounds the tasks with unique keys of one part, and of one atomic batch: each is a message more.
const partTasksMax = 400

// conflictsOf are what the tasks of a request ask for where their key is taken, by task; nil = nothing but the task that has it.
func conflictsOf(tasks []*yardv1.NewTask) map[int]yardv1.OnConflict {
	var all map[int]yardv1.OnConflict
	for i, t := range tasks {
		if t.OnConflict != yardv1.OnConflict_ON_CONFLICT_EXISTING {
			if all == nil {
				all = map[int]yardv1.OnConflict{}
			}
			all[i] = t.OnConflict
		}
	}
	return all
}

// decide notes what became of an open task, by its place in the part. Each has its own place, so parts and tasks may be decided at once.
func (pt *part) decide(k int, id ids.TaskID, outcome yardv1.SubmitOutcome) {
	pt.of.results[pt.open[k].where] = &yardv1.SubmitResult{TaskId: id.String(), Outcome: outcome}
}

// created notes that all open tasks are stored.
func (pt *part) created() {
	for k, r := range pt.accepted.Records {
		pt.decide(k, ids.TaskID(r.Id), yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED)
	}
}

// keep leaves only those open that are not decided.
func (pt *part) keep() {
	n := 0
	for k, one := range pt.open {
		if pt.of.results[one.where] == nil {
			pt.open[n], pt.accepted.Records[n] = one, pt.accepted.Records[k]
			n++
		}
	}
	pt.open, pt.accepted.Records = pt.open[:n], pt.accepted.Records[:n]
	if pt.Replaces = pt.replaces(); n > 0 {
		pt.accepted = validate.Gather(pt.accepted.Records)
	}
}

// keyPartition is where a task with a unique key goes: with the others of its order key, or with its own.
func keyPartition(r *logv1.Record, n topology.Partitioning) int {
	if r.Order != nil {
		return topology.OrderKeyPartition(r.Domain, r.Order.Key, n)
	}
	return topology.UniqueKeyPartition(r.Domain, r.Unique.Key, n)
}

// uniqueSubject is where the log says which task has the unique key of one. With an order key it counts among the tasks of that.
func uniqueSubject(p int, r *logv1.Record) string {
	return topology.UniqueKey(p, r.Domain, topology.UniqueWithin(r.Order.GetKey(), r.Unique.Key))
}

// replaces tells whether a try may have changed the task that has a key.
func (pt *part) replaces() bool {
	return slices.ContainsFunc(pt.open, func(one openTask) bool { return pt.of.conflicts[one.where] == yardv1.OnConflict_ON_CONFLICT_REPLACE })
}

// resolveEach ends what a request with unique keys holds: of its tasks those are in the log that parts have still, each in the message of its part.
func (h *counted) resolveEach(parts []*part) {
	if h.by == nil {
		return
	}
	h.by.mu.Lock()
	defer h.by.mu.Unlock()
	for _, t := range h.all {
		for _, pt := range parts {
			if n := min(pt.queued(t.Of), t.N); n > 0 && pt.seq > 0 {
				h.by.book.Stored(caps.Tasks{Of: t.Of, N: n}, pt.partition, pt.lane, pt.seq)
				t.N -= n
			}
		}
		h.by.book.Dropped(t)
	}
	h.by = nil
}

// queued counts the tasks of a part that a queue has from now on.
func (pt *part) queued(of caps.Queue) (n int64) {
	for _, r := range pt.accepted.Records {
		if r.DueAtMs == 0 && r.Tasklist == of.Tasklist && (of.Group == "" || r.Group == of.Group) {
			n++
		}
	}
	return n
}
