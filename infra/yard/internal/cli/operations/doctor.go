package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/infra/yard/doctor"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/provision"
)

// ErrFound ends `yard doctor` where something was found. The findings are printed before.
var ErrFound = errors.New("there are findings")

// DoctorCommand is `yard doctor`.
func DoctorCommand(a *command.App) *cobra.Command {
	var redisURL string
	var opts doctor.Options
	repair, codes := false, false
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check everything that a cluster has stored, and report inconsistencies",
		Long: `Check everything that a running cluster has stored, and report inconsistencies: each with a code, the place,
what it means and what to do. It changes nothing without --repair.

It reads all logs, timer stores, archives and dead letters, so it takes a while on a large cluster. It checks
each inconsistency again, and reports only those that it finds each time. It lists what it could not check. On a
sealed cluster it logs in as the user "inspector".

The exit code is 0 if nothing was found, 1 if something was, 2 if the command line is wrong, and 4 if it could not check.`,
		Example: "  yard doctor\n  yard doctor --redis redis://127.0.0.1:6379 --json\n  yard doctor --repair\n  yard doctor --codes",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if codes {
				return printKinds(a)
			}
			if opts.Looks < 2 || opts.TasksMax < 1000 || opts.FindingsMax < 1 {
				return command.Usagef("want at least 2 --looks, 1000 --tasks and 1 --most")
			}
			report, err := examine(cmd.Context(), a, redisURL, opts, repair)
			if err != nil {
				return BlindError{err}
			}
			if err := printReport(a, report); err != nil {
				return BlindError{err}
			}
			if !report.Clean() {
				return ErrFound
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&redisURL, "redis", "", "URL of the Redis that has the tables, such as redis://127.0.0.1:6379; of a cluster one of its nodes")
	flags.BoolVar(&repair, "repair", false, "repair what is safe to repair; each finding says what that is")
	flags.BoolVar(&codes, "codes", false, "list the codes of findings, and look at nothing")
	flags.IntVar(&opts.Looks, "looks", 3, "how often something must be found to be reported")
	command.DurationVar(flags, &opts.Wait, "wait", 3*time.Second, "how long to wait before the next look")
	flags.IntVar(&opts.TasksMax, "tasks", 2_000_000, "how many tasks to hold in memory at once, 75 to 130 bytes each; of more, a partition is read several times")
	flags.IntVar(&opts.FindingsMax, "most", 100, "how many findings of each code to print")
	return cmd
}

// progressAfter is how long it may take before it says what it is at.
const progressAfter = 2 * time.Second

// blindError: the doctor could not look.
type BlindError struct{ error }

// Unwrap returns why.
func (e BlindError) Unwrap() error { return e.error }

// examine looks, and repairs if it is to. Progress goes to standard error. --timeout bounds the connection only.
func examine(ctx context.Context, a *command.App, redisURL string, opts doctor.Options, repair bool) (*doctor.Report, error) {
	nc, err := a.Connect()
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	var tables *doctor.Tables
	if redisURL != "" {
		client, err := redisClient(ctx, redisURL, a.Timeout)
		if err != nil {
			return nil, err
		}
		defer func() { _ = client.Close() }() // nothing is under way
		tables = doctor.NewTables(client, nc)
	}
	began := time.Now()
	opts.Progress = func(what string) {
		if took := time.Since(began); took > progressAfter {
			fmt.Fprintf(a.Err, "%6s  %s\n", took.Round(time.Second), what)
		}
	}
	report, err := doctor.Examine(ctx, js, tables, opts)
	if errors.Is(err, provision.ErrNotProvisioned) || errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, nats.ErrNoResponders) {
		return nil, fault.New(fault.FailedPrecondition, "there is no cluster on this server: %v", err)
	}
	if err == nil && repair {
		report.Repair(ctx)
	}
	return report, err
}

// redisClient connects to a Redis, or to the cluster that a node is of.
func redisClient(ctx context.Context, url string, timeout time.Duration) (redis.UniversalClient, error) {
	logging.Disable() // its errors come back from calls too
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, command.Usagef("--redis: %v", err)
	}
	opts.DialTimeout, opts.DisableIdentity = timeout, true
	one := redis.NewClient(opts)
	info, err := one.Info(ctx, "cluster").Result()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reach Redis: %w", err), one.Close())
	}
	if !strings.Contains(info, "cluster_enabled:1") {
		return one, nil
	}
	if err := one.Close(); err != nil {
		return nil, err
	}
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{opts.Addr}, Username: opts.Username, Password: opts.Password, TLSConfig: opts.TLSConfig, DialTimeout: timeout, DisableIdentity: true,
	}), nil
}

func printKinds(a *command.App) error {
	all := command.Each(doctor.Kinds(), func(k doctor.Kind) map[string]string {
		return map[string]string{"code": string(k.Code), "invariant": k.Invariant, "means": k.Means, "do": k.Do, "repair": k.Repair}
	})
	return a.Show(map[string]any{"codes": all}, func(t *command.Table) {
		t.Row("CODE", "INVARIANT", "MEANS", "REPAIR")
		for _, k := range doctor.Kinds() {
			t.Row(k.Code, command.OrDash(k.Invariant), k.Means, command.OrDash(k.Repair))
		}
	})
}

func printReport(a *command.App, r *doctor.Report) error {
	return a.Show(r, func(t *command.Table) {
		for _, f := range r.Findings {
			about := []string{string(f.Code), f.Invariant, f.Where, ""}
			if f.Task != "" {
				about[3] = "task " + f.Task
			}
			t.Row(strings.Join(slices.DeleteFunc(about, func(s string) bool { return s == "" }), "  "))
			t.Row("  " + f.Means)
			t.Row("  " + f.What)
			switch {
			case f.Repaired:
				t.Row("  repaired: " + f.Repair)
			case f.RepairError != "":
				t.Row("  not repaired: " + f.RepairError)
			default:
				t.Row("  to do: " + f.Do)
			}
		}
		for _, k := range doctor.Kinds() {
			if n := r.More[k.Code]; n > 0 {
				t.Row(fmt.Sprintf("%s: %d more (--most)", k.Code, n))
			}
		}
		l := r.Scanned
		t.Row(fmt.Sprintf("Looked at %d partitions: %d records in timer stores, %d in logs, %d in archives; %d dead letters, %d records of unique keys, %d limits.",
			l.Partitions, l.Waiting, l.Logged, l.Archived, l.DeadLetters, l.Keys, l.Limits))
		for _, u := range r.Unchecked {
			t.Row("Not checked: " + u)
		}
		if r.Clean() {
			t.Row("Nothing was found.")
		}
	})
}
