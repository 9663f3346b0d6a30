package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
)

// UpgradeCommand is `yard upgrade`.
func UpgradeCommand(a *command.App) *cobra.Command {
	yes := false
	finalize := &cobra.Command{
		Use: "finalize", Short: "Raise the log version to the newest one that all members know",
		Long: `Let the cluster write the newest log version that a live member knows. It is refused
while other live members do not know that version; they are named. There is no way back:
programs that do not know it then refuse to start on the cluster. Without --yes it is only shown what
would be done.`,
		Example: "  yard upgrade finalize\n  yard upgrade finalize --yes",
		Args:    command.NoArgs,
		RunE: a.JetStream(func(ctx context.Context, js jetstream.JetStream, _ []string) error {
			return finalize(ctx, a, js, yes)
		}),
	}
	finalize.Flags().BoolVar(&yes, "yes", false, command.YesUsage)
	status := &cobra.Command{
		Use: "status", Short: "Show the log version of the cluster, and the newest that each member knows",
		Example: "  yard upgrade status",
		Args:    command.NoArgs,
		RunE: a.JetStream(func(ctx context.Context, js jetstream.JetStream, _ []string) error {
			u, err := readUpgrade(ctx, js)
			if err != nil {
				return err
			}
			return printUpgrade(a, u)
		}),
	}
	return command.Group("upgrade", "Look after the versions of a cluster that is being upgraded", status, finalize)
}

// upgrade is how far an upgrade has come.
type upgrade struct {
	kv      jetstream.KeyValue
	cluster catalog.Version
	members []ownership.Member
	// next is the newest version that a member knows.
	next uint32
	// hinder are the members that cannot read it.
	hinder []string
}

func readUpgrade(ctx context.Context, js jetstream.JetStream) (u upgrade, err error) {
	if u.kv, err = js.KeyValue(ctx, topology.ConfigBucket); err != nil {
		return u, err
	}
	if u.cluster, err = catalog.GetVersion(ctx, u.kv); err != nil {
		return u, err
	}
	members, err := js.KeyValue(ctx, topology.MembersBucket)
	if err != nil {
		return u, err
	}
	all, err := ownership.List(ctx, members)
	if err != nil {
		return u, err
	}
	u.next = u.cluster.Number
	for _, m := range all {
		if m.Alive() {
			u.members = append(u.members, m)
			u.next = max(u.next, m.LogVersion)
		}
	}
	for _, m := range u.members {
		if m.LogVersion < u.next {
			u.hinder = append(u.hinder, fmt.Sprintf("%s %s reads %d", m.Service, m.Node, m.LogVersion))
		}
	}
	return u, nil
}

// verdict says in a few words whether finalize would raise the version.
func (u upgrade) verdict() string {
	switch {
	case u.next == u.cluster.Number && len(u.hinder) > 0:
		return "done, but these members cannot read it and serve nothing:"
	case u.next == u.cluster.Number:
		return "nothing to do"
	case len(u.hinder) > 0:
		return fmt.Sprintf("not yet: version %d is not read by all", u.next)
	default:
		return fmt.Sprintf("possible: to version %d", u.next)
	}
}

// upgradeJSON is an upgrade for programs.
type upgradeJSON struct {
	Version  uint32       `json:"version"`
	Next     uint32       `json:"next"`
	Possible bool         `json:"possible"`
	Hinder   []string     `json:"hinder,omitempty"`
	Members  []memberJSON `json:"members,omitempty"`
}

type memberJSON struct {
	Service    string `json:"service"`
	Node       string `json:"node"`
	LogVersion uint32 `json:"log_version"`
	Stopped    []int  `json:"stopped,omitempty"`
}

func (u upgrade) json() upgradeJSON {
	j := upgradeJSON{
		Version: u.cluster.Number, Next: u.next, Hinder: u.hinder,
		Possible: len(u.hinder) == 0 && u.next > u.cluster.Number,
	}
	for _, m := range u.members {
		j.Members = append(j.Members, memberJSON{m.Service, m.Node, m.LogVersion, m.Stopped})
	}
	return j
}

func printUpgrade(a *command.App, u upgrade) error {
	return a.Show(u.json(), func(t *command.Table) {
		t.Row("cluster writes", u.cluster.Number)
		t.Row("finalize", u.verdict())
		for _, who := range u.hinder {
			t.Row("", who)
		}
		t.Row()
		t.Row("NODE", "SERVICE", "LOG VERSION", "STOPPED")
		for _, m := range u.members {
			stopped := ""
			if len(m.Stopped) > 0 {
				stopped = fmt.Sprintf("partitions %v", m.Stopped)
			}
			t.Row(m.Node, m.Service, m.LogVersion, stopped)
		}
	})
}

// finalize raises the cluster's version, or refuses with a FAILED_PRECONDITION.
func finalize(ctx context.Context, a *command.App, js jetstream.JetStream, yes bool) error {
	u, err := readUpgrade(ctx, js)
	if err != nil {
		return err
	}
	switch {
	case len(u.members) == 0:
		return fault.New(fault.FailedPrecondition, "no member is alive: start the services first")
	case len(u.hinder) > 0:
		return fault.New(fault.FailedPrecondition, "not every member reads log version %d: %s", u.next, strings.Join(u.hinder, ", "))
	case u.next > u.cluster.Number && yes:
		if err := catalog.RaiseVersion(ctx, u.kv, u.cluster, u.next); err != nil {
			if errors.Is(err, catalog.ErrVersionChanged) {
				return fault.New(fault.FailedPrecondition, "%v: look at `yard upgrade status`", err)
			}
			return err
		}
	}
	if a.JSON {
		return a.PrintJSON(u.json())
	}
	_, err = fmt.Fprintln(a.Out, u.done(yes))
	return err
}

func (u upgrade) done(yes bool) string {
	switch {
	case u.next == u.cluster.Number:
		return fmt.Sprintf("the cluster writes log version %d already", u.next)
	case !yes:
		return fmt.Sprintf("the cluster would write log version %d instead of %d\n%s", u.next, u.cluster.Number, command.NotDone)
	default:
		return fmt.Sprintf("the cluster writes log version %d now", u.next)
	}
}
