package validate

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/paging"
)

// Purge is one step of a purge of a tasklist, of a type or a group, or of a type or a group in a tasklist.
type Purge struct {
	// Filter finds its tasks; Cursor of it is from where on, without it from the newest.
	Filter *yardv1.ListRequest
	// Before is behind the newest task of the purge.
	Before  ids.TaskID
	Preview bool
	// Reason is that of each cancel.
	Reason string
	// Begins: a pass begins. Again: another one must follow, since this one has cancelled tasks, or left some undecided, or
	// something was unread when it began.
	Begins, Again bool
	// Idle is how many passes in a row before this one have cancelled nothing; Busy: this one has.
	Idle int
	Busy bool
	// Later: this is not the first pass. Running tasks are asked to stop in the first one only.
	Later bool
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
	return purge(filter, req, now)
}

// purge checks what the purges of tasklists, types and groups have in common.
func purge(filter *yardv1.ListRequest, req *yardv1.PurgeRequest, now time.Time) (Purge, error) {
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
	p := Purge{Filter: filter, Preview: req.Preview, Reason: ReasonOf("purged", req.By, req.Reason), Before: ids.NewTaskID(now.Add(-time.Duration(req.OlderThanMs)*time.Millisecond), 0, 0)}
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

// Cursor is where the step goes on that follows; at is where the list of tasks goes on, or empty where a pass begins.
func (p Purge) Cursor(at string) string {
	flag := func(b bool) string {
		if b {
			return "1"
		}
		return "0"
	}
	return strings.Join([]string{p.Before.String(), at, flag(p.Busy), flag(p.Again), flag(p.Later), strconv.Itoa(p.Idle)}, ".")
}

// goOn takes a cursor in; false: it is none.
func (p *Purge) goOn(cursor string) bool {
	const parts = 6
	c := strings.Split(cursor, ".")
	if len(c) != parts {
		return false
	}
	before, err := ids.ParseTaskID(c[0])
	if err != nil {
		return false
	}
	if c[1] != "" && !strings.HasPrefix(c[1], paging.Far) {
		if at, err := ids.ParseTaskID(c[1]); err != nil || at.String() > before.String() {
			return false
		}
	}
	p.Before, p.Filter.Cursor, p.Busy, p.Again = before, c[1], c[2] == "1", c[3] == "1"
	p.Later = c[4] == "1"
	p.Idle, err = strconv.Atoi(c[5])
	return err == nil && p.Idle >= 0
}
