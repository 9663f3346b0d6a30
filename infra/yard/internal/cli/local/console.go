package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/infra/yard/console"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// ConsoleCommand is `yard console`.
func ConsoleCommand(a *command.App) *cobra.Command {
	var cfg console.Config
	var logins string
	var log telemetry.LogConfig
	cmd := &cobra.Command{
		Use: "console", Short: "Serve web pages that show what waits where, and why, and change it",
		Long: `Serve web pages that show domains, tasklists, limits, shares, timers, schedules, tasks, dead letters,
workers and partitions, and change them. They use the public API, with the rights of this command's login
to NATS.

Without --users everybody on this machine may see and change everything, and the console listens on this
machine only. --users is a YAML file of users with their roles (viewer, operator, admin), domains and bcrypt
hashes of passwords. --proxy-from names proxies whose X-Forwarded-For counts; one with an address of this
machine, such as 127.0.0.1, needs --proxy-secret, too. With --proxy-header these proxies log people in, and
name them in the header.
--logins is a YAML file with a login to NATS for each role, so that NATS enforces the roles, too.`,
		Example: `  yard console
  yard console --listen 127.0.0.1:9000 --url nats://nats.example.com:4222
  yard console --listen 10.0.0.5:8222 --users users.yaml --logins logins.yaml
  yard console --listen 10.0.0.5:8222 --users users.yaml --proxy-header X-Forwarded-User --proxy-from 10.0.0.2`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.Log, err = telemetry.NewLogger(log, a.Err); err != nil {
				return command.Usagef("%w", err)
			}
			to := a.Login
			to.URL = a.URL
			cfg.NATS = console.OneLogin(to)
			if logins != "" {
				if cfg.NATS, err = console.ReadLogins(logins, to); err != nil {
					return command.Usagef("%w", err)
				}
			}
			cfg.NATS.Codec = a.Codec()
			return serveConsole(cmd.Context(), a, cfg)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Listen, "listen", console.ListenDefault, "address to listen on")
	flags.StringVar(&cfg.Users, "users", "", "YAML file of users; default: no login, on this machine only")
	flags.StringVar(&cfg.ProxyHeader, "proxy-header", "", "header in which a proxy names the user")
	flags.StringSliceVar(&cfg.ProxyFrom, "proxy-from", nil, "addresses of the proxies whose headers are trusted")
	flags.StringVar(&cfg.ProxySecret, "proxy-secret", "", "file with a secret that the proxy shows in the header Yardmaster-Proxy-Secret")
	flags.StringVar(&logins, "logins", "", "YAML file with a login to NATS for each role; default: that of this command")
	flags.StringVar(&log.Level, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&log.Format, "log-format", "text", "text or json")
	return cmd
}

// serveConsole serves a console until ctx ends.
func serveConsole(ctx context.Context, a *command.App, cfg console.Config) error {
	c, err := console.Listen(cfg)
	if err != nil {
		return command.Usagef("%w", err)
	}
	if a.JSON {
		err = a.PrintJSON(map[string]string{"url": c.URL()})
	} else {
		_, err = fmt.Fprintln(a.Out, "The console is at", c.URL())
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err != nil {
		stop()
	}
	return errors.Join(err, c.Run(ctx))
}

// consoleOff is the value of --console that starts none.
const consoleOff = "off"

// consoleFlag adds the address of a console beside a stack.
func consoleFlag(flags *pflag.FlagSet, listen *string) {
	flags.StringVar(listen, "console", console.ListenDefault, `address of the console, or "off"; another port if it is taken`)
}

// beside serves a console of a stack until ctx ends, and returns its URL; "" = it is off. On a sealed cluster it is off: it needs logins of its own.
// Wait returns when it has ended.
func beside(ctx context.Context, s *stack.Stack, listen string, log *slog.Logger) (url string, wait func() error, err error) {
	wait = func() error { return nil }
	if listen == consoleOff || s.Auth != "" {
		return "", wait, nil
	}
	cfg := console.Config{Listen: listen, Log: log, NATS: console.Logins{Connect: func(string) (*nats.Conn, error) { return s.Connect("yard-console") }}}
	c, err := console.Listen(cfg)
	if err != nil && listen == console.ListenDefault {
		cfg.Listen = "127.0.0.1:0"
		c, err = console.Listen(cfg)
	}
	if err != nil {
		return "", wait, command.Usagef("--console: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return c.URL(), func() error { return <-ended }, nil
}
