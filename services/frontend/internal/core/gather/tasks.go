package gather

import (
	"cmp"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// Newest sorts tasks newest first. A task on its way between two stores may be in both answers; history's, which come first, count.
// If an owner has more, the list ends with the last task that it reported, or where it stopped the search, which is end: older
// tasks of others come with its own. So a page may be empty and not the last.
func Newest(found []*rpcv1.ListTasksResponse) (all []*yardv1.Task, end string) {
	for _, f := range found {
		all = append(all, f.Tasks...)
		if n := len(f.Tasks); f.More && f.End != "" {
			end = max(end, f.End)
		} else if f.More && n > 0 {
			end = max(end, f.Tasks[n-1].TaskId)
		}
	}
	slices.SortStableFunc(all, func(a, b *yardv1.Task) int { return strings.Compare(b.TaskId, a.TaskId) })
	for i := len(all) - 1; i > 0; i-- { // the archive has earlier ends of a task that was redriven
		if before, t := all[i-1], all[i]; before.TaskId == t.TaskId && before.Redrives < t.Redrives {
			all[i-1] = t
		}
	}
	all = slices.CompactFunc(all, func(a, b *yardv1.Task) bool { return a.TaskId == b.TaskId })
	if older := slices.IndexFunc(all, func(t *yardv1.Task) bool { return t.TaskId < end }); older >= 0 {
		all = all[:older]
	}
	return all, end
}

// ByDue sorts tasks by due time. A task that was stored twice counts once.
func ByDue(all []*yardv1.Task) []*yardv1.Task {
	slices.SortFunc(all, func(a, b *yardv1.Task) int {
		return cmp.Or(cmp.Compare(a.DueAtMs, b.DueAtMs), strings.Compare(a.TaskId, b.TaskId))
	})
	return slices.CompactFunc(all, func(a, b *yardv1.Task) bool { return a.TaskId == b.TaskId })
}

// ReadyTask is a task that may start, and its place in the line of its tasklist.
type ReadyTask struct {
	validate.Place
	*yardv1.PeekedTask
}

// Ready puts the answers of the owners into one order; more: some of them have more. Each owner reports as many as a page takes, so a page of the merged list is exact.
func Ready(found []*rpcv1.ListTasksResponse, nowMS int64) (all []ReadyTask, more bool, err error) {
	for _, l := range found {
		more = more || l.More
		for i, t := range l.Tasks {
			id, err := ids.ParseTaskID(t.TaskId)
			if err != nil {
				return nil, false, err
			}
			at := l.ReadyAtMs[i]
			all = append(all, ReadyTask{validate.Place{Priority: t.Priority, ReadyAtMs: at, ID: id}, &yardv1.PeekedTask{Task: t, ReadyForMs: max(nowMS-at, 0)}})
		}
	}
	slices.SortFunc(all, func(a, b ReadyTask) int { return a.Compare(b.Place) })
	return all, more, nil
}
