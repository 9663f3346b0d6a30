package api

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
)

// searchPages bounds the pages of listLimitMax tasks that one search by headers or a group reads.
const searchPages = 10

// lister is the part of an owner that lists.
type lister interface {
	List(ctx context.Context, f firing.Filter) (records [][]byte, more bool, err error)
}

// search lists waiting tasks, newest first, that are of this group and have these headers. The index holds neither, so with
// some it reads tasks until it has enough, or searchPages of them. With more, all from the newest down to end
// were looked at.
func search(ctx context.Context, owner lister, f firing.Filter, group string, headers map[string]string) (tasks []*yardv1.Task, end string, more bool, err error) {
	wanted, pages := f.Limit, 1
	if group != "" || len(headers) > 0 {
		f.Limit, pages = listLimitMax, searchPages
	}
	for more = true; more && pages > 0 && len(tasks) < wanted; pages-- {
		var records [][]byte
		if records, more, err = owner.List(ctx, f); err != nil {
			return nil, "", false, refusal(err)
		}
		for _, data := range records {
			r, err := decode(data)
			if err != nil {
				return nil, "", false, err
			}
			task := public(r, true)
			if end, f.Before = task.TaskId, [16]byte(r.Id); (group == "" || task.Group == group) && has(task.Headers, headers) {
				tasks = append(tasks, task)
			}
		}
		if len(records) == 0 {
			break // all of them were fired meanwhile
		}
	}
	return tasks, end, more, nil
}

// has tells whether all holds each of these headers with exactly this value.
func has(all, want map[string]string) bool {
	for name, value := range want {
		if got, ok := all[name]; !ok || got != value {
			return false
		}
	}
	return true
}
