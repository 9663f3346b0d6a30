package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
)

// benchFlags is what `bench` takes beside the measurement's own options.
type benchFlags struct {
	opts       bench.Options
	file       string
	plot       string
	profile    string
	partitions int
	quiet      bool
}

// BenchCommand is `yard bench`.
func BenchCommand(a *command.App) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure throughput, latency and cost, and check every task",
		Long: `Measure on a fresh system in this process for every run, or with --url on a running
one, and print the median run of each workload:

  W1  drain: 200,000 tasks of 256 B in requests of 100, 10 types, 3 priorities, 8
      producers, 16 long polls of 100, completed in batches; first submit to last
      accepted completion. W1s: workers only afterwards, submits/s
  W2  64 producers, one task per request
  W2s the same from one program: the SDK gathers what its goroutines submit
  W3  an open loop of 500 tasks/s for 20 s: from the submit call to the handler
  W4  50,000 delayed tasks that are all due at one instant: how late they come, tasks/s then
  W5  backlog: 1,000,000 tasks as in W1s: submits/s, what each costs on disk while all
      wait, memory, and how quickly they go through then
  W6  3,000,000 delayed tasks, due at 5,000/s for 10 minutes, beside 100 tasks/s of another
      domain: how late they come, and how much the other's p99 from submit to handler grows
  W7  overload: ten domains of 20 tasks/s each for 20 s, alone; then beside a domain that submits in bulk
      at five times what it does alone, for 60 s with a quota of half of what it does, and for 60 s without:
      how much the p99 from submit to handler grows. Fair filing and queue splits are always on
  W8  1,000 domains in turn, one task per request, 64 producers; a worker for each
  W8s the same with 512 producers, 100,000 tasks, workers only afterwards: submits/s
  W9  reads: 1,000,000 tasks are sent through first; then W3 at 1,000 tasks/s for
      10 s, alone and beside 5,000 gets/s of the finished tasks, at random: from when
      a get was due to its answer
  W10 neighbours: 500 tasks/s and 500 gets/s for 20 s, alone and beside another domain
      with 1,000 open waits and 100,000 polls: how much the p99 of get and submit grows
  W11 fairness: 10 tasks/s of a small group alone, beside 20,000 tasks of another group, and
      beside as many of another domain, with workers that are slower than the flood; then
      what groups of the weights 1, 2, 4 and 0 have of the starts while all wait
  W12 redrive: 1,000 tasks/s for 50 s, alone and while 100,000 dead letters come back at
      2,000/s and are done: how much the p99 from submit to handler grows
  W13 questions: 500 tasks/s, 3 s alone and 3 s beside another domain with 32 clients that ask
      without end, in turn: gets of unknown tasks, repeats of unknown requests, lists
  W14 answers: each read of the API and each page of the console, while 1,000,000 tasks wait; none runs

Every other accepted task must be completed exactly once, or the measurement fails. The
numbers include the load generator. Data are synced to disk before every answer
unless --sync says otherwise. With several, as in --sync always,1s, every run is done
with each, in turn, and the report has the ratio.

On a sealed cluster log in as an admin of the domain bench, which an operator has made. W1,
W1s, W2, W2s, W3, W4, W5, W9 and W12 run there; the others take several domains, and a user acts for one. W9 reads
finished tasks for minutes: the domain keeps them for 30m or more. TASKS/SYNC is tasks by messages of the history streams; with --sync always each is one sync.`,
		Example: `  yard bench
  yard bench --workload W1,W3 --runs 5 --out bench.json
  yard bench --workload W1 --types 1 --max-concurrency 50 --tables redis
  yard bench --workload W1,W2,W8 --sync always,1s
  yard bench --workload W7 --plot w7.png
  yard bench --workload W1,W2,W3 --url tls://127.0.0.1:4222 --tls-ca ca.pem --nkey auth/keys/admin.bench.ann.nk --inbox-prefix _INBOX.t.bench.admin-ann
  yard bench --workload W1 --tasks 600000 --runs 1 --rest 1m --url nats://127.0.0.1:4222 --pid $(cat .dev/pid/history-1)`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			target(a, cmd, &f)
			return runBench(cmd.Context(), a, f)
		},
	}
	flags := cmd.Flags()
	f.load(flags)
	f.limits(flags)
	flags.IntVar(&f.opts.Runs, "runs", 3, "runs per workload; the median is reported")
	flags.StringSliceVar(&f.opts.Syncs, "sync", []string{stack.SyncAlways}, `when accepted tasks go to disk: "always" or an interval, such as 2m; several take turns`)
	f.system(flags)
	command.DurationVar(flags, &f.opts.Rest, "rest", 0, "measure memory before each run, at its peak and so long after it, such as 1m; 0 = not")
	flags.IntSliceVar(&f.opts.PIDs, "pid", nil, "processes whose memory is measured; default this one")
	f.output(flags)
	cmd.AddCommand(curvesCommand(a))
	return cmd
}

// load are the options of what is submitted.
func (f *benchFlags) load(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.opts.Workloads, "workload", nil, "some of W1, W1s, W2, W2s, W3, W4, W5, W6, W7, W8, W8s, W9, W10, W11, W12, W13, W14; default all")
	flags.IntVar(&f.opts.Tasks, "tasks", 0, "tasks per run; 0 = W1 and W1s 200,000, W2 and W2s 50,000, W3 10,000, W4 50,000, W5 1,000,000, W6 3,000,000, W7 28,000, W8 50,000, W8s 100,000, W9 1,000,000, W10 10,000, W11 20,000, W12 100,000, W13 45,000, W14 1,000,000")
	flags.IntVar(&f.opts.Producers, "producers", 0, "producers that submit at once; 0 = W1, W1s and W5 8, W2, W2s and W8 64, W8s 512")
	flags.IntVar(&f.opts.Domains, "domains", 1000, "domains of W8 and W8s, 1 to 10,000")
}

// output are the options of what is written to files.
func (f *benchFlags) output(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "out", "", "write the report as JSON to this file too")
	flags.StringVar(&f.plot, "plot", "", "draw the first of W4, W6 and W7 into this PNG file, by the second; with several --sync under the first one")
	flags.StringVar(&f.profile, "cpuprofile", "", "write a CPU profile of this process to this file")
}

// system are the options of what is measured, and of the lines of progress.
func (f *benchFlags) system(flags *pflag.FlagSet) {
	flags.StringVar(&f.opts.Tables, "tables", string(stack.TablesAuto), "where tables and slots are: auto, memory or redis")
	flags.StringVar(&f.opts.Redis, "redis", "", "URL of a Redis for them; with --url that of the cluster, which is asked what it did")
	flags.IntVar(&f.partitions, "partitions", 0, "history partitions and matching shards; 0 = 2")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no lines of progress")
}

// target says what is measured.
func target(a *command.App, cmd *cobra.Command, f *benchFlags) {
	if a.OnCluster(cmd) {
		f.opts.URL, f.opts.Login = a.URL, a.Login
	}
	f.opts.Partitions = topology.Partitioning{History: f.partitions, Matching: f.partitions}
	if !f.quiet {
		f.opts.Progress = a.Err
	}
}

// limits are the options of what may run at once.
func (f *benchFlags) limits(flags *pflag.FlagSet) {
	flags.IntVar(&f.opts.Types, "types", 10, "types that the tasks are of, 1 to 1,000")
	flags.IntVar(&f.opts.Polls, "polls", 16, "polls that wait for tasks at once, in W1, W1s, W2, W2s and W5, 1 to 10,000")
	flags.IntVar(&f.opts.Limit, "max-concurrency", 0, "tasks of each type that may run at once, not in W8; 0 = any number")
	flags.IntVar(&f.opts.Levels, "levels", 1, "limits that a task needs a slot of, 1 to 4: of its type, one that all types share, its domain's, its tasklist's")
	flags.BoolVar(&f.opts.Unique, "unique", false, "give each task a unique key of its own")
	flags.IntVar(&f.opts.OrderKeys, "order-keys", 0, "order keys that the tasks are of, in turn; 0 = they have none")
	flags.IntVar(&f.opts.Groups, "groups", 0, "groups that the tasks are of, not in W8; 0 = they have none")
	flags.IntVar(&f.opts.PerGroup, "max-concurrency-per-group", 0, "tasks of each type and group that may run at once; 0 = any number")
	flags.IntVar(&f.opts.Spread, "tasklist-partitions", 1, "partitions of the tasklist, not in W8; 1 to 64")
	flags.IntVar(&f.opts.LimitAll, "max-concurrency-all", 0, "tasks that may run at once in each level but the first; 0 = --max-concurrency for each type")
}

func runBench(ctx context.Context, a *command.App, f benchFlags) (err error) {
	if f.plot != "" && len(f.opts.Workloads) > 0 && !slices.ContainsFunc(f.opts.Workloads, func(w string) bool { return w == "W4" || w == "W6" || w == "W7" }) {
		return command.Usagef("--plot %s: W4, W6 and W7 have a picture, and %v have none", f.plot, f.opts.Workloads)
	}
	if f.profile != "" {
		stop, err := profile(f.profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	report, err := bench.Run(ctx, f.opts)
	if err != nil {
		return err
	}
	if f.file != "" {
		if err := writeFile(f.file, report.WriteJSON); err != nil {
			return err
		}
	}
	if f.plot != "" {
		if err := plot(report, f.plot); err != nil {
			return err
		}
	}
	if a.JSON {
		return report.WriteJSON(a.Out)
	}
	return report.WriteTable(a.Out)
}

// plot draws the first result that has a picture.
func plot(r *report.Report, path string) error {
	at := slices.IndexFunc(r.Results, func(r report.Result) bool { return r.Picture() != nil })
	png, err := r.Results[at].Picture()()
	if err != nil {
		return err
	}
	return os.WriteFile(path, png, 0o644)
}

// profile starts a CPU profile; stop ends it and closes the file.
func profile(path string) (stop func() error, err error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("CPU profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("CPU profile: %w", err), file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
