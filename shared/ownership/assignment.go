package ownership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// How a failing Serve is called again. One that lasted for steadyAfter is not
// failing for the reason of the last time.
const (
	serveRetryFirst = 200 * time.Millisecond
	serveRetryLast  = 2 * time.Second
	steadyAfter     = 10 * time.Second
)

// handoverMax is how long a partition is waited for that another node holds. The other node gives
// it up as soon as it hears of the new owner, and drains; unless it is ill.
const handoverMax = 10 * time.Second

// assignment is the goroutines of the partitions being served. It belongs to one
// goroutine, that of Share.Run.
type assignment struct {
	ctx   context.Context // the parent of every Serve; lives as long as Run
	cfg   Config
	slots map[int]*slot
	// claims are those that this node is about to serve, with the number of heartbeats that it had begun to
	// show before it claimed them.
	claims map[int]uint64
	// beats is how many heartbeats this node has begun to show.
	beats func() uint64
	// waits is since when this node waits for those that are its own and that others hold.
	waits map[int]time.Time
	// ended tells of goroutines that returned.
	ended    chan ending
	refusals *refusals
	// owners is the last answer of Assign.
	owners []string
}

// ending is a partition whose goroutine returned, and why it was given up, if so.
type ending struct {
	partition int
	gaveUp    error
}

type slot struct {
	cancel  context.CancelFunc
	leaving bool
	since   time.Time
}

func (s *slot) leave() {
	s.leaving = true
	s.cancel()
}

func newAssignment(ctx context.Context, cfg Config, beats func() uint64) *assignment {
	return &assignment{
		ctx: ctx, cfg: cfg, slots: map[int]*slot{}, claims: map[int]uint64{}, beats: beats,
		waits: map[int]time.Time{}, ended: make(chan ending),
		refusals: newRefusals(cfg.StoppedRetry), owners: make([]string, cfg.Count),
	}
}

// reconcile begins and ends serving so that it matches who is alive. A partition is claimed first, and begins
// when the members bucket has the claim (claimed): so every node that joins later knows of it. One
// that came back while it is still draining begins when that is done; one that another
// node holds, when it is held no more, or after handoverMax. Whole reports that none is waited for.
func (a *assignment) reconcile(nodes []Candidate, held, claimed []int) (whole bool) {
	owners := Assign(nodes, a.cfg.Count)
	a.owners, whole = owners, true
	for p := range a.cfg.Count {
		mine := owners[p] == a.cfg.Node
		s := a.slots[p]
		if !mine {
			delete(a.claims, p)
		}
		switch {
		case mine && s != nil && s.leaving:
			a.claim(p)
		case mine && s == nil && !slices.Contains(claimed, p):
			a.claim(p)
			whole = false
			continue
		case mine && s == nil && slices.Contains(held, p) && a.wait(p, time.Now()):
			whole = false
			continue
		case mine && s == nil:
			ctx, cancel := context.WithCancel(a.ctx)
			a.slots[p] = &slot{cancel: cancel, since: time.Now()}
			delete(a.claims, p)
			a.cfg.Log.Info("partition acquired", "partition", p)
			go func() {
				a.ended <- ending{p, a.serve(ctx, p)}
			}()
		case !mine && s != nil && !s.leaving:
			a.cfg.Log.Info("partition released", "partition", p, "node", owners[p])
			s.leave()
		}
		delete(a.waits, p)
	}
	return whole
}

// claim notes that this node is about to serve a partition; its next heartbeat says so.
func (a *assignment) claim(p int) {
	if _, found := a.claims[p]; !found {
		a.claims[p] = a.beats()
	}
}

// claimed are the claims that the members bucket has, sorted: shown is what this node's heartbeat held that
// came back last, beat its number. An older claim of the same partition does not count.
func (a *assignment) claimed(shown []int, beat uint64) []int {
	var all []int
	for _, p := range shown {
		if before, found := a.claims[p]; found && beat > before {
			all = append(all, p)
		}
	}
	return all
}

// wait tells whether to wait on for a partition that another node holds.
func (a *assignment) wait(p int, now time.Time) bool {
	since, found := a.waits[p]
	if !found {
		a.waits[p] = now
	}
	return !found || now.Sub(since) < handoverMax
}

// overdue tells whether a partition was waited for long enough.
func (a *assignment) overdue(now time.Time) bool {
	for _, since := range a.waits {
		if now.Sub(since) >= handoverMax {
			return true
		}
	}
	return false
}

// suspend ends serving everything, until reconcile is called again.
func (a *assignment) suspend() {
	clear(a.claims)
	for _, s := range a.slots {
		s.leave()
	}
}

// forget removes a partition whose goroutine returned.
func (a *assignment) forget(e ending) {
	a.slots[e.partition].cancel()
	delete(a.slots, e.partition)
	if e.gaveUp == nil {
		return
	}
	a.refusals.giveUp(e.partition, time.Now())
	a.stopped(e.partition).Set(1)
	a.cfg.Log.Error("a partition was given up: this node no longer serves it", "partition", e.partition, "error", e.gaveUp)
}

// retry takes back the refusal of partitions that no node serves, when it is time.
func (a *assignment) retry() {
	for _, p := range a.refusals.retry(a.owners, time.Now()) {
		a.stopped(p).Set(0)
		a.cfg.Log.Warn("a partition that was given up is tried again, since no other node serves it", "partition", p)
	}
}

// stopped is the alarm of a partition.
func (a *assignment) stopped(p int) *telemetry.Gauge {
	return a.cfg.Metrics.Gauge(signals.PartitionStopped, a.cfg.Service, strconv.Itoa(p))
}

func (a *assignment) busy() bool { return len(a.slots) > 0 }

// holding is the partitions being served or drained, sorted.
func (a *assignment) holding() []int { return slices.Sorted(maps.Keys(a.slots)) }

// holdingOrClaimed is what others must not begin with, sorted.
func (a *assignment) holdingOrClaimed() []int {
	all := slices.AppendSeq(a.holding(), maps.Keys(a.claims))
	slices.Sort(all)
	return slices.Compact(all)
}

// serving is the partitions being served and not being given away, sorted.
func (a *assignment) serving() []Served {
	var all []Served
	for p, s := range a.slots {
		if !s.leaving {
			all = append(all, Served{p, s.since})
		}
	}
	slices.SortFunc(all, func(x, y Served) int { return x.Partition - y.Partition })
	return all
}

// serve calls Serve until ctx ends, again after it failed. It returns why the
// partition is given up, if it is.
func (a *assignment) serve(ctx context.Context, p int) (gaveUp error) {
	log := a.cfg.Log.With("partition", p)
	for wait := backoff.New(serveRetryFirst, serveRetryLast); ; {
		began := time.Now()
		err := guarded(ctx, log, p, a.cfg.Serve)
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				log.Warn("a partition did not stop cleanly", "error", err)
			}
			return nil
		}
		if errors.Is(err, ErrGiveUp) {
			return err
		}
		if time.Since(began) > steadyAfter {
			wait.Reset()
		}
		delay := wait.Next()
		log.Error("serving a partition failed, starting again", "retry_in", delay, "error", err)
		if !backoff.Sleep(ctx, delay) {
			return nil
		}
	}
}

// guarded turns a panic into an error: one bad partition must not take the node's
// others down, only to do the same on the next node.
func guarded(ctx context.Context, log *slog.Logger, p int, serve func(context.Context, int) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("serving a partition panicked", "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return serve(ctx, p)
}
