package operations

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/auth"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/provision"
)

// AuthCommand is `yard auth`.
func AuthCommand(a *command.App) *cobra.Command {
	return command.Group("auth", "Write the users and permissions of a sealed cluster", authRender(a))
}

// renderFlags are the flags of auth render.
type renderFlags struct {
	out         string
	users       []string
	n           topology.Partitioning
	fromCluster bool
	tls         auth.TLS
}

func authRender(a *command.App) *cobra.Command {
	f := renderFlags{n: topology.DefaultPartitioning()}
	cmd := &cobra.Command{
		Use: "render", Short: "Write users, permissions and TLS for nats-server, and an ACL for Redis",
		Long: `Write a nats-server configuration with an account for Yardmaster, a separate account SYS, and
one user for each service and for each --user, with exactly the subjects it may publish and
subscribe to. Each user has its own nkey and inbox prefix.

A user is role:domain:name for submitter, worker, viewer and admin, and operator:name or observer:name.
The services and the provisioner are always included.

Keys go to <out>/keys, one file per user, readable by its owner only; they are never printed. An
existing key is kept, so rendering again with another --user changes nothing for the others;
remove a key file to replace that key. The configuration, <out>/auth.conf, holds only public
keys. Include it in the configuration of each nats-server and reload it. A user that is not
named again loses its access.

<out>/redis.acl is the ACL file of a Redis that serves only matching, and <out>/keys/redis.password
the password of its user there, which is also kept.

Services then need --inbox-prefixes '_INBOX.t.{domain}.', --provision.enabled=false,
--nats.nkey-seed and --nats.inbox-prefix; clients the last two, as --nkey and --inbox-prefix here.`,
		Example: `  yard auth render --out auth --user operator:ann --user submitter:shop:web --user worker:shop:mailer
  yard auth render --out auth --history-partitions 16 --matching-shards 8 --tls-server-cert /etc/nats/cert.pem --tls-server-key /etc/nats/key.pem`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return renderAuth(cmd.Context(), a, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "folder to write to; required")
	flags.StringArrayVar(&f.users, "user", nil, "a user, as role:domain:name, worker:domain:name:tasklist... or operator:name; repeated")
	flags.IntVar(&f.n.History, "history-partitions", f.n.History, "history partitions of the cluster")
	flags.IntVar(&f.n.Matching, "matching-shards", f.n.Matching, "matching shards of the cluster")
	flags.BoolVar(&f.fromCluster, "from-cluster", false, "take both numbers from the cluster at --url")
	flags.StringVar(&f.tls.Cert, "tls-server-cert", "", "the nats-server's PEM certificate, as it finds it; clients then need TLS")
	flags.StringVar(&f.tls.Key, "tls-server-key", "", "the PEM key of that certificate")
	flags.StringVar(&f.tls.CA, "tls-client-ca", "", "PEM authorities; clients must then present a certificate that these signed")
	return cmd
}

func renderAuth(ctx context.Context, a *command.App, f renderFlags) error {
	if f.out == "" {
		return command.Usagef("--out is required: a folder for %s and the keys", auth.ConfigFile)
	}
	for _, f := range []struct {
		flag string
		n    int
	}{{"--history-partitions", f.n.History}, {"--matching-shards", f.n.Matching}} {
		if f.n < 1 || f.n > topology.PartitionsMax {
			return command.Usagef("%s: want 1 to %d, got %d", f.flag, topology.PartitionsMax, f.n)
		}
	}
	plan := auth.Plan{Partitioning: f.n, TLS: f.tls}
	for _, text := range f.users {
		u, err := permissions.ParseUser(text)
		if err != nil {
			return command.Usagef("%w", err)
		}
		plan.Users = append(plan.Users, u)
	}
	if f.fromCluster {
		err := a.WithJetStream(ctx, func(ctx context.Context, js jetstream.JetStream) (err error) {
			plan.Partitioning, err = provision.Partitioning(ctx, js)
			if errors.Is(err, provision.ErrNotProvisioned) {
				err = fault.New(fault.FailedPrecondition, "there is no cluster at %s yet: name --history-partitions and --matching-shards instead", a.URL)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	users, err := auth.Render(f.out, plan)
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	return printUsers(a, f.out, users)
}

func printUsers(a *command.App, dir string, users []auth.Rendered) error {
	type user struct {
		User   string `json:"user"`
		Inbox  string `json:"inbox_prefix"`
		Seed   string `json:"seed_file"`
		Public string `json:"public_key"`
	}
	config, redis := filepath.Join(dir, auth.ConfigFile), filepath.Join(dir, auth.RedisACLFile)
	message := map[string]any{
		"config": config,
		"users":  command.Each(users, func(u auth.Rendered) user { return user{u.User.String(), u.User.Inbox(), u.Seed, u.Public} }),
		"redis":  map[string]string{"acl_file": redis, "user": auth.RedisUser, "password_file": auth.RedisPasswordFile(dir)},
	}
	return a.Show(message, func(t *command.Table) {
		t.Row("USER", "INBOX PREFIX", "KEY FILE")
		for _, u := range users {
			t.Row(u.User, u.User.Inbox(), u.Seed)
		}
		t.Row()
		t.Row(fmt.Sprintf("Include %s in the configuration of each nats-server; %s is the aclfile of Redis,", config, redis))
		t.Row(fmt.Sprintf("whose user %s has the password in %s.", auth.RedisUser, auth.RedisPasswordFile(dir)))
	})
}
