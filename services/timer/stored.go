package timer

import (
	"context"
	"maps"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// storedEvery is how often frontends hear what waits of domains with a quota.
const storedEvery = 500 * time.Millisecond

// reportStored tells frontends what waits of domains with a quota in partition p, until ctx ends.
func (s *Service) reportStored(ctx context.Context, p int, owner *firing.Owner, cluster *catalog.Catalog) error {
	for backoff.Sleep(ctx, pace.Of(storedEvery)) {
		bounded := cluster.Bounded()
		if bounded == nil {
			continue
		}
		all, err := owner.Domains(ctx, maps.Keys(bounded.Quotas))
		if err != nil {
			continue // it ends, or is asked again
		}
		report := &rpcv1.StoredTasks{Partition: int32(p), Timer: true}
		for domain, some := range all {
			report.Domains = append(report.Domains, &rpcv1.DomainStored{Domain: domain, Tasks: some.Tasks, Bytes: some.Bytes})
		}
		report.Domains = bounded.Nearest(report.Domains)
		data, err := report.MarshalVT()
		if err == nil {
			err = s.NATS.Publish(topology.HintStored, data)
		}
		if err != nil {
			s.Log.Debug("tell frontends of what waits", "partition", p, signals.Error, err)
		}
	}
	return nil
}
