package gateway

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/scale"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// due is what is to be changed now.
func (s *spread) due(settings *catalog.Catalog, now time.Time) []scale.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scaler.Look(now, func(of scale.Tasklist) (is scale.Setting, known bool) {
		l := catalog.Tasklists.Of(settings, of.Domain, of.Name)
		stored := catalog.Scales.Of(settings, of.Domain, of.Name)
		is.Least, is.Most = catalog.PartitionsBetween(l)
		is.Partitions, is.Revision = catalog.PartitionsOf(l, stored), stored.GetRevision()
		return is, l.GetPartitionsMax() > 0
	})
}

// Scale sets the number of partitions of tasklists whose settings leave that to the engine, until ctx ends. All frontends do so.
func (g *Gateway) Scale(ctx context.Context) error {
	for backoff.Sleep(ctx, g.Config.Scale.Every) {
		for _, c := range g.spread.due(g.Catalog, time.Now()) {
			g.scale(ctx, c)
		}
		g.forgetScales(ctx)
	}
	return nil
}

// scale stores a number of partitions, unless another frontend did since this one decided.
func (g *Gateway) scale(ctx context.Context, c scale.Change) {
	ctx, cancel := context.WithTimeout(ctx, scaleWithin)
	defer cancel()
	log := g.Log.With(signals.Domain, c.Of.Domain, signals.Tasklist, c.Of.Name)
	err := catalog.Scales.Swap(ctx, g.Settings, c.Of.Domain, c.Of.Name, &rpcv1.TasklistScale{Partitions: int32(c.To)}, c.Replaces)
	switch {
	case fault.CodeOf(err) == fault.Stale:
		log.Debug("another frontend has set the number of partitions of a tasklist")
	case err != nil:
		log.Warn("set the number of partitions of a tasklist, which is tried again", signals.Error, err)
	default:
		g.metrics.scaled.Add(1)
		log.Info("set the number of partitions of a tasklist", signals.From, c.From, signals.To, c.To, signals.PerSecond, int64(c.PerSecond))
	}
}

// forgetScales deletes the records of tasklists whose settings do not leave it to the engine any more, or that are gone.
func (g *Gateway) forgetScales(ctx context.Context) {
	for domain := range catalog.Scales.InDomains(g.Catalog) {
		for name, s := range catalog.Scales.Each(g.Catalog, domain) {
			if catalog.Tasklists.Of(g.Catalog, domain, name).GetPartitionsMax() == 0 {
				g.forgetScale(ctx, domain, name, s.Revision)
			}
		}
	}
}

func (g *Gateway) forgetScale(ctx context.Context, domain, name string, revision int64) {
	ctx, cancel := context.WithTimeout(ctx, scaleWithin)
	defer cancel()
	_, err := catalog.Scales.Delete(ctx, g.Settings, domain, name, revision)
	if code := fault.CodeOf(err); code != "" && code != fault.Stale && code != fault.NotFound {
		g.Log.Debug("delete the number of partitions of a tasklist, which is tried again", signals.Domain, domain, signals.Tasklist, name, signals.Error, err)
	}
}

// several is over how many partitions a tasklist is spread; 0 = one.
func (g *Gateway) several(domain, tasklist string) int32 {
	if n := g.Catalog.Partitions(domain, tasklist); n > 1 {
		return int32(n)
	}
	return 0
}

// describePartitions tells over how many partitions a tasklist is spread.
func (g *Gateway) describePartitions(domain string, d *yardv1.DescribeTasklistResponse) {
	d.Partitions = g.several(domain, d.Tasklist)
	if l := catalog.Tasklists.Of(g.Catalog, domain, d.Tasklist); l.GetPartitionsMax() > 0 {
		least, most := catalog.PartitionsBetween(l)
		d.PartitionsLeast, d.PartitionsMax = int32(least), int32(most)
	}
}
