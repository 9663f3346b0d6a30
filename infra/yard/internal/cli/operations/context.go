package operations

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// ContextCommand is `yard context`.
func ContextCommand(a *command.App) *cobra.Command {
	cmd := command.Group("context", "Keep servers, logins and domains under names", contextPut(a), contextGet(a), contextList(a), contextDelete(a), contextUse(a))
	cmd.Long = `Keep servers, logins and domains under names, in contexts.json in the folder yard of your configuration
(~/.config/yard on Linux, or XDG_CONFIG_HOME). Of keys and certificates it holds the paths; no secret is copied.

A flag wins over everything. A context named by --context or YARD_CONTEXT is taken whole and
leaves the environment out. The context in use gives way to the environment and to --url: if one of
them says how to connect, the context's server and login are not taken.`
	return cmd
}

func contextPut(a *command.App) *cobra.Command {
	use := false
	cmd := &cobra.Command{
		Use: "put NAME", Short: "Create a context from --url, --domain and the login flags, or replace one as a whole",
		Example: `  yard context put local --url nats://127.0.0.1:4222 --domain shop --use
  yard context put prod --url tls://nats.example.com:4222 -d shop --nkey ~/keys/admin.shop.ann.nk --inbox-prefix _INBOX.t.shop.admin-ann --tls-ca ~/keys/ca.pem`,
		Args: command.ArgCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := ids.CheckName(name); err != nil {
				return command.Usagef("the name %q %w", name, err)
			}
			entry, err := command.EntryOfFlags(cmd.Flags())
			if err != nil {
				return err
			}
			book, err := command.ChangeContexts(cmd.Context(), func(book *command.ContextBook) error {
				book.Contexts[name] = entry
				if use {
					book.Current = name
				}
				return nil
			})
			if err != nil {
				return err
			}
			return printContext(a, book, name)
		},
	}
	cmd.Flags().BoolVar(&use, "use", false, "use it as the default")
	return cmd
}

func contextUse(a *command.App) *cobra.Command {
	none := false
	cmd := &cobra.Command{
		Use: "use NAME", Short: "Use a context as the default",
		Example: "  yard context use prod\n  yard context use --none",
		Args:    command.ArgCount(0, 1, "one name, or --none"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if none == (len(args) == 1) {
				return command.Usagef("want either a name or --none")
			}
			book, err := command.ChangeContexts(cmd.Context(), func(book *command.ContextBook) error {
				if book.Current = ""; none {
					return nil
				}
				book.Current = args[0]
				_, err := book.Entry(book.Current)
				return err
			})
			if err != nil {
				return err
			}
			return printContexts(a, book)
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "use no context")
	return cmd
}

func contextList(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all contexts; * is the one in use", Example: "  yard context list", Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			book, err := command.ReadContexts()
			if err != nil {
				return err
			}
			return printContexts(a, book)
		},
	}
}

func contextGet(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "get [NAME]", Short: "Show a context, by default the one in use",
		Example: "  yard context get prod",
		Args:    command.ArgCount(0, 1, "one name or none"),
		RunE: func(_ *cobra.Command, args []string) error {
			book, err := command.ReadContexts()
			if err != nil {
				return err
			}
			name := a.Context
			switch {
			case len(args) == 1:
				name = args[0]
			case name == "":
				name = book.Current
			}
			if name == "" {
				return command.Usagef("no context is in use; choose one with `yard context use NAME`")
			}
			return printContext(a, book, name)
		},
	}
}

func contextDelete(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Delete a context; the files it names are kept", Example: "  yard context delete local",
		Args: command.ArgCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			book, err := command.ChangeContexts(cmd.Context(), func(book *command.ContextBook) error {
				if _, err := book.Entry(args[0]); err != nil {
					return err
				}
				delete(book.Contexts, args[0])
				if book.Current == args[0] {
					book.Current = ""
				}
				return nil
			})
			if err != nil {
				return err
			}
			return printContexts(a, book)
		},
	}
}

func printContexts(a *command.App, book command.ContextBook) error {
	return a.Show(book, func(t *command.Table) {
		t.Row("", "CONTEXT", "SERVER", "DOMAIN", command.Wide{"LOGIN", "INBOX PREFIX", "TLS CA"})
		for _, name := range slices.Sorted(maps.Keys(book.Contexts)) {
			e, mark := book.Contexts[name], " "
			if name == book.Current {
				mark = "*"
			}
			t.Row(mark, name, command.OrDash(e.URL), command.OrDash(e.Domain), command.Wide{command.OrDash(e.NKey + e.Creds), command.OrDash(e.InboxPrefix), command.OrDash(e.TLSCA)})
		}
	})
}

// printContext shows one, with what is not said left out.
func printContext(a *command.App, book command.ContextBook, name string) error {
	entry, err := book.Entry(name)
	if err != nil {
		return err
	}
	message := struct {
		Name    string `json:"name"`
		Current bool   `json:"current"`
		command.ContextEntry
	}{name, name == book.Current, entry}
	return a.Show(message, func(t *command.Table) {
		t.Row("context", name)
		for _, s := range command.ContextSettings() {
			t.Some(s.Flag, *s.Of(&entry))
		}
		if name != book.Current {
			t.Row()
			t.Row("Use it with `yard context use " + name + "`.")
		}
	})
}
