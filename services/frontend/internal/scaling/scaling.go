// Package scaling sets the number of partitions of tasklists whose settings leave that to the engine.
//
// Owns: the rates that matching reports of these tasklists, and the stored numbers. When a number changes is decided in core/scale.
//
// Never does: serve a request.
//
// On failure: a number that is not stored is decided again; all frontends decide alike, and one of them is first.
package scaling

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/scale"
)

// within bounds one write of a number of partitions.
const within = 5 * time.Second

// Config is how the number of partitions of tasklists with a partitions_max is set.
type Config struct {
	// Every is how often the rates are looked at: each look takes the mean since the one before. Default 15 s.
	Every time.Duration `koanf:"every" usage:"the rates of tasklists with a partitions_max are looked at every"`
	// TasksPerSecond is how many tasks in a second one partition is meant to take: there are as many partitions as the rate has such parts.
	// Default 10,000: one partition takes 40,000 to 50,000 on a core of its own, which history, the log and the other shards of its node
	// use too. Too low spreads tasklists that one node serves with less work; too high leaves them on a node that is full.
	TasksPerSecond int `koanf:"tasks_per_second" usage:"tasks in a second that one partition of a tasklist with a partitions_max is meant to take"`
	// UpAfter is how long the rate must have been above what the partitions are meant to take, at each look. Default 1 min.
	UpAfter time.Duration `koanf:"up_after" usage:"a tasklist gets more partitions after so long above their rate"`
	// DownAfter is how long it must have been below three quarters of what one partition less would take. Default 2 min.
	DownAfter time.Duration `koanf:"down_after" usage:"a tasklist gets fewer partitions after so long well below their rate"`
}

// Scaling sets numbers of partitions. It is safe for concurrent use.
type Scaling struct {
	Deps
	scaled *telemetry.Counter

	mu     sync.Mutex
	scaler *scale.Scaler
}

// Deps is what Scaling needs.
type Deps struct {
	Config  Config
	Catalog *catalog.Catalog
	Bucket  catalog.Bucket
	Log     *slog.Logger
	Metrics *telemetry.Metrics
}

// New makes Scaling; the caller runs Scale.
func New(d Deps) *Scaling {
	return &Scaling{
		Deps: d, scaled: d.Metrics.Counter(signals.TasklistsScaled),
		scaler: scale.New(scale.Config{PerPartition: float64(d.Config.TasksPerSecond), UpAfter: d.Config.UpAfter, DownAfter: d.Config.DownAfter}),
	}
}

// Report takes in what comes into one partition of a tasklist, in a second.
func (s *Scaling) Report(p *rpcv1.PartitionLoad, now time.Time) {
	if catalog.Tasklists.Of(s.Catalog, p.Domain, p.Tasklist).GetPartitionsMax() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scaler.Report(scale.Tasklist{Domain: p.Domain, Name: p.Tasklist}, int(p.TasklistPartition), p.PerSecond, now)
}

// due is what is to be changed now.
func (s *Scaling) due(now time.Time) []scale.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scaler.Look(now, func(of scale.Tasklist) (is scale.Setting, known bool) {
		l := catalog.Tasklists.Of(s.Catalog, of.Domain, of.Name)
		stored := catalog.Scales.Of(s.Catalog, of.Domain, of.Name)
		is.Least, is.Most = catalog.PartitionsBetween(l)
		is.Partitions, is.Revision = catalog.PartitionsOf(l, stored), stored.GetRevision()
		return is, l.GetPartitionsMax() > 0
	})
}

// Scale sets the number of partitions of tasklists whose settings leave that to the engine, until ctx ends. All frontends do so.
func (s *Scaling) Scale(ctx context.Context) error {
	for backoff.Sleep(ctx, pace.Of(s.Config.Every)) {
		for _, c := range s.due(time.Now()) {
			s.scale(ctx, c)
		}
		s.forgetScales(ctx)
	}
	return nil
}

// scale stores a number of partitions, unless another frontend did since this one decided.
func (s *Scaling) scale(ctx context.Context, c scale.Change) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	log := s.Log.With(signals.Domain, c.Of.Domain, signals.Tasklist, c.Of.Name)
	err := catalog.Scales.Swap(ctx, s.Bucket, c.Of.Domain, c.Of.Name, &rpcv1.TasklistScale{Partitions: int32(c.To)}, c.Replaces)
	switch {
	case fault.CodeOf(err) == fault.Stale:
		log.Debug("another frontend has set the number of partitions of a tasklist")
	case err != nil:
		log.Warn("set the number of partitions of a tasklist, which is tried again", signals.Error, err)
	default:
		s.scaled.Add(1)
		log.Info("set the number of partitions of a tasklist", signals.From, c.From, signals.To, c.To, signals.PerSecond, int64(c.PerSecond))
	}
}

// forgetScales deletes the records of tasklists whose settings do not leave it to the engine any more, or that are gone.
func (s *Scaling) forgetScales(ctx context.Context) {
	for domain := range catalog.Scales.InDomains(s.Catalog) {
		for name, stored := range catalog.Scales.Each(s.Catalog, domain) {
			if catalog.Tasklists.Of(s.Catalog, domain, name).GetPartitionsMax() == 0 {
				s.forgetScale(ctx, domain, name, stored.Revision)
			}
		}
	}
}

func (s *Scaling) forgetScale(ctx context.Context, domain, name string, revision int64) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := catalog.Scales.Delete(ctx, s.Bucket, domain, name, revision)
	if code := fault.CodeOf(err); code != "" && code != fault.Stale && code != fault.NotFound {
		s.Log.Debug("delete the number of partitions of a tasklist, which is tried again", signals.Domain, domain, signals.Tasklist, name, signals.Error, err)
	}
}
