package settings

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/tasks"
)

// GroupCommand is `yard group`.
func GroupCommand(a *command.App) *cobra.Command {
	s := settings[yard.Group, yard.Group]{
		kind: "group", name: "acme",
		putHelp: help{"Set the weight of a group, and its number in limits per group", `Set the weight of a group, or change the settings that are given as flags. Tasks name their group
(yard task submit --group). While several groups wait, each gets its weight's share; the default
weight is 1. A group of weight 0 runs when nothing else of its tasklist is ready.
The weight counts for tasks that become ready from then on. --max-concurrency is the group's own
number in limits that count per group, within a second and for what waits, too.`, `  yard group put acme --weight 4 --description "the large plan"
  yard group put acme --max-concurrency 10
  yard group put trial --weight 0`},
		getHelp:  help{short: "Show the settings of a group, its pause and its drain"},
		listHelp: help{short: "List the groups of the domain that have settings, are paused or drained"},
		delete:   help{short: "Delete the settings of a group: its weight is 1 again"},
		flags: func(flags *pflag.FlagSet, g *yard.Group) {
			flags.StringVar(&g.Description, "description", g.Description, "for people")
			flags.Var(weight(g), "weight", "its share beside other groups, 0.01 to 100; 0 = when nothing else is ready; default 1")
			flags.IntVar(&g.MaxConcurrency, "max-concurrency", g.MaxConcurrency, "its attempts that run at once in each limit that counts per group; 0 = as the limit says")
		},
		complete: func(g *yard.Group, name string) { g.Name = name },
		fetch:    (*yard.Client).GetGroup, store: (*yard.Client).PutGroup, remove: (*yard.Client).DeleteGroup, all: (*yard.Client).Groups,
		printStored: printGroup, printOne: printGroup, printDeleted: printGroup, printAll: printGroups,
	}
	return command.Group("group", "Set the weights of groups of tasks; pause, drain and purge them",
		slices.Concat(s.commands(a), stoppableGroup.commands(a), []*cobra.Command{tasks.GroupPurge(a)})...)
}

// weight is the weight of a group on the command line. To the engine 0 is no weight, so the group says that it is idle.
func weight(g *yard.Group) command.Value {
	return command.Value{Kind: "float", Show: func() string { return fmt.Sprint(g.Weight) }, Parse: func(text string) (err error) {
		g.Weight, err = strconv.ParseFloat(text, 64)
		g.Idle = g.Weight == 0
		return err
	}}
}

func printGroup(a *command.App, g yard.Group) error {
	answer := &yardv1.GetGroupResponse{Group: g.Wire(), Pause: g.Pause.Wire(), Drain: g.Drain.Wire()}
	return a.Show(answer, func(about *command.Table) {
		about.Row("group", g.Name+" (domain "+a.Domain+")")
		about.Some("paused", pauseOf(answer.Pause))
		about.Some("drained", pauseOf(answer.Drain))
		about.Row("description", command.OrDash(g.Description))
		about.Row("weight", g.Weight)
		about.Row("concurrency", command.Or(g.MaxConcurrency, "as limits per group say"))
	})
}

func printGroups(a *command.App, groups []yard.Group) error {
	list := &yardv1.ListGroupsResponse{Groups: command.Each(groups, yard.Group.Wire)}
	for _, g := range groups {
		if g.Pause != nil || g.Drain != nil {
			list.Stopped = append(list.Stopped, &yardv1.StoppedGroup{Name: g.Name, Pause: g.Pause.Wire(), Drain: g.Drain.Wire()})
		}
	}
	return a.Show(list, func(t *command.Table) {
		t.Row("GROUP", "WEIGHT", "CONCURRENCY", "PAUSED", "DRAINED", "DESCRIPTION", command.Wide{"REVISION"})
		for _, g := range groups {
			t.Row(g.Name, g.Weight, command.OrDash(g.MaxConcurrency), pausedUntil(g.Pause), pausedUntil(g.Drain), g.Description, command.Wide{g.Revision})
		}
	})
}
