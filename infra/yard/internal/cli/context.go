package cli

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

func (a *app) contextCommand() *cobra.Command {
	cmd := group("context", "Keep servers, logins and domains under names", a.contextAdd(), a.contextUse(), a.contextList(), a.contextShow(), a.contextRemove())
	cmd.Long = `Keep servers, logins and domains under names, in contexts.json in the folder yard of your configuration
(~/.config/yard on Linux, or XDG_CONFIG_HOME). Of keys and certificates it holds the paths; no secret is copied.

A flag wins over everything. A context named by --context or YARD_CONTEXT is taken whole and
leaves the environment out. The context in use gives way to the environment and to --url: if one of
them says how to connect, the context's server and login are not taken.`
	return cmd
}

func (a *app) contextAdd() *cobra.Command {
	replace, use := false, false
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Create a context from --url, --domain and the login flags",
		Example: `  yard context add local --url nats://127.0.0.1:4222 --domain shop --use
  yard context add prod --url tls://nats.example.com:4222 -d shop --nkey ~/keys/admin.shop.ann.nk --inbox-prefix _INBOX.t.shop.admin-ann --tls-ca ~/keys/ca.pem`,
		Args: argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := ids.CheckName(name); err != nil {
				return usagef("the name %q %w", name, err)
			}
			entry, err := entryOfFlags(cmd.Flags())
			if err != nil {
				return err
			}
			book, err := changeContexts(cmd.Context(), func(book *contextBook) error {
				if _, there := book.Contexts[name]; there && !replace {
					return usagef("there is a context %s already; --replace changes it", name)
				}
				book.Contexts[name] = entry
				if use {
					book.Current = name
				}
				return nil
			})
			if err != nil {
				return err
			}
			return a.printContext(book, name)
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "replace the context with this name")
	cmd.Flags().BoolVar(&use, "use", false, "use it as the default")
	return cmd
}

func (a *app) contextUse() *cobra.Command {
	none := false
	cmd := &cobra.Command{
		Use: "use NAME", Short: "Use a context as the default",
		Example: "  yard context use prod\n  yard context use --none",
		Args:    argCount(0, 1, "one name, or --none"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if none == (len(args) == 1) {
				return usagef("want either a name or --none")
			}
			book, err := changeContexts(cmd.Context(), func(book *contextBook) error {
				if book.Current = ""; none {
					return nil
				}
				book.Current = args[0]
				_, err := book.entry(book.Current)
				return err
			})
			if err != nil {
				return err
			}
			return a.printContexts(book)
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "use no context")
	return cmd
}

func (a *app) contextList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all contexts; * is the one in use", Example: "  yard context list", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			book, err := readContexts()
			if err != nil {
				return err
			}
			return a.printContexts(book)
		},
	}
}

func (a *app) contextShow() *cobra.Command {
	return &cobra.Command{
		Use: "get [NAME]", Short: "Show a context, by default the one in use",
		Example: "  yard context get prod",
		Args:    argCount(0, 1, "one name or none"),
		RunE: func(_ *cobra.Command, args []string) error {
			book, err := readContexts()
			if err != nil {
				return err
			}
			name := a.context
			switch {
			case len(args) == 1:
				name = args[0]
			case name == "":
				name = book.Current
			}
			if name == "" {
				return usagef("no context is in use; choose one with `yard context use NAME`")
			}
			return a.printContext(book, name)
		},
	}
}

func (a *app) contextRemove() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Remove a context; the files it names are kept", Example: "  yard context delete local",
		Args: argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			book, err := changeContexts(cmd.Context(), func(book *contextBook) error {
				if _, err := book.entry(args[0]); err != nil {
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
			return a.printContexts(book)
		},
	}
}

func (a *app) printContexts(book contextBook) error {
	return a.show(book, func(t *table) {
		t.row("", "CONTEXT", "SERVER", "DOMAIN", wide{"LOGIN", "INBOX PREFIX", "TLS CA"})
		for _, name := range slices.Sorted(maps.Keys(book.Contexts)) {
			e, mark := book.Contexts[name], " "
			if name == book.Current {
				mark = "*"
			}
			t.row(mark, name, orDash(e.URL), orDash(e.Domain), wide{orDash(e.NKey + e.Creds), orDash(e.InboxPrefix), orDash(e.TLSCA)})
		}
	})
}

// printContext shows one, with what is not said left out.
func (a *app) printContext(book contextBook, name string) error {
	entry, err := book.entry(name)
	if err != nil {
		return err
	}
	message := struct {
		Name    string `json:"name"`
		Current bool   `json:"current"`
		contextEntry
	}{name, name == book.Current, entry}
	return a.show(message, func(t *table) {
		t.row("context", name)
		for _, s := range contextSettings() {
			t.some(s.flag, *s.of(&entry))
		}
		if name != book.Current {
			t.row()
			t.row("Use it with `yard context use " + name + "`.")
		}
	})
}
