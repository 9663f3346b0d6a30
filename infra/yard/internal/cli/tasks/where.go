package tasks

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/bulk"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// whereFlags select tasks in place of ids.
type whereFlags struct {
	where []string
	rate  int
	yes   bool
}

// whereStates are the states of tasks that have not ended.
var whereStates = []yard.State{yard.StateWaiting, yard.StateQueued, yard.StateReady, yard.StateBackoff, yard.StateRunning}

const whereHelp = `

With --where in place of task ids it is about all tasks that match, wherever they wait: in memory, delayed, or on disk.
A condition is tasklist=NAME, type=NAME, group=NAME, header.NAME=VALUE, state=waiting|queued|ready|backoff|running or
older-than=DURATION. Several must all hold; a second state is another one. Without a state, tasks that run are left out.
Without --yes the tasks are only counted. It goes step by step at --rate, with progress; ctrl-C ends it, and the same
command again goes on.`

func (f *whereFlags) add(flags *pflag.FlagSet, yes string) {
	flags.StringArrayVar(&f.where, "where", nil, "a condition such as tasklist=mail, in place of task ids; may be given several times")
	flags.IntVar(&f.rate, "rate", 200, "with --where: the most tasks a second")
	flags.BoolVar(&f.yes, "yes", false, yes)
}

// check refuses neither ids nor conditions, and both.
func (f *whereFlags) check(named []string, most int) error {
	switch {
	case len(f.where) == 0 && (len(named) == 0 || len(named) > most):
		return command.Usagef("want 1 to %d task ids, or --where", most)
	case len(f.where) > 0 && len(named) > 0:
		return command.Usagef("name task ids, or conditions with --where, not both")
	}
	return command.CheckRate(f.rate, "task")
}

// options are what the flags say.
func (f *whereFlags) options() (o bulk.Options, err error) {
	o.Preview, o.Rate = !f.yes, f.rate
	for _, condition := range f.where {
		name, value, ok := strings.Cut(condition, "=")
		header, isHeader := strings.CutPrefix(name, "header.")
		switch {
		case !ok || value == "":
			err = command.Usagef("--where %s: want name=value", condition)
		case name == "tasklist":
			o.Filter.Tasklist = value
		case name == "type":
			o.Filter.Type = value
		case name == "group":
			o.Filter.Group = value
		case name == "state" && slices.Contains(whereStates, yard.State(value)):
			o.Filter.States = append(o.Filter.States, yard.State(value))
		case name == "older-than":
			o.OlderThan, err = command.ParseDuration(value)
		case isHeader && header != "":
			if o.Filter.Headers == nil {
				o.Filter.Headers = map[string]string{}
			}
			o.Filter.Headers[header] = value
		default:
			err = command.Usagef("--where %s: there is no such condition", condition)
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

// run changes, or counts, the tasks that match.
func (f *whereFlags) run(a *command.App, done string, do func(o bulk.Options) (bulk.Done, error)) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	r := a.Reporter(done)
	o.Progress = func(d bulk.Done) { r.Step(d.Found, d.Changed) }
	d, err := do(o)
	if err != nil {
		return r.Given(err, d.Found, d.Changed)
	}
	err = a.Show(d, func(t *command.Table) {
		t.Row("FOUND", strings.ToUpper(done), "REFUSED", "UNDECIDED")
		t.Row(d.Found, d.Changed, d.Refused, d.Undecided)
		if o.Preview && len(d.Sample) > 0 {
			t.Row("TASK", "TYPE", "TASKLIST", "STATE")
			for _, one := range d.Sample {
				t.Row(one.ID, one.Type, one.Tasklist, one.State)
			}
		}
		t.Preview(o.Preview)
	})
	if err == nil && !o.Preview && d.Undecided > 0 {
		err = errUndecided
	}
	return err
}

// cancelWhere cancels the tasks that match.
func (f *whereFlags) cancelWhere(ctx context.Context, a *command.App, c *yard.Client, reason string) error {
	return f.run(a, "cancelled", func(o bulk.Options) (bulk.Done, error) { return bulk.Cancel(ctx, c, reason, o) })
}

// updateWhere changes the tasks that match.
func (f *whereFlags) updateWhere(ctx context.Context, a *command.App, c *yard.Client, u yard.Update) error {
	return f.run(a, "changed", func(o bulk.Options) (bulk.Done, error) { return bulk.Update(ctx, c, u, o) })
}
