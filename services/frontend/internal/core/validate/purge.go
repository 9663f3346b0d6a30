package validate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/paging"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/purge"
)

// Purge is one step of a purge of a tasklist, of a type or a group, or of a type or a group in a tasklist.
type Purge struct {
	// Filter finds its tasks; Cursor of it is from where on, without it from the newest.
	Filter  *yardv1.ListRequest
	Preview bool
	// Reason is that of each cancel.
	Reason string
	purge.Passes
}

// purgeable are the states of tasks that a purge cancels.
var purgeable = []yardv1.TaskState{yardv1.TaskState_TASK_STATE_WAITING, yardv1.TaskState_TASK_STATE_READY, yardv1.TaskState_TASK_STATE_BACKOFF}

// Purge checks a purge.
func (k Kind) Purge(req *yardv1.PurgeRequest, now time.Time) (Purge, error) {
	filter := &yardv1.ListRequest{Tasklist: req.Tasklist, Type: req.Type, Group: req.Group}
	named := map[Kind]*string{Tasklist: &filter.Tasklist, Type: &filter.Type, Group: &filter.Group}[k]
	if *named != "" {
		return Purge{}, invalid("/"+string(k), "is that of /name, which is enough")
	}
	if err := firstError(k.Get(req), ifNamed(name, "/tasklist", req.Tasklist), ifNamed(typeName, "/type", req.Type)); err != nil {
		return Purge{}, err
	}
	*named = req.Name
	return purgeOf(filter, req, now)
}

// purgeOf checks what the purges of tasklists, types, groups and batches have in common.
func purgeOf(filter *yardv1.ListRequest, req *yardv1.PurgeRequest, now time.Time) (Purge, error) {
	limit := cmp.Or(req.Limit, PurgeDefault)
	if err := firstError(
		few("/states", len(req.States), len(purgeable)),
		each("/states", req.States, mayPurge),
		ifNamed(typeName, "/group", filter.Group),
		between("/older_than_ms", req.OlderThanMs, 0, ms(AheadMax)),
		between("/limit", limit, 1, PurgeMax),
		text("/reason", req.Reason, PurgeReasonBytesMax),
		text("/by", req.By, PauserBytesMax),
	); err != nil {
		return Purge{}, err
	}
	filter.Limit, filter.States = limit, slices.Clone(req.States)
	if len(filter.States) == 0 {
		filter.States = slices.Clone(purgeable)
	}
	if req.Running {
		filter.States = append(filter.States, yardv1.TaskState_TASK_STATE_RUNNING)
	}
	p := Purge{Filter: filter, Preview: req.Preview, Reason: ReasonOf("purged", req.By, req.Reason)}
	p.Before = ids.NewTaskID(now.Add(-time.Duration(req.OlderThanMs)*time.Millisecond), 0, 0)
	if req.Cursor != "" && !p.goOn(req.Cursor) {
		return Purge{}, notNext()
	}
	if p.Later {
		filter.States = slices.DeleteFunc(filter.States, func(s yardv1.TaskState) bool { return s == yardv1.TaskState_TASK_STATE_RUNNING })
	}
	if p.Begins = filter.Cursor == ""; p.Begins {
		filter.Cursor = p.Before.String()
	}
	return p, nil
}

func mayPurge(path string, s yardv1.TaskState) error {
	if !slices.Contains(purgeable, s) {
		return invalid(path, "must be waiting, ready or backoff; /running selects running tasks")
	}
	return nil
}

// goOn takes a cursor in; false: it is none.
func (p *Purge) goOn(cursor string) bool {
	passes, at, ok := purge.Parse(cursor)
	if !ok {
		return false
	}
	if at != "" && !strings.HasPrefix(at, paging.Far) {
		if id, err := ids.ParseTaskID(at); err != nil || id.String() > passes.Before.String() {
			return false
		}
	}
	p.Passes, p.Filter.Cursor = passes, at
	return true
}
