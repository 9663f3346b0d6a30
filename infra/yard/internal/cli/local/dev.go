// Package local has the commands that start a system in this process: dev, demo, bench and the server of a local cluster.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// stackStopTimeout is how long a stack may take to drain when it is interrupted.
const stackStopTimeout = 30 * time.Second

// defaultPort is NATS's own, where clients look first.
const defaultPort = 4222

// stackFlags is what every command that starts a stack takes.
type stackFlags struct {
	cfg        stack.Config
	tables     string
	partitions int
	log        telemetry.LogConfig
}

func (f *stackFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.cfg.Sync, "sync", stack.SyncAlways, `when accepted tasks go to disk: "always" or an interval, such as 2m`)
	flags.StringVar(&f.tables, "tables", string(stack.TablesAuto), "where tables and slots are: auto, memory or redis")
	flags.StringVar(&f.cfg.Redis, "redis", "", "URL of a Redis for them, such as redis://127.0.0.1:6379/0")
	flags.IntVar(&f.partitions, "partitions", 0, "history partitions and matching shards of a new cluster; 0 = 2")
	flags.StringVar(&f.log.Level, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&f.log.Format, "log-format", "text", "text or json")
}

// config makes the stack's config of the flags.
func (f *stackFlags) config(logs *slog.Logger) stack.Config {
	cfg := f.cfg
	cfg.Tables = stack.Tables(f.tables)
	cfg.Partitioning = topology.Partitioning{History: f.partitions, Matching: f.partitions}
	cfg.Log = logs
	return cfg
}

// DevCommand is `yard dev`.
func DevCommand(a *command.App) *cobra.Command {
	var f stackFlags
	var ephemeral bool
	var listen string
	cmd := &cobra.Command{
		Use: "dev", Short: "Run the whole system in one process, on an embedded NATS server",
		Long: `Run the whole system in one process: a nats-server with JetStream in the data
directory, which syncs to disk before each answer, and the four services. Any NATS
client can use it. Tables and slots are in the Redis named by --redis, or in a
redis-server found on this machine and started as a child, or in memory; the log
says which. The domain of --domain is created if it does not exist.

With --auth it is a sealed cluster: only its users, each with its own rights, and TLS if they were
rendered with --tls-server-cert and --tls-server-key.`,
		Example: `  yard dev
  yard dev --ephemeral --port 0 --tables memory
  yard dev --data-dir /var/lib/yard --http 127.0.0.1:8080
  yard auth render --out auth --history-partitions 2 --matching-shards 2 --user admin:shop:boss && yard dev --auth auth -d shop`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ephemeral {
				if cmd.Flags().Changed("data-dir") {
					return command.Usagef("--ephemeral and --data-dir exclude each other")
				}
				f.cfg.DataDir = ""
			}
			return dev(cmd.Context(), a, f, listen)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.cfg.DataDir, "data-dir", "data", "folder for all data")
	flags.StringVar(&f.cfg.Auth, "auth", "", "folder written by yard auth render: only its users, each with its own rights; default: no authentication")
	flags.BoolVar(&ephemeral, "ephemeral", false, "keep the data in a temporary folder that is removed at the end")
	flags.StringVar(&f.cfg.Host, "host", "127.0.0.1", "address to listen on; there is no authentication without --auth")
	flags.IntVar(&f.cfg.Port, "port", defaultPort, "port for NATS clients; 0 = a free one")
	consoleFlag(flags, &listen)
	flags.StringVar(&f.cfg.HTTP, "http", "", "address of /livez, /readyz and /metrics; empty = off")
	return cmd
}

// dev runs a stack until ctx ends or the stack fails.
func dev(ctx context.Context, a *command.App, f stackFlags, listen string) error {
	log, err := telemetry.NewLogger(f.log, a.Err)
	if err != nil {
		return command.Usagef("%w", err)
	}
	s, err := stack.Start(ctx, f.config(log))
	if errors.Is(err, fs.ErrNotExist) && f.cfg.Auth != "" {
		return command.Usagef("%w; `yard auth render --out %s` writes the folder", err, f.cfg.Auth)
	}
	if err != nil {
		return startError(ctx, err)
	}
	showing, hide := context.WithCancel(ctx)
	defer hide()
	url, hidden, err := beside(showing, s, listen, log)
	if err == nil {
		err = welcome(ctx, a, s, f, url)
	}
	if err == nil {
		select {
		case <-ctx.Done():
			log.Info("stopping")
		case <-s.Done():
			return s.Err()
		}
	}
	hide()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stackStopTimeout)
	defer cancel()
	return errors.Join(startError(ctx, err), hidden(), s.Close(stopping))
}

// startError is nil where a start was interrupted on purpose.
func startError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// welcome makes the domain and tells how to use the stack.
func welcome(ctx context.Context, a *command.App, s *stack.Stack, f stackFlags, console string) error {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	if err := ensureDomain(ctx, s, a.Domain); err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]string{"url": s.URL, "tables": s.TablesAt, "domain": a.Domain, "console": console})
	}
	data := f.cfg.DataDir
	data = cmp.Or(data, "temporary")
	login := ""
	if f.cfg.Auth != "" {
		login = " \\\n  --nkey KEY-FILE --inbox-prefix PREFIX    # those of a user of the domain, as yard auth render prints them"
	}
	_, err := fmt.Fprintf(a.Out, `
Yardmaster is ready. Stop it with Ctrl-C.

  NATS    %s
  data    %s, sync %s
  tables  %s
  domain  %s
  console %s

Try:  yard task submit hello '"world"' --tasklist first --url %s -d %s%s
`, s.URL, data, f.cfg.Sync, s.TablesAt, a.Domain, cmp.Or(console, consoleOff), s.URL, a.Domain, login)
	return err
}

// ensureDomain creates a domain with default settings unless it is there.
func ensureDomain(ctx context.Context, s *stack.Stack, name string) error {
	nc, err := s.Connect("yard-dev")
	if err != nil {
		return err
	}
	defer nc.Close()
	admin, err := yard.NewAdmin(nc)
	if err != nil {
		return err
	}
	_, err = admin.GetDomain(ctx, name)
	if errors.Is(err, &fault.Error{Code: fault.NotFound}) {
		_, err = admin.PutDomain(ctx, yard.Domain{Name: name})
	}
	if err != nil {
		return fmt.Errorf("domain %s: %w", name, err)
	}
	return nil
}
