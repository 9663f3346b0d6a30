package operations

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// ProvisionCommand is `yard provision`.
func ProvisionCommand(a *command.App) *cobra.Command {
	how := process.Provision{Enabled: true, Replicas: 1}
	var want topology.Partitioning
	var keep bool
	cmd := &cobra.Command{
		Use: "provision", Short: "Create the streams and buckets of a cluster, and correct them",
		Long: `Create the streams and buckets of a cluster and correct those that differ, for services that
are not allowed to (--provision.enabled=false). It waits for NATS, as long as --timeout says if that is
given, else until it is interrupted. It may be run again at any time.

With --keep it runs until it is interrupted, and creates streams in memory again that are lost when
a single nats-server restarts, or when a cluster loses the servers that held them. One such process
is enough.`,
		Example: "  yard provision --keep --nkey auth/keys/provisioner.nk --inbox-prefix _INBOX.s.provisioner",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			start, cancel := cmd.Context(), context.CancelFunc(func() {})
			if cmd.Flags().Changed("timeout") {
				start, cancel = context.WithTimeout(start, a.Timeout)
			}
			defer cancel()
			return runProvision(cmd.Context(), start, a, want, how, keep)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&want.History, "history-partitions", 0, "history partitions; 0 = as the cluster was created, or 4")
	flags.IntVar(&want.Matching, "matching-shards", 0, "matching shards; 0 = as the cluster was created, or 4")
	flags.IntVar(&how.Replicas, "replicas", how.Replicas, "replicas of streams and buckets: 1 or 3")
	flags.BoolVar(&keep, "keep", false, "keep running, and create lost streams in memory again")
	return cmd
}

// runProvision creates the cluster until start ends, and keeps it until ctx does.
func runProvision(ctx, start context.Context, a *command.App, want topology.Partitioning, how process.Provision, keep bool) error {
	log, err := telemetry.NewLogger(telemetry.LogConfig{Level: "info", Format: "text"}, a.Err)
	if err != nil {
		return err
	}
	login := a.Login
	login.URL = a.URL
	nc, err := natsrpc.Connect(start, login, "yard-provision", log)
	if err != nil {
		return err
	}
	defer nc.Close()
	n, err := process.Cluster(start, nc, want, how, log)
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.PrintJSON(n)
	} else {
		_, err = fmt.Fprintf(a.Out, "The cluster has %d history partitions and %d matching shards.\n", n.History, n.Matching)
	}
	if err != nil || !keep {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	provision.Keep(ctx, js, n, log)
	return nil
}
