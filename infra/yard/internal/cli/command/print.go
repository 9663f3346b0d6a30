package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
)

// TimeForm is how times are printed for people: local, to the millisecond, with their zone. Flags take it, too.
const TimeForm = "2006-01-02 15:04:05.000-07:00"

// ParseTime reads the value of a flag: a time as RFC 3339 has it, or as it is printed; "" = no time.
func ParseTime(flag, text string) (at time.Time, err error) {
	if text == "" {
		return at, nil
	}
	for _, form := range []string{time.RFC3339, TimeForm} {
		if at, err = time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	return at, Usagef("--%s %q: want a time such as 2026-12-24T18:00:00+01:00", flag, text)
}

// PrintJSON writes a message of the wire in the wire's own JSON form, and anything
// else by encoding/json, on one line.
func (a *App) PrintJSON(v any) error {
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

// Plain is a text that does to a terminal what text does: much of what is printed was written by workers and submitters,
// of other rights or of other domains than who reads it. Its lines stay.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// PlainLine is plain on one line.
func PlainLine(s string) string {
	return Plain(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(s))
}

// Table is rows of aligned cells. A row of one cell is a sentence, an empty row a blank line: what is below is aligned again.
type Table struct {
	wide bool
	Rows [][]string
}

// Wide is cells at the end of a row that only a wide table has.
type Wide []any

// Row adds cells.
func (t *Table) Row(cells ...any) {
	var row []string
	for _, c := range cells {
		if more, ok := c.(Wide); !ok {
			row = append(row, PlainLine(fmt.Sprint(c)))
		} else if t.wide {
			for _, c := range more {
				row = append(row, PlainLine(fmt.Sprint(c)))
			}
		}
	}
	t.Rows = append(t.Rows, row)
}

// Some adds a row if there is a text.
func (t *Table) Some(name, text string) {
	if text != "" {
		t.Row(name, text)
	}
}

// Write prints the rows.
func (t *Table) Write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range t.Rows {
		if _, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// Show prints an answer: with --json the message, else the rows that fill adds.
func (a *App) Show(message any, fill func(t *Table)) error {
	if a.JSON {
		return a.PrintJSON(message)
	}
	t := &Table{wide: a.Wide}
	fill(t)
	return t.Write(a.Out)
}

// At prints a Unix time in ms; "-" where there is none.
func At(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).Format(TimeForm)
}

// Or is a value, or what stands for its zero.
func Or[T comparable](value T, none string) any {
	if value == *new(T) {
		return none
	}
	return value
}

// OrDash is a value, or a dash for its zero.
func OrDash[T comparable](value T) any { return Or(value, "-") }

// OneLine is a text with its line breaks and runs of blanks as single blanks.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Preview says that nothing was done.
func (t *Table) Preview(is bool) {
	if is {
		t.Row(NotDone)
	}
}

// More says that there are others.
func (t *Table) More(are bool) {
	if are {
		t.Row("there may be more: see --limit")
	}
}

// Ago prints how long ago something was.
func Ago(ms int64) string { return Lasting(ms) + " ago" }

// Lasting prints a duration of the API, to the second where it is long.
func Lasting(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d >= 10*time.Second {
		d = d.Round(time.Second)
	}
	return d.String()
}

// What --output takes.
const (
	OutputTable = "table"
	OutputWide  = "wide"
	OutputJSON  = "json"
)

// output is the flag --output. It sets how everything is printed, errors too.
func (a *App) output() Value {
	show := func() string {
		switch {
		case a.JSON:
			return OutputJSON
		case a.Wide:
			return OutputWide
		default:
			return OutputTable
		}
	}
	return Value{"form", show, func(text string) error {
		switch text {
		case OutputTable, OutputWide, OutputJSON:
			a.JSON, a.Wide = text == OutputJSON, text == OutputWide
			return nil
		default:
			return errors.New("want table, wide or json")
		}
	}}
}
