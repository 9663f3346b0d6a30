package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/yard/doctor"
)

const clockForm = "15:04:05.000"

func clock(ms int64) string { return time.UnixMilli(ms).Format(clockForm) }

// tell is the history of a task from the ledger and from the archive.
func tell(e *evidence) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  task %s (%s): %s, type %s, max_attempts %d\n", e.Key, cmp.Or(e.ID, "no id"), e.Asked, e.Type, e.MaxAttempts)
	for _, line := range ledgerLines(e.Task) {
		fmt.Fprintf(&b, "    %s  %s\n", line.at.Format(clockForm), line.text)
	}
	for _, c := range e.copies() {
		b.WriteString(tellCopy(c))
	}
	return b.String()
}

// line is one thing that happened.
type line struct {
	at   time.Time
	text string
}

// ledgerLines is what the outside saw, in order of time.
func ledgerLines(t *Task) []line {
	lines := []line{{t.SentAt, "submitted"}, {t.AnsweredAt, string(t.Fate)}}
	answer := func(what, code string, at time.Time) line { return line{at, what + ": " + cmp.Or(code, "no answer")} }
	for _, g := range t.Grants {
		lines = append(lines, line{g.At, fmt.Sprintf("%s got it, lease until %s", g.Worker, g.LeaseEnd.Format(clockForm))})
		for _, o := range g.Outcomes {
			what := fmt.Sprintf("%s of %s", o.Kind, g.Worker)
			lines = append(lines, line{o.SentAt, what + " sent"}, answer(what, o.Code, o.AnsweredAt))
		}
	}
	for _, c := range t.Cancels {
		code := c.Code
		if c.Running {
			code += ", it was running"
		}
		lines = append(lines, line{c.SentAt, "cancel sent"}, answer("cancel", code, c.AnsweredAt))
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	return lines
}

// tellCopy is one archived copy.
func tellCopy(c Copy) string {
	var b strings.Builder
	r := c.Record
	fmt.Fprintf(&b, "  %s: %s %s, %d grants, %d failures, finished %s, result %s\n",
		c.Where, c.id(), c.state().Name(), r.Version, r.Failures, clock(r.FinishedAtMs), cmp.Or(string(r.Result), "none"))
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "    %s\n", doctor.DescribeStep(s))
	}
	return b.String()
}
