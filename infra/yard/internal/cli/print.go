package cli

import (
	"encoding/json"
	"fmt"
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

// table is rows of aligned cells.
type table struct {
	rows [][]string
}

func (t *table) row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = plainLine(fmt.Sprint(c))
	}
	t.rows = append(t.rows, row)
}

func (a *app) printTable(t *table) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		if _, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// at prints a Unix time in ms; "-" where there is none.
func at(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).Format(timeForm)
}

// span prints a duration; "-" for none.
func span(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// payload prints what of a payload fits a line; in a wide table, all of it.
func (a *app) payload(p *yardv1.Payload) string {
	data := p.GetData()
	if p.GetEncoding() == yardv1.Encoding_ENCODING_BINARY {
		return fmt.Sprintf("%d bytes", len(data))
	}
	if len(data) > payloadShown && !a.wide {
		return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(string(data[:payloadShown]), ""), len(data))
	}
	return orDash(string(data))
}

// orderText is the order key of a task, and whether it waits for its turn.
func orderText(t *yardv1.Task) string {
	if t.Blocked {
		return t.OrderKey + ", which it blocks: `yard keys unblock` or `yard keys skip` lets the key go on"
	}
	if t.AwaitsTurn {
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
	if a.json {
		return a.printJSON(t)
	}
	var about table
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
	about.row("payload", a.payload(t.Payload))
	for _, optional := range []struct {
		name, text string
		show       bool
	}{
		{"result", a.payload(t.Result), t.Result != nil},
		{"progress", a.payload(t.Progress), t.Progress != nil},
		{"last error", strings.TrimSpace(t.ErrorType + " " + t.ErrorMessage), t.ErrorMessage != "" || t.ErrorType != ""},
		{"worker", t.Worker, t.Worker != ""},
		{"cancel", "requested", t.CancelRequested},
		{"revision", fmt.Sprint(t.Revision), t.Revision > 1},
		{"group", t.Group, t.Group != ""},
		{"cost", fmt.Sprint(t.Cost, " starts of a rate"), t.Cost > 1},
		{"unique key", uniqueText(t), t.UniqueKey != ""},
		{"order key", orderText(t), t.OrderKey != ""},
		{"headers", headerText(t.Headers), len(t.Headers) > 0},
		{"trace", t.Traceparent, t.Traceparent != ""},
	} {
		if optional.show {
			about.row(optional.name, optional.text)
		}
	}
	if err := a.printTable(&about); err != nil {
		return err
	}
	if len(t.Events) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	var steps table
	steps.row("TIME", "EVENT", "GRANT", "WORKER", "MESSAGE")
	for _, e := range t.Events {
		steps.row(eventCells(e)...)
	}
	return a.printTable(&steps)
}

func eventCells(e *yardv1.TaskEvent) []any {
	grant := "-"
	if e.Grant > 0 {
		grant = fmt.Sprint(e.Grant)
	}
	message := strings.TrimSpace(e.ErrorType + " " + e.Message)
	if e.DueAtMs > 0 {
		message = strings.TrimSpace(message + " (due " + at(e.DueAtMs) + ")")
	}
	return []any{at(e.AtMs), e.Kind.Name(), grant, orDash(e.Worker), message}
}

func (a *app) printTasks(tasks []*yardv1.Task) error {
	if a.json {
		return a.printJSON(&yardv1.ListResponse{Tasks: tasks})
	}
	var t table
	t.row(a.more([]any{"TASK", "STATE", "TYPE", "TASKLIST", "PRIO", "FAILURES", "CREATED", "DUE"}, "FINISHED", "GRANTS", "WORKER", "ERROR")...)
	for _, task := range tasks {
		t.row(a.more([]any{task.TaskId, task.State.Name(), task.Type, task.Tasklist, task.Priority, task.Failures, at(task.CreatedAtMs), at(task.DueAtMs)},
			at(task.FinishedAtMs), task.Grants, orDash(task.Worker), orDash(oneLine(task.ErrorType+" "+task.ErrorMessage)))...)
	}
	return a.printTable(&t)
}

// oneLine is a text with its line breaks and runs of blanks as single blanks.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
