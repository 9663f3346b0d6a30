package local

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/auth"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/demo"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// demoName is what the demo's connections are called in the monitoring of NATS.
const demoName = "yard-demo"

// DemoCommand is `yard demo`.
func DemoCommand(a *command.App) *cobra.Command {
	var f stackFlags
	var opts demo.Options
	var plain bool
	var users, listen string
	cmd := &cobra.Command{
		Use: "demo", Short: "Watch three tenants at work on a system in this process, or on a cluster",
		Long: `Start a whole system in this process, with its data in a temporary folder, and let
three tenants use it: an online shop's order e-mails, image thumbnails that are
really resized, and payouts with a cluster-wide limit and a flaky bank. At the end
it proves that every accepted task was finished exactly once.

With --url it uses a running cluster, in its domains shop, media and payouts. On a sealed cluster
each tenant is a separate user: --auth is the folder of yard auth render with the
keys of operator:demo, admin:shop:demo, admin:media:demo and admin:payouts:demo.`,
		Example: `  yard demo
  yard demo --duration 15s --plain
  yard demo --seed 42 --json
  yard demo --url nats://127.0.0.1:4222
  yard demo --url tls://127.0.0.1:4222 --auth auth --tls-ca ca.pem`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := telemetry.NewLogger(f.log, a.Err)
			if err != nil {
				return command.Usagef("%w", err)
			}
			opts.Interactive, opts.JSON = !plain, a.JSON
			opts.Out, opts.Log, opts.Command = a.Out, log, self()
			switch {
			case a.OnCluster(cmd):
				return demoOnCluster(cmd.Context(), a, users, opts)
			case users != "":
				return command.Usagef("--auth names the users of a cluster: name it too, with --url")
			}
			return runDemo(cmd.Context(), f.config(log), opts, listen)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.Lookup("log-level").DefValue, f.log.Level = "error", "error" // the view has the terminal
	command.DurationVar(flags, &opts.Duration, "duration", time.Minute, "how long tasks are handed in")
	flags.Float64Var(&opts.Scale, "scale", 1, "so many times the number of tasks, up to 100")
	flags.Uint64Var(&opts.Seed, "seed", 0, "repeat the tasks of an earlier run; 0 = fresh ones")
	flags.IntVar(&f.cfg.Port, "port", defaultPort, "port for NATS clients; another one if it is taken")
	flags.StringVar(&users, "auth", "", "folder that yard auth render wrote, with the demo's users of a sealed cluster at --url")
	consoleFlag(flags, &listen)
	flags.BoolVar(&plain, "plain", false, "lines of progress instead of the live view")
	return cmd
}

// runDemo runs the demo on a stack of its own.
func runDemo(ctx context.Context, cfg stack.Config, opts demo.Options, listen string) error {
	if !free(cfg.Port) {
		cfg.Port = 0
	}
	s, err := stack.Start(ctx, cfg)
	if err != nil {
		return startError(ctx, err)
	}
	opts.Connect = func(string) (*nats.Conn, error) { return s.Connect(demoName) }
	if cfg.Port != defaultPort {
		opts.Shop = "--url " + s.URL
	}
	// The console goes on while the demo concludes, and ends before the stack does.
	showing, hide := context.WithCancel(context.WithoutCancel(ctx))
	url, hidden, err := beside(showing, s, listen, cfg.Log)
	if opts.Console = url; err == nil {
		err = demo.Run(ctx, opts)
	}
	hide()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stackStopTimeout)
	defer cancel()
	return errors.Join(err, hidden(), s.Close(stopping))
}

// demoOnCluster runs the demo on the cluster at --url, as the users of a folder or, without one,
// all as who the command is.
func demoOnCluster(ctx context.Context, a *command.App, users string, opts demo.Options) error {
	if _, sealed := topology.InboxDomain(a.Login.InboxPrefix); sealed {
		return command.Usagef("the demo has three tenants, and inbox prefix %s is of one user: leave it out, and name the folder of their keys with --auth", a.Login.InboxPrefix)
	}
	one := a.Login
	one.URL = a.URL
	login := func(string) natsrpc.ConnConfig { return one }
	opts.Shop = "--url " + a.URL
	if strings.Contains(a.URL, "@") { // a password may be in it
		opts.Shop = "--url URL"
	}
	if users != "" {
		login = func(domain string) natsrpc.ConnConfig {
			u := demoUser(domain)
			return natsrpc.ConnConfig{
				URL: a.URL, NKeySeed: auth.SeedFile(users, u), InboxPrefix: u.Inbox(), TLS: a.Login.TLS,
			}
		}
		shop := login("shop")
		opts.Shop += " --nkey " + shop.NKeySeed + " --inbox-prefix " + shop.InboxPrefix
	}
	if ca := a.Login.TLS.CA; ca != "" {
		opts.Shop += " --tls-ca " + ca
	}
	opts.Connect = func(domain string) (*nats.Conn, error) { return natsrpc.Dial(login(domain), demoName) }
	return demo.Run(ctx, opts)
}

// demoUser is who a tenant of the demo is on a sealed cluster, or who makes the domains.
func demoUser(domain string) permissions.User {
	if domain == "" {
		return permissions.User{Role: permissions.Operator, Name: "demo"}
	}
	return permissions.User{Role: permissions.Admin, Domain: domain, Name: "demo"}
}

// free tells whether a port can be listened on just now.
func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// self is what a person types to run this program.
func self() string {
	if program, err := os.Executable(); err == nil && strings.Contains(program, "go-build") {
		return "go run ./infra/yard"
	}
	return "yard"
}
