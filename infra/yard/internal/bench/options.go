package bench

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/natsserver"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// Workloads are the names of all, in order.
var workloads = []string{"W1", "W1s", "W2", "W2s", "W3", "W8", "W8s", "W9", "W10", "W11", "W12"}

// Shape of the load. They are part of what the numbers mean, so most are no options.
const (
	payloadBytes  = 256
	typeCount     = 10
	w1Producers   = 8
	w1Request     = 100
	w2Producers   = 64
	w8Producers   = 64
	w8sProducers  = 512
	w8Domains     = 1000
	pollLoops     = 16
	pollTasks     = 100
	pollWait      = 20 * time.Second
	pollWaitBrief = 200 * time.Millisecond
	w3Rate        = 500 // per second
	w3Concurrency = 100
	w9GetRate     = 5000 // per second
	w9TaskRate    = 1000 // per second
	// w9SettlePerTask, 15 s for a million, lets the server drop what it keeps in memory of the
	// writing, which it does within 10 s.
	w9SettlePerTask = 15 * time.Microsecond
	w9Seconds       = 10  // of each phase
	w10Rate         = 500 // tasks, and gets, per second
	w10Filled       = 10_000
	w10Waits        = 1000
	w10Wait         = time.Minute
	w10PollsPerTask = 10
	w10PollsEvery   = 5 * time.Millisecond
	w10PollWait     = 5 * time.Second
	w10Tasklists    = 100
	// The workers of W11 run 1,600 tasks/s, so its flood waits for 12.5 s.
	w11Concurrency = 16
	w11Takes       = 10 * time.Millisecond
	w11Rate        = 10 // tasks of the small group per second
	// w11PerSmall is how many tasks of the flood there are for one of the small group.
	w11PerSmall    = w11Concurrency * int(time.Second/w11Takes) / w11Rate
	w11SmallMin    = 5
	w12Rate        = 1000 // tasks per second
	w12RedriveRate = 2000 // dead letters per second
	warmUpTasks    = 1000
	tasklist       = "bench"
	// domainsMax bounds W8: each domain has a goroutine and a poll of its own.
	domainsMax = 10_000
)

// priorities of the tasks, in turn.
var priorities = [...]int{1, 3, 5}

// Default numbers of tasks.
const (
	w1Tasks  = 200_000
	w2Tasks  = 50_000
	w3Tasks  = 20 * w3Rate
	w8Tasks  = 50_000
	w8sTasks = 100_000
	w9Tasks  = 1_000_000
	// w11Tasks are those of the flood.
	w11Tasks = 20_000
	// w12Tasks are the dead letters.
	w12Tasks = 100_000
	// w10Tasks are 20 s of each phase.
	w10Tasks = 20 * w10Rate
)

// stallAfter ends a run in which nothing has moved for so long.
const stallAfter = 2 * time.Minute

// Bounds of a run: its groups, its order keys, its types, and its polls, each of which has a goroutine.
const (
	groupsMax    = 1_000_000
	orderKeysMax = 1_000_000
	typesMax     = 1000
	pollsMax     = 10_000
)

// Options of a measurement.
type Options struct {
	// Workloads to run, of W1, W1s, W2, W2s, W3, W8, W8s, W9, W10, W11, W12. Default: all.
	Workloads []string
	// Tasks per run. Default 0 = W1 and W1s 200,000, W2 and W2s 50,000, W3 10,000, W8 50,000,
	// W8s 100,000, W9 1,000,000, W10 10,000 in each phase, W11 20,000 of the flood,
	// W12 100,000 dead letters.
	Tasks int
	// Runs per workload; the median one is reported. Default 3.
	Runs int
	// Producers that submit at once in W1, W1s, W2, W2s, W8 and W8s. Default 0 = W1 and W1s 8, W2, W2s and W8 64,
	// W8s 512. Domains are those of W8 and W8s, 1 to 10,000. Default 1000.
	Producers, Domains int
	// Types is how many types the tasks are of, 1 to 1,000. Default 10. Limit is how many tasks of
	// each may run at once. Default 0 = any number. The many domains of W8 and W8s have no limits.
	Types, Limit int
	// Polls is how many polls wait for tasks at once, 1 to 10,000, in W1, W1s, W2 and W2s. Default 16.
	Polls int
	// Levels is of how many limits a task needs a slot, 1 to 4: of its type, of one that all types share, of its domain, and of
	// its tasklist. Default 1. LimitAll is how many tasks may run at once in each but the first. Default 0 = Limit for each
	// type.
	Levels, LimitAll int
	// Groups is how many groups the tasks are of, in turn, 0 to 1,000,000. Default 0: they have none.
	Groups int
	// Unique gives each task a unique key of its own, kept for an hour after its end.
	Unique bool
	// OrderKeys is how many order keys the tasks are of, in turn, 0 to 1,000,000. Default 0: they have none.
	OrderKeys int
	// PerGroup is how many tasks of each type and group may run at once, 0 to 1,000,000. Default 0 = any number.
	PerGroup int
	// Spread is how many partitions the tasklist has, 1 to 64. Default 1.
	Spread int
	// Syncs are those of the embedded stack: "always" or a duration. With several every run is
	// done with each, in turn, and the report has their ratios. Default: always.
	Syncs []string
	// Tables, Redis and Partitions are those of the embedded stack. With a URL, Redis is that of the cluster: it is
	// only asked what it has done.
	Tables     string
	Redis      string
	Partitions topology.Partitioning
	// URL of a running cluster to measure in place of an embedded stack. Its domain
	// bench is created, and keeps the finished tasks for 2 minutes, those of W9 for 30; W10 and W11
	// create bench-flood too, W8 bench-0 and so on.
	URL string
	// Login is how to log in to the cluster at URL; its own URL is not used. On a sealed cluster it
	// is an admin of the domain bench, which an operator has made and which keeps finished tasks as
	// long as that one said. Workloads of several domains are refused there.
	Login natsrpc.ConnConfig
	// Rest is how long the system rests after each run, until its memory is measured a
	// last time. Default 0 = it is not measured.
	Rest time.Duration
	// PIDs are the processes whose memory is measured. Default: this one.
	PIDs []int
	// Progress hears of each run. Default: none.
	Progress io.Writer

	// slower is by how much the open loops are slower than they are to be, where their numbers
	// do not matter. Default 1.
	slower int
}

func (o *Options) fill() error {
	if len(o.Workloads) == 0 {
		o.Workloads = workloads
	}
	for _, w := range o.Workloads {
		if !slices.Contains(workloads, w) {
			return fmt.Errorf("workload %q: want some of %v", w, workloads)
		}
	}
	if o.Runs == 0 {
		o.Runs = 3
	}
	if o.Types == 0 {
		o.Types = typeCount
	}
	o.slower = max(o.slower, 1)
	if o.Types < 1 || o.Types > typesMax || o.Limit < 0 {
		return fmt.Errorf("%d types, each limited to %d: want 1 to %d types, and no negative limit", o.Types, o.Limit, typesMax)
	}
	if o.Polls == 0 {
		o.Polls = pollLoops
	}
	if o.Polls < 1 || o.Polls > pollsMax {
		return fmt.Errorf("%d polls: want 1 to %d", o.Polls, pollsMax)
	}
	if o.Spread = max(o.Spread, 1); o.Spread > ids.PartitionsMax {
		return fmt.Errorf("%d partitions of the tasklist: want 1 to %d", o.Spread, ids.PartitionsMax)
	}
	if o.Levels == 0 {
		o.Levels = 1
	}
	if o.LimitAll == 0 {
		o.LimitAll = o.Limit * o.Types
	}
	if o.Levels < 1 || o.Levels > 4 || o.LimitAll < 0 || o.Levels > 1 && o.LimitAll == 0 {
		return fmt.Errorf("%d levels, limited to %d: want 1 to 4 levels, and a limit where there are more than 1", o.Levels, o.LimitAll)
	}
	if o.PerGroup < 0 || o.PerGroup > groupsMax {
		return fmt.Errorf("%d of each group at once: want 0 to %d", o.PerGroup, groupsMax)
	}
	if o.Groups < 0 || o.Groups > groupsMax {
		return fmt.Errorf("%d groups: want 0 to %d", o.Groups, groupsMax)
	}
	if o.OrderKeys < 0 || o.OrderKeys > orderKeysMax {
		return fmt.Errorf("%d order keys: want 0 to %d", o.OrderKeys, orderKeysMax)
	}
	if o.Domains == 0 {
		o.Domains = w8Domains
	}
	if o.Producers < 0 || o.Domains < 1 || o.Domains > domainsMax {
		return fmt.Errorf("%d producers, %d domains: want no negative number of producers, and 1 to %d domains", o.Producers, o.Domains, domainsMax)
	}
	if err := cmp.Or(o.fillSyncs(), o.checkLogin()); err != nil {
		return err
	}
	if o.Runs < 1 || o.Tasks < 0 {
		return fmt.Errorf("%d runs of %d tasks: want at least one run, and no negative number of tasks", o.Runs, o.Tasks)
	}
	if o.Rest < 0 || o.Rest == 0 && len(o.PIDs) > 0 {
		return fmt.Errorf("a rest of %v: want how long processes rest before their memory is measured", o.Rest)
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return nil
}

// fillSyncs refuses a wrong value before the first run.
func (o *Options) fillSyncs() error {
	if len(o.Syncs) == 0 {
		o.Syncs = []string{stack.SyncAlways}
	}
	if o.URL != "" && len(o.Syncs) > 1 {
		return fmt.Errorf("sync %v with the cluster at %s: its servers' setting is measured; name no more than one", o.Syncs, o.URL)
	}
	for _, s := range o.Syncs {
		if _, err := natsserver.Sync(s).Interval(); err != nil {
			return err
		}
	}
	return nil
}

// processes are those whose memory is measured.
func (o *Options) processes() []int {
	if len(o.PIDs) == 0 {
		return []int{os.Getpid()}
	}
	return o.PIDs
}

// tasks of one run of a workload.
func (o *Options) tasks(workload string) int {
	switch {
	case o.Tasks > 0:
		return o.Tasks
	case workload == "W1" || workload == "W1s":
		return w1Tasks
	case workload == "W2" || workload == "W2s":
		return w2Tasks
	case workload == "W8":
		return w8Tasks
	case workload == "W8s":
		return w8sTasks
	case workload == "W9":
		return w9Tasks
	case workload == "W10":
		return w10Tasks
	case workload == "W11":
		return w11Tasks
	case workload == "W12":
		return w12Tasks
	default:
		return w3Tasks
	}
}
