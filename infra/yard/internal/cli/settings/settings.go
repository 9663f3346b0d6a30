// Package settings has the commands for what is set: domains, tasklists, types, limits and groups, and their pauses.
package settings

import (
	"cmp"
	"context"
	"iter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// settings are the commands put, get, list and delete of one kind of settings, each of which has a name.
type settings[T, Listed any] struct {
	// name is of an example.
	kind, name                         string
	putHelp, getHelp, listHelp, delete help
	// flags adds those of put, which set fields of the value; their defaults are what it has.
	flags func(*pflag.FlagSet, *T)
	// complete sets the name, and what follows from the flags.
	complete func(have *T, name string)

	fetch  func(*yard.Client, context.Context, string) (T, error)
	store  func(*yard.Client, context.Context, T) (T, error)
	remove func(*yard.Client, context.Context, string, int64) (T, error)
	all    func(*yard.Client, context.Context) iter.Seq2[Listed, error]

	printStored, printOne, printDeleted func(*command.App, T) error
	printAll                            func(*command.App, []Listed) error
}

// help is what a command says of itself; an example that is missing is that of the settings' name.
type help struct{ short, long, example string }

func (h help) on(cmd *cobra.Command, example string) *cobra.Command {
	cmd.Short, cmd.Long, cmd.Example = h.short, h.long, h.example
	cmd.Example = cmp.Or(cmd.Example, "  yard "+example)
	return cmd
}

// commands returns put, get, list and delete.
func (s *settings[T, Listed]) commands(a *command.App) []*cobra.Command {
	return []*cobra.Command{s.put(a), s.get(a), s.list(a), s.del(a)}
}

func (s *settings[T, Listed]) put(a *command.App) *cobra.Command {
	cmd := s.putHelp.on(&cobra.Command{
		Use: "put NAME", Args: command.ArgCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				have, err := s.fetch(c, ctx, args[0])
				if fault.CodeOf(err) == fault.NotFound {
					var none T
					have, err = none, nil
				}
				if err != nil {
					return err
				}
				if err := overlay(cmd.Flags(), func(flags *pflag.FlagSet) { s.flags(flags, &have) }); err != nil {
					return err
				}
				s.complete(&have, args[0])
				stored, err := s.store(c, ctx, have)
				if err != nil {
					return err
				}
				return s.printStored(a, stored)
			})
		},
	}, s.kind+" put "+s.name)
	s.flags(cmd.Flags(), new(T))
	return cmd
}

// overlay sets the flags that were given once more, in a set that bind makes: so a command can change what it has read.
func overlay(given *pflag.FlagSet, bind func(*pflag.FlagSet)) (err error) {
	into := pflag.NewFlagSet("", pflag.ContinueOnError)
	bind(into)
	given.Visit(func(f *pflag.Flag) {
		to := into.Lookup(f.Name)
		if to == nil || err != nil {
			return // one of the flags of all commands
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			err = to.Value.(pflag.SliceValue).Replace(list.GetSlice())
			return
		}
		err = to.Value.Set(f.Value.String())
	})
	return err
}

func (s *settings[T, Listed]) get(a *command.App) *cobra.Command {
	return s.getHelp.on(&cobra.Command{
		Use: "get NAME", Args: command.ArgCount(1, 1, "one name"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			have, err := s.fetch(c, ctx, args[0])
			if err != nil {
				return err
			}
			return s.printOne(a, have)
		}),
	}, s.kind+" get "+s.name)
}

func (s *settings[T, Listed]) list(a *command.App) *cobra.Command {
	return s.listHelp.on(&cobra.Command{
		Use: "list", Args: command.NoArgs,
		RunE: a.Client(func(ctx context.Context, c *yard.Client, _ []string) error {
			all, err := command.Gather(s.all(c, ctx))
			if err != nil {
				return err
			}
			return s.printAll(a, all)
		}),
	}, s.kind+" list")
}

func (s *settings[T, Listed]) del(a *command.App) *cobra.Command {
	var revision int64
	cmd := s.delete.on(&cobra.Command{
		Use: "delete NAME", Args: command.ArgCount(1, 1, "one name"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			deleted, err := s.remove(c, ctx, args[0], revision)
			if err != nil {
				return err
			}
			return s.printDeleted(a, deleted)
		}),
	}, s.kind+" delete "+s.name)
	cmd.Flags().Int64Var(&revision, "revision", 0, "delete only this revision, as --output wide shows it; 0 = any")
	return cmd
}
