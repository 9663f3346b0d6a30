package settings

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/tasks"
)

// TasklistCommand is `yard tasklist`.
func TasklistCommand(a *command.App) *cobra.Command {
	s := settings[yard.Tasklist, yard.ListedTasklist]{
		kind: "tasklist", name: "mail",
		putHelp: help{
			"Set or change the settings of a tasklist", `Set the settings of a tasklist, or change those that are given as flags. They hold within
a second; tasks accepted before keep their priority. A tasklist needs no settings to be used.`,
			`  yard tasklist put mail --description "what customers wait for" --priority 2 --max-concurrency 30`,
		},
		getHelp:  help{short: "Show the settings of a tasklist"},
		listHelp: help{short: "List the tasklists of the domain that have settings or unfinished tasks, or are paused or drained"},
		delete: help{short: "Delete the settings of a tasklist; its tasks go on without them", long: `Delete the settings of a tasklist, and no task. Tasks may still be submitted to it, with
the default priority, and those accepted before keep theirs.`},
		flags:    tasklistFlags,
		complete: func(l *yard.Tasklist, name string) { l.Name = name },
		fetch:    (*yard.Client).GetTasklist, store: (*yard.Client).PutTasklist, remove: (*yard.Client).DeleteTasklist, all: (*yard.Client).Tasklists,
		printStored: printSettings, printOne: printSettings, printDeleted: printSettings, printAll: printTasklists,
	}
	return command.Group("tasklist", "Put, get, list, describe, pause, drain and purge tasklists",
		slices.Concat(s.commands(a), stoppableTasklist.commands(a), []*cobra.Command{tasklistDescribe(a), tasklistPollers(a), tasklistPeek(a), tasks.TasklistPurge(a)})...)
}

func tasklistFlags(flags *pflag.FlagSet, l *yard.Tasklist) {
	flags.StringVar(&l.Description, "description", l.Description, "for people")
	flags.IntVarP(&l.Priority, "priority", "p", l.Priority, "of tasks that name none, 1 (most urgent) to 5; 0 = the default, 3")
	flags.IntVar(&l.MaxConcurrency, "max-concurrency", l.MaxConcurrency, "attempts of its tasks that run at once; 0 = no limit")
	perGroup(flags, &l.MaxConcurrencyPerGroup)
	rateFlags(flags, &l.Rate)
	flags.IntVar(&l.MaxQueued, "max-queued", l.MaxQueued, "refuse submits while about so many tasks are due and do not run yet; 0 = no cap")
	flags.IntVar(&l.MaxQueuedPerGroup, "max-queued-per-group", l.MaxQueuedPerGroup, "the same for the tasks of each group; 0 = no cap")
	flags.BoolVar(&l.StrictPriorities, "strict-priorities", l.StrictPriorities, "the most urgent priority always starts first, however long others wait; else they take turns")
	flags.IntVar(&l.Partitions, "partitions", l.Partitions, "spread it over so many partitions, for several nodes to serve it, 1 to 64; 0 = one")
	flags.IntVar(&l.PartitionsMax, "partitions-max", l.PartitionsMax, "have the engine set how many partitions, from --partitions to so many, by the rate of tasks, 2 to 64; 0 = as --partitions says")
}

// knownWithin bounds the question whether an unused tasklist has settings.
const knownWithin = 2 * time.Second

func tasklistDescribe(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "describe TASKLIST", Short: "Show how many tasks of a tasklist are queued, running and finished",
		Example: "  yard tasklist describe mail",
		Args:    command.ArgCount(1, 1, "one tasklist"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			d, err := c.Wire().DescribeTasklist(ctx, args[0])
			if err != nil {
				return err
			}
			known := a.JSON || !unused(d)
			if !known {
				// One with settings is known. A user who may not ask for those gets no answer.
				ctx, cancel := context.WithTimeout(ctx, knownWithin)
				defer cancel()
				_, err := c.GetTasklist(ctx, args[0])
				known = err == nil
			}
			return printTasklist(a, d, known)
		}),
	}
}

// partitionsText is over how many partitions a tasklist is spread, by its settings: 4, or 1 to 8, and how many there are now, if that is known.
func partitionsText(l yard.Tasklist) any {
	switch {
	case l.PartitionsMax == 0:
		return command.OrDash(l.Partitions)
	case l.PartitionsNow == 0:
		return fmt.Sprintf("%d to %d", max(1, l.Partitions), l.PartitionsMax)
	}
	return fmt.Sprintf("%d (%d to %d)", l.PartitionsNow, max(1, l.Partitions), l.PartitionsMax)
}

func printSettings(a *command.App, l yard.Tasklist) error {
	answer := &yardv1.GetTasklistResponse{Tasklist: l.Wire(), Pause: l.Pause.Wire(), Drain: l.Drain.Wire()}
	if l.PartitionsNow > 1 {
		answer.Partitions = int32(l.PartitionsNow)
	}
	return a.Show(answer, func(t *command.Table) {
		t.Row("TASKLIST", "PRIORITY", "CONCURRENCY", "DESCRIPTION", command.Wide{"PER GROUP", "RATE", "MAX QUEUED", "QUEUED PER GROUP", "PARTITIONS", "STRICT", "REVISION"})
		t.Row(l.Name, command.OrDash(l.Priority), command.OrDash(l.MaxConcurrency), l.Description,
			command.Wide{command.OrDash(l.MaxConcurrencyPerGroup), rateText(l.Rate), command.OrDash(l.MaxQueued), command.OrDash(l.MaxQueuedPerGroup), partitionsText(l), l.StrictPriorities, l.Revision})
		if l.Pause != nil {
			t.Row()
			t.Row("paused " + pauseOf(answer.Pause))
		}
		if l.Drain != nil {
			t.Row()
			t.Row("drained " + pauseOf(answer.Drain))
		}
	})
}

func printTasklists(a *command.App, all []yard.ListedTasklist) error {
	list := &yardv1.ListTasklistsResponse{}
	for _, l := range all {
		one := &yardv1.ListedTasklist{Name: l.Name, Ready: l.Ready, Running: l.Running, Backoff: l.Backoff, Waiting: l.Waiting, Pause: l.Pause.Wire(), Drain: l.Drain.Wire()}
		if l.Revision > 0 {
			one.Settings = l.Wire()
		}
		list.Tasklists = append(list.Tasklists, one)
	}
	return a.Show(list, func(t *command.Table) {
		t.Row("TASKLIST", "READY", "RUNNING", "BACKOFF", "WAITING", "PAUSED", "DRAINED", "PRIORITY", "DESCRIPTION",
			command.Wide{"CONCURRENCY", "PER GROUP", "RATE", "MAX QUEUED", "QUEUED PER GROUP", "PARTITIONS", "STRICT", "REVISION"})
		for _, l := range all {
			t.Row(l.Name, l.Ready, l.Running, l.Backoff, l.Waiting, pausedUntil(l.Pause), pausedUntil(l.Drain), command.OrDash(l.Priority), l.Description,
				command.Wide{command.OrDash(l.MaxConcurrency), command.OrDash(l.MaxConcurrencyPerGroup), rateText(l.Rate), command.OrDash(l.MaxQueued), command.OrDash(l.MaxQueuedPerGroup), partitionsText(l.Tasklist), l.StrictPriorities, command.OrDash(l.Revision)})
		}
	})
}

// unused tells whether nothing is known of a tasklist. Slots and paused types are the whole domain's, and what is
// unread the whole system's.
func unused(d *yardv1.DescribeTasklistResponse) bool {
	return d.Pause == nil && d.Drain == nil && d.Ready+d.Running+d.Backoff+d.Waiting+d.WaitingPolls+d.Pollers+d.Completed+d.Failed+d.Dead+d.Expired == 0
}

func printTasklist(a *command.App, d *yardv1.DescribeTasklistResponse, known bool) error {
	return a.Show(d, func(t *command.Table) {
		if !known {
			t.Row(fmt.Sprintf("tasklist %s (domain %s) is not known: it has no unfinished task, no poll, and no recently finished task; a tasklist exists as soon as it is used", d.Tasklist, a.Domain))
			unread(t, d.UnreadBatches)
			return
		}
		t.Row("tasklist", d.Tasklist+" (domain "+a.Domain+")")
		t.Some("paused", pauseHere(d.Pause))
		t.Some("drained", pauseHere(d.Drain))
		switch {
		case d.PartitionsMax > 0:
			t.Row("partitions", max(1, d.Partitions), fmt.Sprintf("(%d to %d)", d.PartitionsLeast, d.PartitionsMax))
		case d.Partitions > 0:
			t.Row("partitions", d.Partitions)
		}
		for _, p := range d.PerPartition {
			t.Row(fmt.Sprint("  partition ", p.Partition), p.Ready, fmt.Sprintf("ready, %d polls wait", p.WaitingPolls))
		}
		t.Row("ready", d.Ready, "oldest for "+(time.Duration(d.OldestReadyMs)*time.Millisecond).String())
		if d.MaxQueued > 0 {
			t.Row("queued", d.Queued, fmt.Sprintf("of %d, as submits see it", d.MaxQueued))
		}
		t.Row("running", d.Running)
		t.Row("backoff", d.Backoff, "failed, about to be tried again")
		t.Row("waiting", d.Waiting, "in the timer store")
		t.Row("unread", d.UnreadBatches, "batches on disk only")
		if d.LaggingLanes > 0 {
			t.Row("lags", d.LaggingLanes, "priorities go on without this domain: it needs more workers")
		}
		t.Row("polls", d.WaitingPolls, "waiting right now")
		t.Row("pollers", d.Pollers, "workers that polled in the last 5 minutes")
		t.Row("completed", d.Completed, "since the partitions' owners took over")
		t.Row("failed", d.Failed)
		t.Row("dead", d.Dead)
		t.Row("expired", d.Expired)
		t.Some("paused types of the domain", strings.Join(d.PausedTypes, ", "))
		t.Some("drained types of the domain", strings.Join(d.DrainedTypes, ", "))
		t.Some("paused groups of the domain", strings.Join(d.PausedGroups, ", "))
		t.Some("drained groups of the domain", strings.Join(d.DrainedGroups, ", "))
		for _, s := range d.Slots {
			of := fmt.Sprintf("of %d", s.Limit)
			if s.Ref != ids.TasklistLimit(d.Tasklist) {
				of += ", in the whole domain"
			}
			t.Row("slots of "+s.Ref, s.InUse, of)
		}
	})
}

// unread says how much is not known to be of a tasklist.
func unread(t *command.Table, batches int64) {
	if batches > 0 {
		t.Row(fmt.Sprintf("%d batches of tasks are on disk only, and some may be for it", batches))
	}
}
