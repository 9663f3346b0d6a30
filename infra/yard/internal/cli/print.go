package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// timeForm is how times are printed for people: local, to the millisecond.
const timeForm = "2006-01-02 15:04:05.000"

// payloadShown is how much of a payload a table shows, characters.
const payloadShown = 200

// printJSON writes a message of the wire in the wire's own JSON form, and anything
// else by encoding/json, on one line.
func (a *app) printJSON(v any) error {
	var text []byte
	var err error
	if m, ok := v.(codec.Message); ok {
		text, err = codec.Marshal(codec.JSON, m)
	} else {
		text, err = json.Marshal(v)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "%s\n", text)
	return err
}

// plain is a text that does to a terminal what text does: much of what is printed was written by workers and submitters,
// of other rights or of other domains than who reads it. Its lines stay.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// plainLine is plain on one line.
func plainLine(s string) string {
	return plain(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(s))
}

// table is rows of aligned cells. A row of one cell is a sentence, an empty row a blank line: what is below is aligned again.
type table struct {
	wide bool
	rows [][]string
}

// wide is cells at the end of a row that only a wide table has.
type wide []any

func (t *table) row(cells ...any) {
	var row []string
	for _, c := range cells {
		if more, ok := c.(wide); !ok {
			row = append(row, plainLine(fmt.Sprint(c)))
		} else if t.wide {
			for _, c := range more {
				row = append(row, plainLine(fmt.Sprint(c)))
			}
		}
	}
	t.rows = append(t.rows, row)
}

// some adds a row if there is a text.
func (t *table) some(name, text string) {
	if text != "" {
		t.row(name, text)
	}
}

func (t *table) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		if _, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// show prints an answer: with --json the message, else the rows that fill adds.
func (a *app) show(message any, fill func(t *table)) error {
	if a.json {
		return a.printJSON(message)
	}
	t := &table{wide: a.wide}
	fill(t)
	return t.write(a.Out)
}

// each converts a list.
func each[T, W any](all []T, convert func(T) W) []W {
	converted := make([]W, len(all))
	for i, one := range all {
		converted[i] = convert(one)
	}
	return converted
}

// at prints a Unix time in ms; "-" where there is none.
func at(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).Format(timeForm)
}

// or is a value, or what stands for its zero.
func or[T comparable](value T, none string) any {
	if value == *new(T) {
		return none
	}
	return value
}

func orDash[T comparable](value T) any { return or(value, "-") }

// payload prints what of a payload fits a line; in a wide table, all of it. It is empty if there is no payload.
func (a *app) payload(p *yardv1.Payload) string {
	data := p.GetData()
	switch {
	case p == nil:
		return ""
	case p.Encoding == yardv1.Encoding_ENCODING_BINARY:
		return fmt.Sprintf("%d bytes", len(data))
	case len(data) > payloadShown && !a.wide:
		return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(string(data[:payloadShown]), ""), len(data))
	}
	return cmp.Or(string(data), "-")
}

// orderText is the order key of a task, and whether it waits for its turn.
func orderText(t *yardv1.Task) string {
	switch {
	case t.Blocked:
		return t.OrderKey + ", which it blocks: `yard keys unblock` or `yard keys skip` lets the key go on"
	case t.AwaitsTurn:
		return t.OrderKey + ", waits for the task before it"
	}
	return t.OrderKey
}

// uniqueText is the unique key of a task, and for how long it keeps it.
func uniqueText(t *yardv1.Task) string {
	if t.UniqueForMs == 0 {
		return t.UniqueKey
	}
	return fmt.Sprintf("%s, until %v after its end", t.UniqueKey, time.Duration(t.UniqueForMs)*time.Millisecond)
}

// printTask writes all that is known of a task, its history last.
func (a *app) printTask(t *yardv1.Task) error {
	return a.show(t, func(about *table) {
		about.row("task", t.TaskId)
		about.row("state", t.State.Name())
		about.row("type", t.Type)
		about.row("tasklist", t.Tasklist+" (domain "+t.Domain+")")
		about.row("priority", t.Priority)
		about.row("created", at(t.CreatedAtMs))
		about.row("due", at(t.DueAtMs))
		if t.StartByMs > 0 {
			about.row("start by", at(t.StartByMs))
		}
		if t.FinishByMs > 0 {
			about.row("finish by", at(t.FinishByMs))
		}
		about.row("finished", at(t.FinishedAtMs))
		about.row("attempts", fmt.Sprintf("%d (%d failed)", t.Grants, t.Failures))
		about.row("payload", orDash(a.payload(t.Payload)))
		about.some("result", a.payload(t.Result))
		about.some("progress", a.payload(t.Progress))
		about.some("last error", strings.TrimSpace(t.ErrorType+" "+t.ErrorMessage))
		about.some("worker", t.Worker)
		if t.CancelRequested {
			about.row("cancel", "requested")
		}
		if t.Revision > 1 {
			about.row("revision", t.Revision)
		}
		about.some("group", t.Group)
		if t.Cost > 1 {
			about.row("cost", fmt.Sprint(t.Cost, " starts of a rate"))
		}
		about.some("unique key", uniqueText(t))
		about.some("order key", orderText(t))
		about.some("headers", headerText(t.Headers))
		about.some("trace", t.Traceparent)
		if len(t.Events) == 0 {
			return
		}
		about.row()
		about.row("TIME", "EVENT", "GRANT", "WORKER", "MESSAGE")
		for _, e := range t.Events {
			about.row(eventCells(e)...)
		}
	})
}

func eventCells(e *yardv1.TaskEvent) []any {
	message := strings.TrimSpace(e.ErrorType + " " + e.Message)
	if e.DueAtMs > 0 {
		message = strings.TrimSpace(message + " (due " + at(e.DueAtMs) + ")")
	}
	return []any{at(e.AtMs), e.Kind.Name(), fmt.Sprint(orDash(e.Grant)), cmp.Or(e.Worker, "-"), message}
}

func (a *app) printTasks(tasks []*yardv1.Task) error {
	return a.show(&yardv1.ListResponse{Tasks: tasks}, func(t *table) {
		t.row("TASK", "STATE", "TYPE", "TASKLIST", "PRIO", "FAILURES", "CREATED", "DUE", wide{"FINISHED", "GRANTS", "WORKER", "ERROR"})
		for _, task := range tasks {
			t.row(task.TaskId, task.State.Name(), task.Type, task.Tasklist, task.Priority, task.Failures, at(task.CreatedAtMs), at(task.DueAtMs),
				wide{at(task.FinishedAtMs), task.Grants, orDash(task.Worker), orDash(oneLine(task.ErrorType + " " + task.ErrorMessage))})
		}
	})
}

// oneLine is a text with its line breaks and runs of blanks as single blanks.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
