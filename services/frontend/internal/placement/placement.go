// Package placement chooses the partition of each submit, for all goroutines of a frontend.
//
// Owns: the one distribution.Balancer of a frontend, its lock, and what people see of it: the share of each partition as a
// metric, a log line for each change, and the warning that appends are slow.
//
// Never does: append, queue or move a request. The caller reports how its appends went, and moves what waits for a
// partition that gets less.
//
// On failure: a wrong choice is safe, since every partition is correct for a request that may go to any of them. A request
// that has one partition only goes there, however slow it is.
package placement

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/distribution"
)

// Placement chooses partitions. It is safe for concurrent use.
type Placement struct {
	log     *slog.Logger
	changes *telemetry.Counter
	n       int

	mu       sync.Mutex
	balancer *distribution.Balancer
}

// New makes a placement over n partitions. The metrics may be nil.
func New(n int, m *telemetry.Metrics, log *slog.Logger) *Placement {
	p := &Placement{log: log, changes: m.Counter(signals.PartitionShareChanges), n: n, balancer: distribution.New(n)}
	for i := range n {
		m.GaugeFunc(signals.PartitionShare, func() float64 { return p.Share(i).Part() }, strconv.Itoa(i))
	}
	return p
}

// Pick chooses the partition of a request of so many tasks; ok is false if none takes it now. Stored, Failed, Refused or
// Returned follows.
func (p *Placement) Pick(tasks int, now time.Time) (partition int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.balancer.Pick(now, tasks, rand.Uint64())
}

// Take is Pick for a request that may go to one partition only.
func (p *Placement) Take(partition, tasks int, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.balancer.Take(partition, now, tasks)
}

// Returned takes in that a request was not sent to the partition that was chosen.
func (p *Placement) Returned(partition, tasks int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.balancer.Returned(partition, tasks)
}

// Report takes in what the owner of a partition reports.
func (p *Placement) Report(load *rpcv1.HistoryLoad) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.balancer.Report(int(load.Partition), load.Active, load.UnreadBatches, time.Now())
	p.balancer.ReportFull(int(load.Partition), load.StorageFull)
}

// Began takes in that so many appends to a partition begin. Ended follows for each.
func (p *Placement) Began(partition, appends int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range appends {
		p.balancer.Began(partition, time.Now())
	}
}

// Ended takes in how an append ended, for how long it took.
func (p *Placement) Ended(partition int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil || errors.Is(err, natslog.ErrWrongLast) || errors.Is(err, natslog.ErrFull) {
		p.balancer.Answered(partition, time.Now())
	} else {
		p.balancer.Abandoned(partition)
	}
}

// Stored takes in that a partition has stored tasks.
func (p *Placement) Stored(partition int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.balancer.Stored(partition)
}

// Failed takes in that a partition has not stored so many tasks, or that this is not known.
func (p *Placement) Failed(partition, tasks int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(err, natslog.ErrFull) {
		p.balancer.Refused(partition, tasks, time.Now())
	} else {
		p.balancer.Failed(partition, tasks, time.Now())
	}
}

// Healthy reports whether a request that was placed may still be sent to its partition.
func (p *Placement) Healthy(partition int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.balancer.Healthy(partition)
}

// HasRoom reports whether the log of a partition has space for tasks.
func (p *Placement) HasRoom(partition int, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.balancer.HasRoom(partition, now)
}

// Full is how many partitions have no space for tasks.
func (p *Placement) Full(now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.balancer.Full(now)
}

// Share is that of a partition.
func (p *Placement) Share(partition int) distribution.Share {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.balancer.Share(partition)
}

// Tick notices partitions that are silent, and logs what has changed. It returns the partitions that get less than before.
func (p *Placement) Tick(now time.Time) (reduced []int) {
	p.mu.Lock()
	changes := p.balancer.Changes(now)
	p.mu.Unlock()
	for _, c := range changes {
		p.changes.Add(1)
		if c.To > c.From {
			reduced = append(reduced, c.Partition)
		}
		attrs := []any{signals.Partition, c.Partition, "from", c.From, "to", c.To, "took", c.Took, "expected", c.Expected}
		switch distribution.Probes {
		case c.To:
			p.log.Warn("appends to a partition are slow: submits avoid it", attrs...)
		case c.From:
			p.log.Info("appends to a partition are quick again: it gets more submits", attrs...)
		default:
			p.log.Debug("the share of a partition has changed", attrs...)
		}
	}
	return reduced
}

// Slow is a warning that some partitions get probes only.
func (p *Placement) Slow() error {
	slow := 0
	for i := range p.n {
		if p.Share(i) == distribution.Probes {
			slow++
		}
	}
	if slow == 0 {
		return nil
	}
	return fmt.Errorf("appends to %d of %d partitions are slow: submits avoid them", slow, p.n)
}
