package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

func (a *app) groupCommand() *cobra.Command {
	return group("group", "Set the weights of groups of tasks; pause, drain and purge them",
		a.groupPut(), a.groupGet(), a.groupList(), a.groupDelete(), a.groupPause(), a.groupResume(), a.groupDrain(), a.groupPurge())
}

func (a *app) groupPut() *cobra.Command {
	var g yard.Group
	cmd := &cobra.Command{
		Use: "put NAME", Short: "Set the weight of a group, and its number in limits per group",
		Long: `Set the weight of a group, or change the settings that are given as flags. Tasks name their group
(yard task submit --group). While several groups wait, each gets its weight's share; without
settings a group has weight 1. One of weight 0 runs when nothing else of its tasklist is ready.
The weight counts for tasks that become ready from then on. --max-concurrency is the group's own
number in limits that count per group, within a second and for what waits, too.`,
		Example: `  yard group put acme --weight 4 --description "the large plan"
  yard group put acme --max-concurrency 10
  yard group put trial --weight 0`,
		Args: argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				have, err := c.GetGroup(ctx, args[0])
				if err != nil {
					if !errors.Is(err, &fault.Error{Code: fault.NotFound}) {
						return err
					}
					have = yard.Group{}
				}
				have.Name = args[0]
				if cmd.Flags().Changed("description") {
					have.Description = g.Description
				}
				if cmd.Flags().Changed("weight") {
					have.Weight, have.Idle = g.Weight, g.Weight == 0
				}
				if cmd.Flags().Changed("max-concurrency") {
					have.MaxConcurrency = g.MaxConcurrency
				}
				stored, err := c.PutGroup(ctx, have)
				if err != nil {
					return err
				}
				return a.printGroups([]yard.Group{stored})
			})
		},
	}
	cmd.Flags().StringVar(&g.Description, "description", "", "for people")
	cmd.Flags().Float64Var(&g.Weight, "weight", 1, "its share beside other groups, 0.01 to 100; 0 = when nothing else is ready")
	cmd.Flags().IntVar(&g.MaxConcurrency, "max-concurrency", 0, "its attempts that run at once in each limit that counts per group; 0 = as the limit says")
	return cmd
}

func (a *app) groupGet() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show the settings of a group, its pause and its drain",
		Example: "  yard group get acme",
		Args:    argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				g, err := c.GetGroup(ctx, args[0])
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(&yardv1.GetGroupResponse{Group: wireGroup(g), Pause: wirePause(g.Pause), Drain: wirePause(g.Drain)})
				}
				var about table
				about.row("group", g.Name+" (domain "+a.domain+")")
				if g.Pause != nil {
					about.row("paused", pauseOf(wirePause(g.Pause)))
				}
				if g.Drain != nil {
					about.row("drained", pauseOf(wirePause(g.Drain)))
				}
				about.row("description", cmp.Or(g.Description, "-"))
				about.row("weight", g.Weight)
				about.row("concurrency", number(float64(g.MaxConcurrency), "as limits per group say"))
				return a.printTable(&about)
			})
		},
	}
}

func (a *app) groupList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the groups of the domain that have settings, are paused or drained",
		Example: "  yard group list",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				var all []yard.Group
				for g, err := range c.Groups(ctx) {
					if err != nil {
						return err
					}
					all = append(all, g)
				}
				return a.printGroups(all)
			})
		},
	}
}

func (a *app) groupDelete() *cobra.Command {
	var revision int64
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete the settings of a group: its weight is 1 again",
		Example: "  yard group delete acme",
		Args:    argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				g, err := c.DeleteGroup(ctx, args[0], revision)
				if err != nil {
					return err
				}
				return a.printGroups([]yard.Group{g})
			})
		},
	}
	cmd.Flags().Int64Var(&revision, "revision", 0, "delete only this revision, as --output wide shows it; 0 = any")
	return cmd
}

// wireGroup is a group as the API writes it.
func wireGroup(g yard.Group) *yardv1.Group {
	return &yardv1.Group{Name: g.Name, Description: g.Description, Weight: &g.Weight, MaxConcurrency: int32(g.MaxConcurrency), Revision: g.Revision}
}

func (a *app) printGroups(groups []yard.Group) error {
	if a.json {
		list := &yardv1.ListGroupsResponse{}
		for _, g := range groups {
			list.Groups = append(list.Groups, wireGroup(g))
			if g.Pause != nil || g.Drain != nil {
				list.Stopped = append(list.Stopped, &yardv1.StoppedGroup{Name: g.Name, Pause: wirePause(g.Pause), Drain: wirePause(g.Drain)})
			}
		}
		return a.printJSON(list)
	}
	var t table
	t.row(a.more([]any{"GROUP", "WEIGHT", "CONCURRENCY", "PAUSED", "DRAINED", "DESCRIPTION"}, "REVISION")...)
	for _, g := range groups {
		t.row(a.more([]any{g.Name, g.Weight, number(float64(g.MaxConcurrency), "-"), pausedUntil(g.Pause), pausedUntil(g.Drain), g.Description}, g.Revision)...)
	}
	return a.printTable(&t)
}
