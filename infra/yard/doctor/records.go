package doctor

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Difference is the first difference of two ends of a task in state, attempts, times and result; "" = there is none.
func Difference(a, b *logv1.Record) string {
	switch {
	case a.State != b.State:
		return fmt.Sprintf("%s and %s", yardv1.TaskState(a.State).Name(), yardv1.TaskState(b.State).Name())
	case a.Version != b.Version:
		return fmt.Sprintf("%d and %d grants", a.Version, b.Version)
	case a.Failures != b.Failures:
		return fmt.Sprintf("%d and %d failures", a.Failures, b.Failures)
	case a.FinishedAtMs != b.FinishedAtMs:
		return fmt.Sprintf("finished at %s and %s", clock(a.FinishedAtMs), clock(b.FinishedAtMs))
	case len(a.Steps) != len(b.Steps):
		return fmt.Sprintf("%d and %d steps", len(a.Steps), len(b.Steps))
	case string(a.Result) != string(b.Result):
		return fmt.Sprintf("results %q and %q", a.Result, b.Result)
	}
	for i, s := range a.Steps {
		if x, y := DescribeStep(s), DescribeStep(b.Steps[i]); x != y {
			return fmt.Sprintf("%q and %q", x, y)
		}
	}
	return ""
}

// digest is the same for two ends between which there is no Difference.
func digest(r *logv1.Record) uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%d %d %d %d %d %q", r.State, r.Version, r.Failures, r.FinishedAtMs, len(r.Steps), r.Result)
	for _, s := range r.Steps {
		h.Write([]byte(DescribeStep(s)))
	}
	return h.Sum32()
}

// DescribeStep is one step of a task's history, for people.
func DescribeStep(s *logv1.Step) string {
	text := fmt.Sprintf("%s  %s", clock(s.AtMs), yardv1.TaskEventKind(s.Kind).Name())
	if s.Grant > 0 {
		text += fmt.Sprintf(", grant %d of %s", s.Grant, s.Worker)
	}
	if s.Message != "" {
		text += ", " + s.Message
	}
	if s.DueAtMs > 0 {
		text += ", due " + clock(s.DueAtMs)
	}
	return text
}

func clock(ms int64) string { return time.UnixMilli(ms).Format("15:04:05.000") }

// contradiction says how the history of a finished task cannot be true, or "". Steps that were dropped to keep the list bounded are no
// contradiction.
func contradiction(r *logv1.Record) string {
	var ended *logv1.Step
	grant := uint32(0)
	for _, s := range r.Steps {
		switch yardv1.TaskEventKind(s.Kind) {
		case yardv1.TaskEventKind_TASK_EVENT_KIND_STARTED:
			if s.Grant <= grant {
				return fmt.Sprintf("grant %d began after grant %d", s.Grant, grant)
			}
			if ended != nil {
				return fmt.Sprintf("grant %d began after its end: %s", s.Grant, DescribeStep(ended))
			}
			grant = s.Grant
		case yardv1.TaskEventKind_TASK_EVENT_KIND_COMPLETED, yardv1.TaskEventKind_TASK_EVENT_KIND_CANCELLED,
			yardv1.TaskEventKind_TASK_EVENT_KIND_DEAD, yardv1.TaskEventKind_TASK_EVENT_KIND_EXPIRED:
			if ended != nil {
				return fmt.Sprintf("it has two ends: %s; %s", DescribeStep(ended), DescribeStep(s))
			}
			ended = s
		default:
			if s.Kind > lastKind {
				ended = nil
			}
		}
	}
	return ""
}

// lastKind is the last kind of step that this program knows. A later one may bring a task back that has ended.
const lastKind = int32(yardv1.TaskEventKind_TASK_EVENT_KIND_UPDATED)

// cameBack tells whether a task may have ended before and come back, without its unique key.
func cameBack(r *logv1.Record) bool {
	return r.StepsDropped > 0 || slices.ContainsFunc(r.Steps, func(s *logv1.Step) bool { return s.Kind > lastKind })
}
