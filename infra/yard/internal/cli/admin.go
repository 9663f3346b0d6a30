package cli

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

func (a *app) tasklistCommand() *cobra.Command {
	describe := &cobra.Command{
		Use: "describe TASKLIST", Short: "Tell how much is queued, running and finished in a tasklist",
		Example: "  yard tasklist describe mail",
		Args:    argCount(1, 1, "one tasklist"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				d, err := c.DescribeTasklist(ctx, args[0])
				if err != nil {
					return err
				}
				return a.printTasklist(d)
			})
		},
	}
	return group("tasklist", "Look at tasklists", describe)
}

func (a *app) printTasklist(d *yardv1.DescribeTasklistResponse) error {
	if a.json {
		return a.printJSON(d)
	}
	var t table
	t.row("tasklist", d.Tasklist+" (domain "+a.domain+")")
	t.row("ready", d.Ready, "oldest for "+(time.Duration(d.OldestReadyMs)*time.Millisecond).String())
	t.row("running", d.Running)
	t.row("backoff", d.Backoff, "failed, about to be tried again")
	t.row("waiting", d.Waiting, "in the timer store")
	t.row("unread", d.UnreadBatches, "batches on disk only")
	t.row("polls", d.WaitingPolls, "waiting right now")
	t.row("completed", d.Completed, "since the partitions' owners took over")
	t.row("failed", d.Failed)
	t.row("dead", d.Dead)
	for _, s := range d.Slots {
		t.row("slots of "+s.Type, s.InUse, "of", s.Limit)
	}
	return a.printTable(&t)
}

func (a *app) domainCommand() *cobra.Command {
	return group("domain", "Create, change and list domains (tenants)", a.domainPut(), a.domainGet(), a.domainList())
}

// withAdmin runs do with an admin client.
func (a *app) withAdmin(ctx context.Context, do func(ctx context.Context, admin *yard.Admin) error) error {
	return a.withClient(ctx, func(ctx context.Context, c *yard.Client) error { return do(ctx, c.Admin()) })
}

func (a *app) domainPut() *cobra.Command {
	var d yard.Domain
	cmd := &cobra.Command{
		Use: "put NAME", Short: "Create or change a domain",
		Long:    "Create a domain, or change the settings of one that are given as flags.",
		Example: `  yard domain put shop --description "the online shop" --retention 72h`,
		Args:    argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withAdmin(cmd.Context(), func(ctx context.Context, admin *yard.Admin) error {
				have, err := admin.GetDomain(ctx, args[0])
				if err != nil && !errors.Is(err, &fault.Error{Code: fault.NotFound}) {
					return err
				}
				have.Name = args[0]
				if cmd.Flags().Changed("description") {
					have.Description = d.Description
				}
				if cmd.Flags().Changed("retention") {
					have.Retention = d.Retention
				}
				stored, err := admin.PutDomain(ctx, have)
				if err != nil {
					return err
				}
				return a.printDomains([]yard.Domain{stored})
			})
		},
	}
	cmd.Flags().StringVar(&d.Description, "description", "", "for people")
	cmd.Flags().DurationVar(&d.Retention, "retention", 0, "how long finished tasks are kept, 1m to 8784h; default 168h")
	return cmd
}

func (a *app) domainGet() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show a domain", Args: argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withAdmin(cmd.Context(), func(ctx context.Context, admin *yard.Admin) error {
				d, err := admin.GetDomain(ctx, args[0])
				if err != nil {
					return err
				}
				return a.printDomains([]yard.Domain{d})
			})
		},
	}
}

func (a *app) domainList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all domains", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withAdmin(cmd.Context(), func(ctx context.Context, admin *yard.Admin) error {
				domains, err := admin.ListDomains(ctx)
				if err != nil {
					return err
				}
				return a.printDomains(domains)
			})
		},
	}
}

func (a *app) printDomains(domains []yard.Domain) error {
	if a.json {
		list := &yardv1.ListDomainsResponse{}
		for _, d := range domains {
			list.Domains = append(list.Domains, &yardv1.Domain{Name: d.Name, Description: d.Description, RetentionMs: d.Retention.Milliseconds()})
		}
		return a.printJSON(list)
	}
	var t table
	t.row("DOMAIN", "RETENTION", "DESCRIPTION")
	for _, d := range domains {
		t.row(d.Name, span(d.Retention), d.Description)
	}
	return a.printTable(&t)
}

func (a *app) typeCommand() *cobra.Command {
	return group("type", "Set and show task types: retry, timeouts, concurrency limit", a.typeSet(), a.typeGet())
}

func (a *app) typeSet() *cobra.Command {
	var t yard.TaskType
	var r yard.RetryPolicy
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Create or change a task type",
		Long: `Create a task type, or change the settings of one that are given as flags. A changed
limit is in force within a second; tasks accepted before keep their retry policy
and timeouts.`,
		Example: `  yard type set payout.send --max-concurrency 15 --max-attempts 8 --initial-interval 2s`,
		Args:    argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				have, err := c.GetType(ctx, args[0])
				if err != nil && !errors.Is(err, &fault.Error{Code: fault.NotFound}) {
					return err
				}
				have.Name = args[0]
				overlay(&have, t, r, cmd.Flags().Changed)
				stored, err := c.SetType(ctx, have)
				if err != nil {
					return err
				}
				return a.printType(stored)
			})
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&t.MaxConcurrency, "max-concurrency", 0, "attempts that run at once in the domain; 0 = no limit")
	flags.DurationVar(&t.StartToClose, "start-to-close", 0, "bound of one attempt; default 5m")
	flags.DurationVar(&t.HeartbeatTimeout, "heartbeat", 0, "silence after which an attempt is lost; 0 = never")
	flags.IntVar(&r.MaxAttempts, "max-attempts", 0, "failures until a task is dead; default 5")
	flags.DurationVar(&r.InitialInterval, "initial-interval", 0, "wait after the first failure; default 1s")
	flags.Float64Var(&r.Backoff, "backoff", 0, "each further wait is so many times longer; default 2")
	flags.DurationVar(&r.MaxInterval, "max-interval", 0, "longest wait; default 10m")
	return cmd
}

// overlay puts the flags that were given on top of what the type has.
func overlay(have *yard.TaskType, t yard.TaskType, r yard.RetryPolicy, given func(string) bool) {
	retry := yard.RetryPolicy{}
	if have.Retry != nil {
		retry = *have.Retry
	}
	for name, set := range map[string]func(){
		"max-concurrency":  func() { have.MaxConcurrency = t.MaxConcurrency },
		"start-to-close":   func() { have.StartToClose = t.StartToClose },
		"heartbeat":        func() { have.HeartbeatTimeout = t.HeartbeatTimeout },
		"max-attempts":     func() { retry.MaxAttempts = r.MaxAttempts },
		"initial-interval": func() { retry.InitialInterval = r.InitialInterval },
		"backoff":          func() { retry.Backoff = r.Backoff },
		"max-interval":     func() { retry.MaxInterval = r.MaxInterval },
	} {
		if given(name) {
			set()
		}
	}
	if retry != (yard.RetryPolicy{}) {
		have.Retry = &retry
	}
}

func (a *app) typeGet() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show a task type and how full its limit is", Args: argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				t, err := c.GetType(ctx, args[0])
				if err != nil {
					return err
				}
				return a.printType(t)
			})
		},
	}
}

func (a *app) printType(t yard.TaskType) error {
	if a.json {
		wire := &yardv1.GetTypeResponse{SlotsInUse: int32(t.SlotsInUse), Type: &yardv1.TaskType{
			Name: t.Name, StartToCloseMs: t.StartToClose.Milliseconds(),
			HeartbeatTimeoutMs: t.HeartbeatTimeout.Milliseconds(), MaxConcurrency: int32(t.MaxConcurrency),
		}}
		if r := t.Retry; r != nil {
			wire.Type.Retry = &yardv1.RetryPolicy{
				MaxAttempts: int32(r.MaxAttempts), InitialIntervalMs: r.InitialInterval.Milliseconds(),
				Backoff: r.Backoff, MaxIntervalMs: r.MaxInterval.Milliseconds(),
			}
		}
		return a.printJSON(wire)
	}
	var about table
	about.row("type", t.Name+" (domain "+a.domain+")")
	if t.MaxConcurrency > 0 {
		about.row("concurrency", t.MaxConcurrency, "at once;", t.SlotsInUse, "now")
	} else {
		about.row("concurrency", "no limit")
	}
	about.row("start to close", or(span(t.StartToClose), "5m0s, the default"))
	about.row("heartbeat", or(span(t.HeartbeatTimeout), "not needed"))
	retry := yard.RetryPolicy{}
	if t.Retry != nil {
		retry = *t.Retry
	}
	about.row("max attempts", number(float64(retry.MaxAttempts), "5, the default"))
	about.row("first wait", or(span(retry.InitialInterval), "1s, the default"))
	about.row("backoff", number(retry.Backoff, "2, the default"))
	about.row("longest wait", or(span(retry.MaxInterval), "10m0s, the default"))
	return a.printTable(&about)
}

// or is text, or what stands for none.
func or(text, none string) string {
	if text == "-" {
		return none
	}
	return text
}

// number is n, or what stands for 0.
func number(n float64, none string) string {
	if n == 0 {
		return none
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}
