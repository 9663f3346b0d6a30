package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/usage"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// stopTimeout bounds the stop of an embedded stack.
const stopTimeout = time.Minute

// Run measures and returns the report. An error means that no number is to be
// trusted.
func Run(ctx context.Context, o Options) (*report.Report, error) {
	if err := o.Fill(); err != nil {
		return nil, err
	}
	out := &report.Report{At: time.Now().UTC(), Machine: usage.ThisMachine(), Settings: o.settings()}
	for _, name := range o.Workloads {
		w := o.workload(name)
		runs := make([][]report.Result, len(o.Syncs))
		for i := range o.Runs {
			for k, sync := range o.Syncs {
				fmt.Fprintf(o.Progress, "%s run %d of %d: %d tasks%s\n", name, i+1, o.Runs, w.tasks, o.turn(sync))
				r, err := o.once(ctx, w, sync, &out.Settings)
				if err != nil {
					return nil, fmt.Errorf("%s run %d: %w", name, i+1, err)
				}
				fmt.Fprintln(o.Progress, "  ", r.Line())
				runs[k] = append(runs[k], r)
			}
		}
		for k := range runs[1:] {
			out.Ratios = append(out.Ratios, report.RatioOf(runs[0], runs[k+1]))
		}
		for k := range runs {
			out.Results = append(out.Results, report.Median(runs[k]))
		}
	}
	return out, nil
}

// workload is a way to measure.
type workload struct {
	name string
	// tasks of a run, by default.
	tasks int
	// shape of the drain; of those that are no drains, W1's, for the warm-up.
	shape shape
	// run measures. Default: the drain.
	run func(*load, context.Context) (report.Result, error)
	// several: it takes several domains, and a user of a sealed cluster acts for one.
	several bool
	// retention is for how long finished tasks are kept. Default: as short as may be.
	retention time.Duration
}

// workloads are all of them, in order. Their numbers are part of what they mean.
var workloads = []workload{
	{name: "W1", tasks: 200_000, shape: bulk},
	{name: "W1s", tasks: 200_000, shape: backlog},
	{name: "W2", tasks: 50_000, shape: shape{producers: 64, request: 1}},
	{name: "W2s", tasks: 50_000, shape: shape{producers: 64, request: 1, together: true}},
	{name: "W3", tasks: 20 * w3Rate, shape: bulk, run: (*load).steady},
	{name: "W4", tasks: 50_000, shape: bulk, run: (*load).instant},
	{name: "W5", tasks: 1_000_000, shape: backlog},
	{name: "W6", tasks: w6Seconds * w6Rate, shape: bulk, run: (*load).timers, several: true},
	{name: "W7", tasks: w7Seconds * w7Rate, shape: bulk, run: (*load).overload, several: true}, // of the small domains
	{name: "W8", tasks: 50_000, shape: shape{producers: 64, request: 1, many: true}, several: true},
	{name: "W8s", tasks: 100_000, shape: shape{producers: 512, request: 1, many: true, ahead: true}, several: true},
	{name: "W9", tasks: 1_000_000, shape: bulk, run: (*load).reads, retention: 30 * time.Minute}, // it reads them
	{name: "W10", tasks: 20 * w10Rate, shape: bulk, run: (*load).neighbours, several: true},      // 20 s of each phase
	{name: "W11", tasks: 20_000, shape: bulk, run: (*load).fairness, several: true},              // tasks of the flood
	{name: "W12", tasks: 100_000, shape: bulk, run: (*load).redrive},                             // dead letters
	{name: "W13", tasks: 90 * w13Rate, shape: bulk, run: (*load).asking, several: true},          // 3 s of each phase
	{name: "W14", tasks: 1_000_000, shape: bulk, run: (*load).answers},                           // that wait
}

// workloadNames are the names of all, in order.
func workloadNames() (names []string) {
	for _, w := range workloads {
		names = append(names, w.name)
	}
	return names
}

// workload is the named one, as the options change it.
func (o *Options) workload(name string) workload {
	w := workloads[slices.Index(workloadNames(), name)]
	w.tasks, w.retention = cmp.Or(o.Tasks, w.tasks), cmp.Or(w.retention, topology.RetentionMin)
	w.shape.producers = cmp.Or(o.Producers, w.shape.producers)
	w.shape.domains = []string{domain}
	if w.shape.many {
		w.shape.domains = many(o.Domains)
	}
	return w
}

// turn tells which sync a run is done with, where they take turns.
func (o *Options) turn(sync string) string {
	if len(o.Syncs) == 1 {
		return ""
	}
	return ", sync " + sync
}

// once does one run of a workload, on a fresh stack unless there is a cluster, and
// notes what it found itself on.
func (o *Options) once(ctx context.Context, w workload, sync string, found *report.Settings) (r report.Result, err error) {
	target, err := o.open(ctx, sync)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, target.close(ctx)) }()
	if s := target.stack; s != nil {
		found.TablesAt = s.TablesAt
	}
	if _, err := target.redisUse(ctx); err != nil {
		fmt.Fprintf(o.Progress, "   what Redis does is not known: %v\n", err)
		_ = target.redis.Close() // it is not asked again
		target.redis = nil
	}
	if err := target.openLog(ctx); err != nil {
		if target.stack != nil {
			return r, err
		}
		fmt.Fprintf(o.Progress, "   tasks per sync are not known: %v\n", err)
		target.log = nil
	}
	found.HistoryPartitions, found.MatchingShards = target.partitioning.History, target.partitioning.Matching
	if o.Rest > 0 {
		memory, failed := usage.WatchMemory(ctx, o.processes())
		if failed != nil {
			return r, failed
		}
		defer func() {
			if err != nil {
				_ = memory.End() // the run's error tells more
				return
			}
			r.Memory, err = memory.Rest(ctx, o.Rest)
		}()
	}
	if err := target.prepare(ctx, w.shape, w.retention); err != nil {
		return r, err
	}
	load := &load{target: target, tasks: w.tasks, progress: o.Progress}
	if w.run == nil {
		r, err = load.drain(ctx, w.shape)
	} else {
		r, err = w.run(load, ctx)
	}
	r.Workload, r.Sync = w.name, sync
	if target.stack == nil {
		r.Sync = unknown
	}
	return r, err
}

// target is the system under test.
type target struct {
	*Options
	stack        *stack.Stack // nil for a cluster
	partitioning topology.Partitioning
	// log is nil where it may not be read.
	log *historyLog
	// redis is that of the tables, nil where there is none or it is not known.
	redis *redis.Client
	conns []*nats.Conn
}

// open starts an embedded stack, or names the cluster. The stack's data go into the
// current folder's file system, since the usual temporary one may be memory.
func (o *Options) open(ctx context.Context, sync string) (*target, error) {
	t := &target{Options: o}
	if o.URL != "" {
		return t, t.openRedis(o.Redis)
	}
	dir, err := os.MkdirTemp(".", ".yard-bench-")
	if err != nil {
		return nil, err
	}
	logs := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	t.stack, err = stack.Start(ctx, stack.Config{
		DataDir: dir, Sync: sync, Tables: stack.Tables(o.Tables), Redis: o.Redis,
		Partitioning: o.Partitions, Log: logs, Services: o.services(),
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	at := o.Redis
	if t.stack.RedisPID() != 0 {
		at = t.stack.TablesAt
	}
	if err := t.openRedis(at); err != nil {
		return nil, errors.Join(err, t.close(ctx))
	}
	return t, nil
}

// services are the embedded ones as they are by default, but that all polls may wait at the shard of their tasklist: one domain may have
// three quarters of its places.
func (o *Options) services() *stack.Services {
	all := stack.DefaultServices()
	all.Matching.Shard.PollsMax = max(all.Matching.Shard.PollsMax, 2*o.Polls)
	return &all
}

// connect makes a connection that close closes: in process where the stack is, over TCP else.
func (t *target) connect() (*nats.Conn, error) {
	const name = "yard-bench"
	var nc *nats.Conn
	var err error
	if t.stack != nil {
		nc, err = t.stack.Connect(name)
	} else {
		login := t.Login
		login.URL = t.URL
		nc, err = natsrpc.Dial(login, name)
	}
	if err != nil {
		return nil, err
	}
	t.conns = append(t.conns, nc)
	return nc, nil
}

// prepare makes the domains, unless they are made for it, and sends the first tasks through, so that what is
// measured is a system at work.
func (t *target) prepare(ctx context.Context, s shape, retention time.Duration) error {
	if !t.tenant() {
		if err := t.domains(ctx, slices.Concat([]string{domain}, s.domains, named("idle-", t.IdleDomains)), retention); err != nil {
			return err
		}
	}
	clients, err := t.clients([]string{domain})
	if err != nil {
		return err
	}
	if err := t.limits(ctx, clients[0], retention); err != nil {
		return t.noDomain(err)
	}
	warmUp := &load{target: t, tasks: s.warmUp(), brief: true}
	if _, err := warmUp.drain(ctx, s); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	return nil
}

// limits makes the types, and limits of as many levels as there are to be. Those of runs before, with fewer, are taken away.
func (t *target) limits(ctx context.Context, c *yard.Client, retention time.Duration) error {
	const shared = "bench"
	at := func(level int) int {
		if t.Levels < level {
			return 0
		}
		return t.LimitAll
	}
	var limits []string
	if t.Levels >= 2 {
		limits = []string{shared}
		if _, err := c.PutLimit(ctx, yard.Limit{Name: shared, MaxConcurrency: t.LimitAll}); err != nil {
			return fmt.Errorf("limit %s: %w", shared, err)
		}
	}
	if !t.tenant() {
		if _, err := c.Admin().PutDomain(ctx, yard.Domain{Name: domain, Description: "yard bench", Retention: retention, MaxConcurrency: at(3)}); err != nil {
			return fmt.Errorf("domain %s: %w", domain, err)
		}
	}
	if _, err := c.PutTasklist(ctx, yard.Tasklist{Name: tasklist, MaxConcurrency: at(4), Partitions: t.Spread}); err != nil {
		return fmt.Errorf("tasklist %s: %w", tasklist, err)
	}
	for i := range t.Types {
		name := typeName(i)
		if _, err := c.PutType(ctx, yard.TaskType{Name: name, MaxConcurrency: t.Limit, MaxConcurrencyPerGroup: t.PerGroup, Limits: limits}); err != nil {
			return fmt.Errorf("type %s: %w", name, err)
		}
	}
	return nil
}

func (t *target) redisPID() int {
	if t.stack == nil {
		return 0
	}
	return t.stack.RedisPID()
}

func (t *target) close(ctx context.Context) error {
	for _, nc := range t.conns {
		nc.Close()
	}
	if t.redis != nil {
		_ = t.redis.Close() // what it was asked is answered
	}
	if t.stack == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return errors.Join(t.stack.Close(ctx), os.RemoveAll(t.stack.DataDir))
}
