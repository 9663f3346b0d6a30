package operations

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/backup"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// BackupCommand is `yard backup`.
func BackupCommand(a *command.App) *cobra.Command {
	return command.Group("backup", "Copy a cluster at rest into a folder, and back", backupCreate(a), backupVerify(a), backupRestore(a))
}

func backupCreate(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "create DIR", Short: "Copy all that a cluster has stored into an empty folder, while its services are stopped",
		Long: `Copy all that a cluster has stored into a folder, which is empty or does not exist: a file for each stream and
bucket, and manifest.json. NATS runs, and all services are stopped: it is refused while one lives. It fails if anything
was stored meanwhile. A folder without manifest.json is no backup.

The backup has the tasks of all domains, and the secret of their tokens: keep it as you keep a service's key. On a
sealed cluster it logs in as the user "inspector".`,
		Example: `  yard backup create /backups/monday
  yard backup create /backups/monday --nkey auth/keys/inspector.nk --inbox-prefix _INBOX.s.inspector`,
		Args: command.ArgCount(1, 1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withConnection(cmd.Context(), a, func(ctx context.Context, nc *nats.Conn) error {
				m, err := backup.Create(ctx, nc, args[0], eachStream(a))
				return showBackup(a, m, err, "This is a whole backup: keep it apart from NATS, and start the services.")
			})
		},
	}
}

func backupVerify(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "verify DIR", Short: "Check the files of a backup, without a cluster",
		Example: "  yard backup verify /backups/monday",
		Args:    command.ArgCount(1, 1, "a folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := backup.Verify(args[0], eachStream(a))
			return showBackup(a, m, err, "This is a whole backup.")
		},
	}
}

func backupRestore(a *command.App) *cobra.Command {
	replicas := 1
	cmd := &cobra.Command{
		Use: "restore DIR", Short: "Make the cluster of a backup on a NATS that has none",
		Long: `Make the cluster of a backup on a NATS that has none of its streams, while no service runs. The cluster exists once
the last stream is restored. If it fails before, delete the streams that were restored, and repeat it.

A restored cluster is the past: tasks that finished after the backup run again, and tasks that were accepted after it
are lost. Empty the Redis of matching before you start the services: it is of the lost time. On a sealed cluster it logs in as the user "provisioner".`,
		Example: `  yard backup restore /backups/monday --replicas 3
  yard backup restore /backups/monday --nkey auth/keys/provisioner.nk --inbox-prefix _INBOX.s.provisioner`,
		Args: command.ArgCount(1, 1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if replicas != 1 && replicas != 3 {
				return command.Usagef("--replicas: want 1 or 3, got %d", replicas)
			}
			log, err := telemetry.NewLogger(telemetry.LogConfig{Level: "warn", Format: "text"}, a.Err)
			if err != nil {
				return err
			}
			return withConnection(cmd.Context(), a, func(ctx context.Context, nc *nats.Conn) error {
				m, err := backup.Restore(ctx, nc, args[0], replicas, log, eachStream(a))
				return showBackup(a, m, err, "The cluster is restored: empty the Redis of matching, start the services, then run `yard doctor`.")
			})
		},
	}
	cmd.Flags().IntVar(&replicas, "replicas", replicas, "replicas of streams and buckets: 1 or 3")
	return cmd
}

// withConnection runs do with a connection; --timeout bounds only how long that takes to make.
func withConnection(ctx context.Context, a *command.App, do func(ctx context.Context, nc *nats.Conn) error) error {
	nc, err := a.Connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	return do(ctx, nc)
}

// eachStream prints a line for each stream that is done.
func eachStream(a *command.App) func(backup.Stream) {
	return func(s backup.Stream) {
		if !a.JSON {
			_, _ = fmt.Fprintf(a.Out, "%-28s %12d messages  %10s\n", s.Name, s.Messages, humanize.IBytes(uint64(s.FileBytes))) // progress only
		}
	}
}

// showBackup prints the manifest, or what comes next, if there is no error.
func showBackup(a *command.App, m *backup.Manifest, err error, next string) error {
	if err != nil {
		return err
	}
	return a.Show(m, func(t *command.Table) { t.Row(next) })
}
