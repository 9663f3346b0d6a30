package schedule

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// runAtLayout is RFC 3339 with the ms, if there are any.
const runAtLayout = "2006-01-02T15:04:05.999Z07:00"

// opening begins a placeholder. No JSON has it but in a string; a string may write it as \u007b{ if it is meant as it is.
const opening = "{{"

// placeholders are all of them, each with the longest text that replaces it; that of the schedule is its name.
var placeholders = map[string]string{
	"{{run_at}}": "2026-11-30T10:20:30.123+01:00", "{{run_at_ms}}": "253402300799999", "{{run_date}}": "2026-11-30", "{{schedule}}": "",
}

// Sizes are the most bytes that a task may have after the placeholders are replaced.
type Sizes struct {
	Payload, HeaderValue int
	// Headers counts names and values together.
	Headers int
}

// CheckTask checks the name of a schedule, that its task has no time of its own, and the placeholders of the task. The
// rest of the task is checked as each submitted task is.
func CheckTask(s *yardv1.Schedule, most Sizes) error {
	task := s.GetTask()
	if err := ids.CheckName(s.GetName()); err != nil {
		return invalid("/name", "%v", err)
	}
	switch {
	case task == nil:
		return invalid("/task", "is missing")
	case task.GetDelayMs() != 0:
		return invalid("/task/delay_ms", "is set: the schedule says when its task runs")
	case task.GetRunAtMs() != 0:
		return invalid("/task/run_at_ms", "is set: the schedule says when its task runs")
	}
	if task.GetPayload().GetEncoding() == yardv1.Encoding_ENCODING_JSON {
		if _, err := checkText("/task/payload", string(task.GetPayload().GetData()), s.GetName(), most.Payload); err != nil {
			return err
		}
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(task.GetHeaders())) {
		size, err := checkText("/task/headers/"+name, task.GetHeaders()[name], s.GetName(), most.HeaderValue)
		if err != nil {
			return err
		}
		total += len(name) + size
	}
	if total > most.Headers {
		return invalid("/task/headers", "takes %d bytes with its placeholders replaced, at most %d are allowed, names and values together", total, most.Headers)
	}
	return nil
}

// checkText refuses unknown placeholders, and returns the most bytes that a text may have with its placeholders replaced.
func checkText(path, text, schedule string, most int) (int, error) {
	size := len(text)
	for rest := text; ; {
		at := strings.Index(rest, opening)
		if at < 0 {
			break
		}
		rest = rest[at:]
		found, end := "", strings.Index(rest, "}}")
		if end >= 0 {
			found = rest[:end+2]
		}
		longest, ok := placeholders[found]
		if !ok {
			return 0, invalid(path, "has %.40q: the placeholders are %s", rest, strings.Join(slices.Sorted(maps.Keys(placeholders)), ", "))
		}
		if longest == "" {
			longest = schedule
		}
		size += len(longest) - len(found)
		rest = rest[len(found):]
	}
	if size > most {
		return 0, invalid(path, "is %d bytes long with its placeholders replaced, at most %d are allowed", size, most)
	}
	return size, nil
}

// Expand replaces the placeholders of a run's task: in a JSON payload, which is valid JSON afterwards as before, and in the
// values of headers. A binary payload is left as it is. The old bytes and headers are not changed, so that a shallow copy
// of a record is enough.
func (t *Times) Expand(r *logv1.Record, schedule string, at time.Time) {
	at = at.In(t.zone)
	texts := strings.NewReplacer(
		"{{run_at}}", at.Format(runAtLayout), "{{run_at_ms}}", strconv.FormatInt(at.UnixMilli(), 10),
		"{{run_date}}", at.Format(time.DateOnly), "{{schedule}}", schedule,
	)
	if text := string(r.Payload); r.PayloadEncoding == int32(yardv1.Encoding_ENCODING_JSON) && strings.Contains(text, opening) {
		r.Payload = []byte(texts.Replace(text))
	}
	headers := make([]*logv1.Header, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = &logv1.Header{Name: h.GetName(), Value: texts.Replace(h.GetValue())}
	}
	r.Headers = headers
}
