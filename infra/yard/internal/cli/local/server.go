package local

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/natsserver"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// ServerCommand is `yard server`.
func ServerCommand(a *command.App) *cobra.Command {
	return command.Group("server", "Run one server of a local cluster of processes", serverNATS(a))
}

func serverNATS(a *command.App) *cobra.Command {
	var cfg natsserver.Config
	var sync string
	var log telemetry.LogConfig
	cmd := &cobra.Command{
		Use: "nats", Short: "Run only the embedded nats-server",
		Long: `Run only the nats-server with JetStream that is built into this command, for services that run as
processes of their own. It stops when it is interrupted. With --auth it reloads the users on SIGHUP,
as nats-server does.`,
		Example: `  yard server nats --data-dir .dev/nats --port 4222
  yard server nats --data-dir .dev/nats --port 4222 --auth auth/auth.conf`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Sync = natsserver.Sync(sync)
			return runNATS(cmd.Context(), a, cfg, log)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.DataDir, "data-dir", "data", "folder for the streams")
	flags.StringVar(&cfg.Host, "host", "127.0.0.1", "address to listen on; there is no authentication without --auth")
	flags.StringVar(&cfg.Auth, "auth", "", "configuration with users and TLS, such as auth.conf of yard auth render")
	flags.IntVar(&cfg.Port, "port", defaultPort, "port for clients; 0 = a free one")
	flags.StringVar(&sync, "sync", string(natsserver.SyncAlways), `when what is stored goes to disk: "always" or an interval, such as 2m`)
	flags.IntVar(&cfg.MaxPayload, "max-payload", natsserver.MaxPayloadDefault, "limit of one message, bytes")
	flags.StringVar(&log.Level, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&log.Format, "log-format", "text", "text or json")
	return cmd
}

// runNATS runs a server until ctx ends.
func runNATS(ctx context.Context, a *command.App, cfg natsserver.Config, logs telemetry.LogConfig) (err error) {
	if cfg.Log, err = telemetry.NewLogger(logs, a.Err); err != nil {
		return command.Usagef("%w", err)
	}
	hangups := make(chan os.Signal, 1)
	if cfg.Auth != "" { // without it the end of a terminal is the server's
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
	}
	s, err := natsserver.Start(ctx, cfg)
	if err != nil {
		return startError(ctx, err)
	}
	if a.JSON {
		err = a.PrintJSON(map[string]string{"url": s.ClientURL()})
	} else {
		_, err = fmt.Fprintln(a.Out, "NATS with JetStream is ready at", s.ClientURL())
	}
	if err == nil {
		reload(ctx, s, hangups, cfg.Log)
	}
	s.Stop()
	return err
}

// reload has the server read its users again at each signal, until ctx ends.
func reload(ctx context.Context, s *natsserver.Server, hangups <-chan os.Signal, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		if err := s.Reload(); err != nil {
			log.Error("the users could not be reloaded", "error", err)
			continue
		}
		log.Info("the users were reloaded")
	}
}
