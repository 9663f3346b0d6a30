package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/tasks"
)

const (
	// completionTimeout bounds what a person waits for after pressing the tab key.
	completionTimeout = 2 * time.Second
	// completionTasks is how many tasks are looked at for ids and names of tasklists.
	completionTasks = 200
)

// names finds what a word may be completed to.
type names func(ctx context.Context, c *yard.Client) ([]string, error)

// completions tells the shells' completion what flags and arguments may be.
func completions(a *command.App, root *cobra.Command) {
	flags := map[string]cobra.CompletionFunc{
		"output":  words(command.OutputTable, command.OutputWide, command.OutputJSON),
		"context": completeContext,
		"state":   words("waiting", "queued", "ready", "running", "backoff", "completed", "dead", "cancelled", "expired"),
		"kind":    words(topology.EventNames()...),
		"tables":  words("auto", "memory", "redis"),
		command.DomainFlag: complete(a, func(ctx context.Context, c *yard.Client) ([]string, error) {
			domains, err := c.Admin().ListDomains(ctx)
			return command.Each(domains, func(d yard.Domain) string { return d.Name }), err
		}),
		"tasklist": complete(a, tasklistNames),
		"type":     complete(a, ofTasks(func(t *yardv1.Task) string { return t.Type })),
	}
	types := complete(a, func(ctx context.Context, c *yard.Client) ([]string, error) {
		all, err := command.Gather(c.Types(ctx))
		return command.Each(all, func(t yard.TaskType) string { return t.Name }), err
	})
	settings := complete(a, func(ctx context.Context, c *yard.Client) ([]string, error) {
		return listed(ctx, c, func(l yard.ListedTasklist) bool { return l.Revision > 0 })
	})
	paused := complete(a, func(ctx context.Context, c *yard.Client) ([]string, error) {
		return listed(ctx, c, func(l yard.ListedTasklist) bool { return l.Pause != nil || l.Drain != nil })
	})
	limits := complete(a, limitNames)
	ids := complete(a, ofTasks(func(t *yardv1.Task) string { return t.TaskId }))
	args := map[string]cobra.CompletionFunc{
		"yard task get": ids, "yard task watch": ids, "yard task cancel": ids, "yard task end": ids,
		"yard task submit": flags["type"], "yard tasklist describe": flags["tasklist"], "yard tasklist pollers": flags["tasklist"],
		"yard tasklist put": flags["tasklist"], "yard tasklist get": settings, "yard tasklist delete": settings,
		"yard tasklist pause": flags["tasklist"], "yard tasklist peek": flags["tasklist"], "yard tasklist drain": flags["tasklist"], "yard tasklist purge": flags["tasklist"], "yard tasklist resume": paused,
		"yard type pause": types, "yard type drain": types, "yard type purge": types, "yard type resume": types,
		"yard domain put": flags[command.DomainFlag], "yard domain get": flags[command.DomainFlag], "yard domain delete": flags[command.DomainFlag], "yard domain usage": flags[command.DomainFlag],
		"yard type put": types, "yard type get": types, "yard type delete": types,
		"yard limit put": limits, "yard limit get": limits, "yard limit delete": limits,
		"yard context use": completeContext, "yard context get": completeContext, "yard context delete": completeContext,
	}
	visit(root, func(cmd *cobra.Command) {
		if cmd.CommandPath() == "yard type put" {
			_ = cmd.RegisterFlagCompletionFunc("shared-limit", limits) // it refuses flags that there are none of
		}
		if complete, ok := args[cmd.CommandPath()]; ok {
			cmd.ValidArgsFunction = firstOnly(complete)
		} else if !cmd.HasSubCommands() {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		for name, complete := range flags {
			if f := cmd.LocalFlags().Lookup(name); f != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, complete) // it refuses flags that there are none of
			}
		}
	})
}

func visit(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, below := range cmd.Commands() {
		visit(below, do)
	}
}

// words completes to one of a few.
func words(all ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return begins(slices.Clone(all), word), cobra.ShellCompDirectiveNoFileComp
	}
}

// firstOnly completes the first argument, and no further one.
func firstOnly(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, word)
	}
}

// ofTasks are the values of a field in the newest tasks.
func ofTasks(field func(*yardv1.Task) string) names {
	return func(ctx context.Context, c *yard.Client) ([]string, error) {
		tasks, err := tasks.FirstTasks(ctx, c, new(yardv1.ListRequest), completionTasks)
		return command.Each(tasks, field), err
	}
}

// tasklistNames are those of the newest tasks, finished ones too, and all that have work or settings.
func tasklistNames(ctx context.Context, c *yard.Client) ([]string, error) {
	found, err := ofTasks(func(t *yardv1.Task) string { return t.Tasklist })(ctx, c)
	if err != nil {
		return nil, err
	}
	all, err := listed(ctx, c, func(yard.ListedTasklist) bool { return true })
	return append(found, all...), err
}

// limitNames are the limits that types share.
func limitNames(ctx context.Context, c *yard.Client) ([]string, error) {
	all, err := command.Gather(c.Limits(ctx))
	return command.Each(all, func(l yard.Limit) string { return l.Name }), err
}

// listed are the tasklists of the engine's list that are wanted.
func listed(ctx context.Context, c *yard.Client, wanted func(yard.ListedTasklist) bool) ([]string, error) {
	all, err := command.Gather(c.Tasklists(ctx))
	all = slices.DeleteFunc(all, func(l yard.ListedTasklist) bool { return !wanted(l) })
	return command.Each(all, func(l yard.ListedTasklist) string { return l.Name }), err
}

// complete asks the engine. Without an answer there is nothing to complete to, and no word about it.
func complete(a *command.App, list names) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if a.Resolve(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a.Timeout = completionTimeout
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		var found []string
		err := a.WithClient(ctx, func(ctx context.Context, c *yard.Client) (err error) {
			found, err = list(ctx, c)
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return begins(found, word), cobra.ShellCompDirectiveNoFileComp
	}
}

func completeContext(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	book, err := command.ReadContexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return begins(slices.Collect(maps.Keys(book.Contexts)), word), cobra.ShellCompDirectiveNoFileComp
}

// begins are the names that begin with a word, once each and in order.
func begins(all []string, word string) []string {
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return !strings.HasPrefix(name, word) })
}
