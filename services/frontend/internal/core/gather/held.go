package gather

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Unfinished are the states of tasks that a domain holds.
var Unfinished = []yardv1.TaskState{
	yardv1.TaskState_TASK_STATE_WAITING, yardv1.TaskState_TASK_STATE_QUEUED, yardv1.TaskState_TASK_STATE_READY,
	yardv1.TaskState_TASK_STATE_RUNNING, yardv1.TaskState_TASK_STATE_BACKOFF,
}

// HoldsTasks refuses the deletion of a domain, with what was found in it.
func HoldsTasks(domain string, held map[yardv1.TaskState]int64) error {
	detail, texts := map[string]string{}, []string{}
	for _, state := range Unfinished {
		if n := held[state]; n > 0 {
			detail[state.Name()] = strconv.FormatInt(n, 10)
			texts = append(texts, fmt.Sprintf("%d %s", n, state.Name()))
		}
	}
	e := fault.At(fault.FailedPrecondition, "/name", "domain %q holds unfinished tasks (at least %s): cancel them, or let them end, and delete it then", domain, strings.Join(texts, ", "))
	e.Detail = detail
	return e
}
