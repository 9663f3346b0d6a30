package bench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/natsserver"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// Options of a measurement.
type Options struct {
	// Workloads to run, by name. Default: all.
	Workloads []string
	// Tasks per run. Default 0 = as many as the workload has.
	Tasks int
	report.LoadOptions
	// PerGroup is how many tasks of each type and group may run at once, 0 to 1,000,000. Default 0 = any number.
	PerGroup int
	// Syncs are those of the embedded stack: "always" or a duration. With several every run is
	// done with each, in turn, and the report has their ratios. Default: always.
	Syncs []string
	// Tables, Redis and Partitions are those of the embedded stack. With a URL, Redis is that of the cluster: it is
	// only asked what it has done.
	Tables     string
	Redis      string
	Partitions topology.Partitioning
	// URL of a running cluster to measure in place of an embedded stack. Its domain
	// bench is created, and keeps the finished tasks for 2 minutes, those of W9 for 30; W6, W7, W10, W11
	// and W13 create bench-flood too, W7 and W8 bench-0 and so on.
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

// Fill sets the defaults, and refuses wrong values.
func (o *Options) Fill() error {
	if len(o.Workloads) == 0 {
		o.Workloads = workloadNames()
	}
	for _, w := range o.Workloads {
		if !slices.Contains(workloadNames(), w) {
			return fmt.Errorf("workload %q: want some of %v", w, workloadNames())
		}
	}
	o.Runs, o.Types, o.Polls, o.Levels, o.Domains = cmp.Or(o.Runs, 3), cmp.Or(o.Types, typeCount), cmp.Or(o.Polls, pollLoops), cmp.Or(o.Levels, 1), cmp.Or(o.Domains, W8Domains)
	o.LimitAll = cmp.Or(o.LimitAll, o.Limit*o.Types)
	o.slower, o.Spread = max(o.slower, 1), max(o.Spread, 1)
	for _, of := range []struct {
		what           string
		n, least, most int
	}{
		{"runs", o.Runs, 1, math.MaxInt},
		{"tasks", o.Tasks, 0, math.MaxInt},
		{"producers", o.Producers, 0, math.MaxInt},
		{"domains", o.Domains, 1, domainsMax},
		{"idle domains", o.IdleDomains, 0, groupsMax},
		{"types", o.Types, 1, typesMax},
		{"tasks of each type at once", o.Limit, 0, math.MaxInt},
		{"polls", o.Polls, 1, pollsMax},
		{"partitions of the tasklist", o.Spread, 1, ids.PartitionsMax},
		{"tasks of each group at once", o.PerGroup, 0, groupsMax},
		{"groups", o.Groups, 0, groupsMax},
		{"order keys", o.OrderKeys, 0, orderKeysMax},
	} {
		if of.n < of.least || of.n > of.most {
			return fmt.Errorf("%d %s: want %d to %d", of.n, of.what, of.least, of.most)
		}
	}
	if o.Levels < 1 || o.Levels > 4 || o.LimitAll < 0 || o.Levels > 1 && o.LimitAll == 0 {
		return fmt.Errorf("%d levels, limited to %d: want 1 to 4 levels, and a limit where there are more than 1", o.Levels, o.LimitAll)
	}
	if err := cmp.Or(o.fillSyncs(), o.checkLogin()); err != nil {
		return err
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

func (o *Options) settings() report.Settings {
	s := report.Settings{
		Stack: "embedded: one process, in-process connections", Sync: strings.Join(o.Syncs, ","),
		PayloadBytes: payloadBytes, WarmUpTasks: warmUpTasks, LoadOptions: o.LoadOptions, RestSeconds: o.Rest.Seconds(),
	}
	if o.URL != "" {
		s.Stack, s.Sync, s.TablesAt = "cluster at "+o.URL, unknown, unknown
	}
	return s
}
