package settings

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// topEach is how many domains each partition is asked for: those beyond that have little there.
const topEach = 1000

func domainTop(a *command.App) *cobra.Command {
	limit, during := 20, 2*time.Second
	cmd := &cobra.Command{
		Use: "top", Short: "Show what the busiest domains have done, their shares, and what they have left",
		Long: `Look at all history partitions twice, and show what each domain has done between the two looks. SHARE
is its part of the weights of all domains that had work, HAD its part of what all completed. A domain
with little work has less than its share, and the others have the rest. READY, RUNNING and BACKOFF are in memory, and
UNREAD counts messages on disk of a domain that is split off (see yard cluster queues).`,
		Example: `  yard domain top
  yard domain top --during 10s -n 5`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || during < topWatchMin {
				return command.Usagef("--limit is 1 or more, and --during %v or more", topWatchMin)
			}
			return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				all, err := worked(ctx, c, during)
				if err != nil {
					return err
				}
				return printWorked(a, all[:min(limit, len(all))])
			})
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", limit, "how many domains")
	command.DurationVar(cmd.Flags(), &during, "during", during, "the time between the two looks, 500ms or more")
	return cmd
}

// domainWorked is what a domain did in a time, and what it has left.
type domainWorked struct {
	Domain      string  `json:"domain"`
	Weight      int     `json:"weight"`
	Share       float64 `json:"share"`
	Had         float64 `json:"had"`
	PerSecond   float64 `json:"completed_per_s"`
	FailuresPer float64 `json:"failed_per_s"`
	Ready       int64   `json:"ready"`
	Running     int64   `json:"running"`
	Backoff     int64   `json:"backoff"`
	Unread      int64   `json:"unread_messages"`
	OldestMs    int64   `json:"oldest_ready_ms"`
}

// worked looks twice. A partition that changes its owner in between counts from the takeover.
func worked(ctx context.Context, c *yard.Client, during time.Duration) ([]*domainWorked, error) {
	before, err := look(ctx, c)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	backoff.Sleep(ctx, during)
	after, err := look(ctx, c)
	if err != nil {
		return nil, err
	}
	seconds := time.Since(began).Seconds()
	type place struct {
		partition int32
		domain    string
	}
	was := map[place]*yardv1.DomainWork{}
	for _, p := range before {
		for _, d := range p.Domains {
			was[place{p.Partition, d.Domain}] = d
		}
	}
	byName := map[string]*domainWorked{}
	of := func(name string) *domainWorked {
		if byName[name] == nil {
			byName[name] = &domainWorked{Domain: name, Weight: 1}
		}
		return byName[name]
	}
	since := func(now, before int64) float64 {
		if now < before {
			before = 0
		}
		return float64(now-before) / seconds
	}
	for _, p := range after {
		for _, d := range p.Domains {
			w, old := of(d.Domain), was[place{p.Partition, d.Domain}]
			w.PerSecond += since(d.Completed, old.GetCompleted())
			w.FailuresPer += since(d.Failed, old.GetFailed())
			w.Ready, w.Running, w.Backoff = w.Ready+d.Ready, w.Running+d.Running, w.Backoff+d.Backoff
			w.OldestMs = max(w.OldestMs, d.OldestReadyMs)
		}
		for _, q := range p.Queues {
			if q.Domain != "" {
				of(q.Domain).Unread += q.Unread
			}
		}
	}
	return shares(ctx, c, byName)
}

// look is what all partitions have now.
func look(ctx context.Context, c *yard.Client) (all []*yardv1.PartitionQueues, err error) {
	req := &yardv1.ListQueuesRequest{Domains: topEach, Limit: 100}
	for more := true; more; more = req.Partition > 0 {
		page, err := c.Admin().ListQueues(ctx, req)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Partitions...)
		req.Partition = page.NextPartition
	}
	return all, nil
}

// shares says what part of all each domain should have and had, those first that had most.
func shares(ctx context.Context, c *yard.Client, byName map[string]*domainWorked) (all []*domainWorked, err error) {
	for d, err := range c.Admin().Domains(ctx) {
		if err != nil {
			return nil, err
		}
		if w := byName[d.Name]; w != nil {
			w.Weight = max(1, d.Weight)
		}
	}
	weights, done := 0, 0.0
	for _, w := range byName {
		if w.PerSecond > 0 || w.Ready+w.Running+w.Unread > 0 {
			weights += w.Weight
			all = append(all, w)
		}
		done += w.PerSecond
	}
	for _, w := range all {
		w.Share = float64(w.Weight) / float64(weights)
		if done > 0 {
			w.Had = w.PerSecond / done
		}
	}
	slices.SortFunc(all, func(a, b *domainWorked) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), cmp.Compare(b.Ready, a.Ready), strings.Compare(a.Domain, b.Domain))
	})
	return all, nil
}

func printWorked(a *command.App, all []*domainWorked) error {
	percent := func(part float64) string { return fmt.Sprintf("%.0f%%", 100*part) }
	return a.Show(map[string]any{"domains": all}, func(t *command.Table) {
		t.Row("DOMAIN", "WEIGHT", "SHARE", "HAD", "DONE/S", "FAILED/S", "READY", "RUNNING", "BACKOFF", "UNREAD", "OLDEST READY")
		for _, w := range all {
			oldest := "-"
			if w.OldestMs > 0 {
				oldest = command.Lasting(w.OldestMs)
			}
			t.Row(w.Domain, w.Weight, percent(w.Share), percent(w.Had), fmt.Sprintf("%.1f", w.PerSecond), fmt.Sprintf("%.1f", w.FailuresPer),
				w.Ready, w.Running, w.Backoff, w.Unread, oldest)
		}
	})
}
