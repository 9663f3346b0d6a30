package quotas

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/signals"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/quota"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// showEvery is how often the gauges are set.
const showEvery = time.Second

// metrics are by quota (signals.Quotas).
type metrics struct {
	refusals map[string]*telemetry.Counter
	used     map[string]*telemetry.Gauge
}

func newMetrics(m *telemetry.Metrics) metrics {
	out := metrics{map[string]*telemetry.Counter{}, map[string]*telemetry.Gauge{}}
	for _, which := range signals.Quotas {
		out.refusals[which], out.used[which] = m.Counter(signals.QuotaRefusals, which), m.Gauge(signals.QuotaUsed, which)
	}
	return out
}

// show sets the gauges to what the domain uses of each quota that uses most of it.
func (q *Quotas) show(now time.Duration) {
	most := map[string]int64{}
	q.mu.Lock()
	defer q.mu.Unlock()
	waits := q.waiting.All(now)
	for domain := range q.active(waits) {
		of, use := q.catalog.Domain(domain).GetQuota(), q.use(domain, waits[domain], now)
		for which, share := range map[string]int64{
			signals.QuotaSubmits:      max(percent(use.SubmitTasksPerS, of.GetSubmitTasksPerS()), percent(use.SubmitBytesPerS, of.GetSubmitBytesPerS())),
			signals.QuotaOpenPolls:    percent(int64(use.OpenPolls), int64(of.GetOpenPolls())),
			signals.QuotaWaitingTasks: percent(use.WaitingTasks, of.GetWaitingTasks()),
			signals.QuotaStoredBytes:  percent(use.StoredBytes, of.GetStoredBytes()),
		} {
			most[which] = max(most[which], share)
		}
	}
	for _, which := range signals.Quotas {
		q.metrics.used[which].Set(most[which])
	}
}

// active are the domains with a quota that use something of it, as far as is known here.
func (q *Quotas) active(waits map[string]quota.Use) map[string]bool {
	all := map[string]bool{}
	for domain := range q.book.Domains() {
		all[domain] = true
	}
	for domain := range waits {
		all[domain] = true
	}
	for domain := range q.polls.Own() {
		all[domain] = true
	}
	for domain := range all {
		if !q.has(domain) {
			delete(all, domain)
		}
	}
	return all
}

func percent(used, most int64) int64 {
	if most <= 0 {
		return 0
	}
	return 100 * used / most
}
