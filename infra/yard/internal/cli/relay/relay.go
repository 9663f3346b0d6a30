// Package relay has the commands about the outbox in a user's own database: the relay that carries its rows to the engine, its tables, and the rows
// that are set aside.
//
// Owns: the connection to the database, and how answers are printed. Never does: anything of its own; package outbox carries and decides.
// On failure: the relay tries again; the other commands return the error.
package relay

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/outbox"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// envDSN is the variable with the URL of the database, which often has a password.
const envDSN = "YARD_OUTBOX_DSN"

// database is the one that the commands are about.
type database struct {
	app *command.App
	dsn string
}

// Command is `yard relay`.
func Command(a *command.App) *cobra.Command {
	d := &database{app: a}
	var every time.Duration
	var once bool
	var log telemetry.LogConfig
	cmd := &cobra.Command{
		Use: "relay --dsn URL", Short: "Carry tasks from the outbox of a database to the engine",
		Long: `Carry tasks from the outbox of a database to the engine. Programs write tasks there in transactions of their own, with
the Go package contracts/outbox. A task of a committed transaction is submitted exactly once. Tasks with an order key are
submitted in order. Any number of relays may run.

--dsn is postgres://USER:PASSWORD@HOST/DATABASE, mysql://USER:PASSWORD@HOST/DATABASE (also for MariaDB), or
sqlite:FILE. The tables are made with "yard relay migrate", or with the SQL of "yard relay schema".

The relay looks for rows every --every, and at once if a program calls Kick. If NATS or the database is away, it tries
again. SIGTERM or Ctrl-C ends it after the requests that are under way.`,
		Example: `  yard relay --dsn postgres://shop@db.example.com/shop --domain shop
  yard relay --dsn sqlite:/var/lib/shop.db --once`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := telemetry.NewLogger(log, a.Err)
			if err != nil {
				return command.Usagef("%w", err)
			}
			return d.with(func(ob *outbox.Outbox, db *sql.DB) error {
				var options []yard.ClientOption
				if !once {
					options = append(options, yard.WithNATSOptions(nats.RetryOnFailedConnect(true)))
				}
				return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
					r, err := outbox.NewRelay(ob, db, c, outbox.Options{Every: every, Log: logger})
					if err != nil {
						return err
					}
					if once {
						return r.Once(ctx)
					}
					return r.Run(ctx)
				}, options...)
			})
		},
	}
	command.EnvVarP(cmd.PersistentFlags(), &d.dsn, "dsn", "", envDSN, "", "URL of the database")
	flags := cmd.Flags()
	command.DurationVar(flags, &every, "every", time.Second, "how often to look for rows that no kick has announced")
	flags.BoolVar(&once, "once", false, "carry the rows that wait, and end; the first trouble ends it, too")
	flags.StringVar(&log.Level, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&log.Format, "log-format", "text", "text or json")
	cmd.AddCommand(d.schema(), d.migrate(), d.status(), d.list(), d.redrive(), d.delete())
	return cmd
}

// with opens the database for do.
func (d *database) with(do func(ob *outbox.Outbox, db *sql.DB) error) error {
	dialect, db, err := open(d.dsn)
	if err != nil {
		return err
	}
	return errors.Join(do(outbox.New(dialect, d.app.Domain), db), db.Close())
}

// on makes the body of a command that asks the database.
func (d *database) on(do func(ctx context.Context, ob *outbox.Outbox, db *sql.DB, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), d.app.Timeout)
		defer cancel()
		return d.with(func(ob *outbox.Outbox, db *sql.DB) error { return do(ctx, ob, db, args) })
	}
}

func (d *database) schema() *cobra.Command {
	var dialect string
	cmd := &cobra.Command{
		Use: "schema --dialect DIALECT", Short: "Print the SQL that makes the tables of the outbox",
		Example: "  yard relay schema --dialect postgres",
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !slices.Contains(outbox.Dialects(), outbox.Dialect(dialect)) {
				return command.Usagef("--dialect %q: want postgres, mysql or sqlite", dialect)
			}
			_, err := fmt.Fprint(d.app.Out, outbox.Dialect(dialect).Schema())
			return err
		},
	}
	cmd.Flags().StringVar(&dialect, "dialect", "", "postgres, mysql (also for MariaDB) or sqlite; required")
	return cmd
}

func (d *database) migrate() *cobra.Command {
	return &cobra.Command{
		Use: "migrate", Short: "Make the tables of the outbox, if they are not there",
		Example: "  yard relay migrate --dsn sqlite:shop.db",
		Args:    command.NoArgs,
		RunE: d.on(func(ctx context.Context, ob *outbox.Outbox, db *sql.DB, _ []string) error {
			return ob.Dialect().Migrate(ctx, db)
		}),
	}
}

func (d *database) status() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Count the rows of a domain: those that wait, and those that are set aside",
		Example: "  yard relay status --dsn sqlite:shop.db --domain shop",
		Args:    command.NoArgs,
		RunE: d.on(func(ctx context.Context, ob *outbox.Outbox, db *sql.DB, _ []string) error {
			all, err := ob.Status(ctx, db)
			if err != nil {
				return err
			}
			return d.app.Show(all, func(t *command.Table) {
				t.Row("STATE", "ROWS", "TASKS", "OLDEST")
				for _, c := range all {
					t.Row(c.State, c.Rows, c.Tasks, command.Lasting(c.OldestMS))
				}
			})
		}),
	}
}

func (d *database) list() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List the rows that are set aside, with the reason, the oldest first",
		Long: `List the rows that are set aside, with the reason, the oldest first. The engine refused a "refused" row for good. An
"unknown" row was sent, its answer was lost, and no relay reached the engine for 10 minutes: search for its tasks by their header
outbox-id before you redrive it.`,
		Example: "  yard relay list --dsn sqlite:shop.db --domain shop",
		Args:    command.NoArgs,
		RunE: d.on(func(ctx context.Context, ob *outbox.Outbox, db *sql.DB, _ []string) error {
			all, err := ob.SetAside(ctx, db, limit)
			if err != nil {
				return err
			}
			return d.app.Show(all, func(t *command.Table) {
				t.Row("ROW", "STATE", "CREATED", "TYPE", "TASKLIST", "TASKS", "OUTBOX ID", "REASON")
				for _, one := range all {
					first := ""
					if len(one.Tasks) > 0 {
						first = one.Tasks[0]
					}
					t.Row(one.Row, one.State, command.At(one.Created.UnixMilli()), one.Type, one.Tasklist, len(one.Tasks), first, one.Reason)
				}
				t.More(len(all) == limit)
			})
		}),
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 100, "the most to list")
	return cmd
}

func (d *database) redrive() *cobra.Command {
	return &cobra.Command{
		Use: "redrive ROW…", Short: "Have rows that are set aside sent again",
		Long:    `Have rows that are set aside sent again. A row that is "unknown" may be stored twice then.`,
		Example: "  yard relay redrive 12 13 --dsn sqlite:shop.db --domain shop",
		Args:    command.ArgCount(1, -1, "the numbers of rows"),
		RunE: d.on(func(ctx context.Context, ob *outbox.Outbox, db *sql.DB, args []string) error {
			rows, err := numbers(args)
			if err != nil {
				return err
			}
			n, err := ob.Redrive(ctx, db, rows...)
			return cmp.Or(err, d.done("redriven", n))
		}),
	}
}

func (d *database) delete() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use: "delete ROW…", Short: "Delete rows that are set aside forever: their tasks never run",
		Example: "  yard relay delete 12 --dsn sqlite:shop.db --domain shop\n  yard relay delete 12 --dsn sqlite:shop.db --domain shop --yes",
		Args:    command.ArgCount(1, -1, "the numbers of rows"),
		RunE: d.on(func(ctx context.Context, ob *outbox.Outbox, db *sql.DB, args []string) error {
			rows, err := numbers(args)
			if err != nil {
				return err
			}
			if !yes {
				_, err := fmt.Fprintln(d.app.Out, command.NotDone)
				return err
			}
			n, err := ob.Delete(ctx, db, rows...)
			return cmp.Or(err, d.done("deleted", n))
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, command.YesUsage)
	return cmd
}

// done prints how many rows were changed.
func (d *database) done(what string, rows int64) error {
	return d.app.Show(map[string]int64{what: rows}, func(t *command.Table) { t.Row(what, rows) })
}

func numbers(args []string) (rows []int64, err error) {
	for _, arg := range args {
		n, err := strconv.ParseInt(strings.TrimSpace(arg), 10, 64)
		if err != nil {
			return nil, command.Usagef("%q is no number of a row; `yard relay list` shows them", arg)
		}
		rows = append(rows, n)
	}
	return rows, nil
}
