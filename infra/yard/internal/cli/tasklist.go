package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

func (a *app) tasklistCommand() *cobra.Command {
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
		printStored: a.printSettings, printOne: a.printSettings, printDeleted: a.printSettings, printAll: a.printTasklists,
	}
	return group("tasklist", "Put, get, list, describe, pause, drain and purge tasklists",
		slices.Concat(s.commands(a), stoppableTasklist.commands(a), []*cobra.Command{a.tasklistDescribe(), a.tasklistPollers(), a.tasklistPeek(), a.tasklistPurge()})...)
}

func tasklistFlags(flags *pflag.FlagSet, l *yard.Tasklist) {
	flags.StringVar(&l.Description, "description", l.Description, "for people")
	flags.IntVarP(&l.Priority, "priority", "p", l.Priority, "of tasks that name none, 1 (most urgent) to 5; 0 = the default, 3")
	flags.IntVar(&l.MaxConcurrency, "max-concurrency", l.MaxConcurrency, "attempts of its tasks that run at once; 0 = no limit")
	perGroup(flags, &l.MaxConcurrencyPerGroup)
	rateFlags(flags, &l.Rate)
	flags.IntVar(&l.MaxQueued, "max-queued", l.MaxQueued, "refuse submits while about so many tasks are due and do not run yet; 0 = no cap")
	flags.IntVar(&l.MaxQueuedPerGroup, "max-queued-per-group", l.MaxQueuedPerGroup, "the same for the tasks of each group; 0 = no cap")
	flags.IntVar(&l.Partitions, "partitions", l.Partitions, "spread it over so many partitions, for several nodes to serve it, 1 to 64; 0 = one")
	flags.IntVar(&l.PartitionsMax, "partitions-max", l.PartitionsMax, "have the engine set how many partitions, from --partitions to so many, by the rate of tasks, 2 to 64; 0 = as --partitions says")
}

// knownWithin bounds the question whether an unused tasklist has settings.
const knownWithin = 2 * time.Second

func (a *app) tasklistDescribe() *cobra.Command {
	return &cobra.Command{
		Use: "describe TASKLIST", Short: "Show how many tasks of a tasklist are queued, running and finished",
		Example: "  yard tasklist describe mail",
		Args:    argCount(1, 1, "one tasklist"),
		RunE: a.client(func(ctx context.Context, c *yard.Client, args []string) error {
			d, err := c.Wire().DescribeTasklist(ctx, args[0])
			if err != nil {
				return err
			}
			known := a.json || !unused(d)
			if !known {
				// One with settings is known. Who may not ask for those gets no answer.
				ctx, cancel := context.WithTimeout(ctx, knownWithin)
				defer cancel()
				_, err := c.GetTasklist(ctx, args[0])
				known = err == nil
			}
			return a.printTasklist(d, known)
		}),
	}
}

// partitionsText is over how many partitions a tasklist is spread, by its settings: 4, or 1 to 8, and how many there are now, if that is known.
func partitionsText(l yard.Tasklist) any {
	switch {
	case l.PartitionsMax == 0:
		return orDash(l.Partitions)
	case l.PartitionsNow == 0:
		return fmt.Sprintf("%d to %d", max(1, l.Partitions), l.PartitionsMax)
	}
	return fmt.Sprintf("%d (%d to %d)", l.PartitionsNow, max(1, l.Partitions), l.PartitionsMax)
}

func (a *app) printSettings(l yard.Tasklist) error {
	answer := &yardv1.GetTasklistResponse{Tasklist: l.Wire(), Pause: l.Pause.Wire(), Drain: l.Drain.Wire()}
	if l.PartitionsNow > 1 {
		answer.Partitions = int32(l.PartitionsNow)
	}
	return a.show(answer, func(t *table) {
		t.row("TASKLIST", "PRIORITY", "CONCURRENCY", "DESCRIPTION", wide{"PER GROUP", "RATE", "MAX QUEUED", "QUEUED PER GROUP", "PARTITIONS", "REVISION"})
		t.row(l.Name, orDash(l.Priority), orDash(l.MaxConcurrency), l.Description,
			wide{orDash(l.MaxConcurrencyPerGroup), rateText(l.Rate), orDash(l.MaxQueued), orDash(l.MaxQueuedPerGroup), partitionsText(l), l.Revision})
		if l.Pause != nil {
			t.row()
			t.row("paused " + pauseOf(answer.Pause))
		}
		if l.Drain != nil {
			t.row()
			t.row("drained " + pauseOf(answer.Drain))
		}
	})
}

func (a *app) printTasklists(all []yard.ListedTasklist) error {
	list := &yardv1.ListTasklistsResponse{}
	for _, l := range all {
		one := &yardv1.ListedTasklist{Name: l.Name, Ready: l.Ready, Running: l.Running, Backoff: l.Backoff, Waiting: l.Waiting, Pause: l.Pause.Wire(), Drain: l.Drain.Wire()}
		if l.Revision > 0 {
			one.Settings = l.Wire()
		}
		list.Tasklists = append(list.Tasklists, one)
	}
	return a.show(list, func(t *table) {
		t.row("TASKLIST", "READY", "RUNNING", "BACKOFF", "WAITING", "PAUSED", "DRAINED", "PRIORITY", "DESCRIPTION",
			wide{"CONCURRENCY", "PER GROUP", "RATE", "MAX QUEUED", "QUEUED PER GROUP", "PARTITIONS", "REVISION"})
		for _, l := range all {
			t.row(l.Name, l.Ready, l.Running, l.Backoff, l.Waiting, pausedUntil(l.Pause), pausedUntil(l.Drain), orDash(l.Priority), l.Description,
				wide{orDash(l.MaxConcurrency), orDash(l.MaxConcurrencyPerGroup), rateText(l.Rate), orDash(l.MaxQueued), orDash(l.MaxQueuedPerGroup), partitionsText(l.Tasklist), orDash(l.Revision)})
		}
	})
}

// unused tells whether nothing is known of a tasklist. Slots and paused types are the whole domain's, and what is
// unread the whole system's.
func unused(d *yardv1.DescribeTasklistResponse) bool {
	return d.Pause == nil && d.Drain == nil && d.Ready+d.Running+d.Backoff+d.Waiting+d.WaitingPolls+d.Pollers+d.Completed+d.Failed+d.Dead+d.Expired == 0
}

func (a *app) printTasklist(d *yardv1.DescribeTasklistResponse, known bool) error {
	return a.show(d, func(t *table) {
		if !known {
			t.row(fmt.Sprintf("tasklist %s (domain %s) is not known: it has no unfinished task, no poll, and no recently finished task; a tasklist exists as soon as it is used", d.Tasklist, a.domain))
			t.unread(d.UnreadBatches)
			return
		}
		t.row("tasklist", d.Tasklist+" (domain "+a.domain+")")
		t.some("paused", pauseOf(d.Pause))
		t.some("drained", pauseOf(d.Drain))
		switch {
		case d.PartitionsMax > 0:
			t.row("partitions", max(1, d.Partitions), fmt.Sprintf("(%d to %d)", d.PartitionsLeast, d.PartitionsMax))
		case d.Partitions > 0:
			t.row("partitions", d.Partitions)
		}
		t.row("ready", d.Ready, "oldest for "+(time.Duration(d.OldestReadyMs)*time.Millisecond).String())
		if d.MaxQueued > 0 {
			t.row("queued", d.Queued, fmt.Sprintf("of %d, as submits see it", d.MaxQueued))
		}
		t.row("running", d.Running)
		t.row("backoff", d.Backoff, "failed, about to be tried again")
		t.row("waiting", d.Waiting, "in the timer store")
		t.row("unread", d.UnreadBatches, "batches on disk only")
		if d.LaggingLanes > 0 {
			t.row("lags", d.LaggingLanes, "priorities go on without this domain: it needs more workers")
		}
		t.row("polls", d.WaitingPolls, "waiting right now")
		t.row("pollers", d.Pollers, "workers that polled in the last 5 minutes")
		t.row("completed", d.Completed, "since the partitions' owners took over")
		t.row("failed", d.Failed)
		t.row("dead", d.Dead)
		t.row("expired", d.Expired)
		t.some("paused types of the domain", strings.Join(d.PausedTypes, ", "))
		t.some("drained types of the domain", strings.Join(d.DrainedTypes, ", "))
		t.some("paused groups of the domain", strings.Join(d.PausedGroups, ", "))
		t.some("drained groups of the domain", strings.Join(d.DrainedGroups, ", "))
		for _, s := range d.Slots {
			t.row("slots of "+s.Ref, s.InUse, fmt.Sprintf("of %d, in the whole domain", s.Limit))
		}
	})
}

// unread says how much is not known to be of a tasklist.
func (t *table) unread(batches int64) {
	if batches > 0 {
		t.row(fmt.Sprintf("%d batches of tasks are on disk only, and some may be for it", batches))
	}
}
