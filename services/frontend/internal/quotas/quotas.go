// Package quotas keeps domains near their quotas.
//
// Owns: the book of what is let in here, the talk with other frontends about it, and what owners of partitions report of what waits. Never does: store
// anything. On failure: reports that do not arrive let a domain exceed its quota, by what each frontend lets in alone, or by what waits in the partition.
package quotas

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/signals"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/quota"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// againWait is after what a client is to come again that was refused for its polls, or for what waits.
const againWait = time.Second

// Quotas are those of all domains, at one frontend. They are safe for concurrent use.
type Quotas struct {
	catalog *catalog.Catalog
	// publish sends a report to all frontends.
	publish func(data []byte) error
	log     *slog.Logger
	self    uint64
	began   time.Time

	metrics metrics

	mu      sync.Mutex
	book    *quota.Book
	polls   *quota.Polls
	waiting *quota.Waiting
}

// New makes them; publish sends a report to all frontends (topology.HintUse).
func New(c *catalog.Catalog, publish func(data []byte) error, m *telemetry.Metrics, log *slog.Logger) *Quotas {
	book := quota.New(rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	return &Quotas{
		catalog: c, publish: publish, log: log, self: rand.Uint64(), began: time.Now(), metrics: newMetrics(m),
		book: book, polls: quota.NewPolls(), waiting: quota.NewWaiting(),
	}
}

func (q *Quotas) now() time.Duration { return time.Since(q.began) }

func mayUse(d *yardv1.Domain) quota.Use {
	return quota.Use{Tasks: d.GetQuota().GetSubmitTasksPerS(), Bytes: d.GetQuota().GetSubmitBytesPerS()}
}

// has reports whether a domain has a quota.
func (q *Quotas) has(domain string) bool { return q.catalog.Domain(domain).GetQuota() != nil }

// refuse counts a refusal for a quota, and says why.
func (q *Quotas) refuse(which string, wait time.Duration, format string, args ...any) error {
	q.metrics.refusals[which].Add(1)
	refusal := fault.New(fault.ResourceExhausted, "the domain "+format, args...)
	refusal.Detail = map[string]string{fault.DetailReason: "quota"}
	return refusal.After(wait)
}

// Open counts a poll, or refuses it.
func (q *Quotas) Open(domain string) error {
	most := int(q.catalog.Domain(domain).GetQuota().GetOpenPolls())
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.polls.Open(domain, most, q.now()) {
		return q.refuse(signals.QuotaOpenPolls, againWait, "has %d polls that wait, as many as its quota allows", most)
	}
	return nil
}

// Close counts a poll out.
func (q *Quotas) Close(domain string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.polls.Close(domain)
}

// Use is what a domain with a quota uses just now; nil = it has none.
func (q *Quotas) Use(d *yardv1.Domain) *yardv1.Quota {
	if d.GetQuota() == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	return q.use(d.Name, q.waiting.Count(d.Name, now), now)
}

func (q *Quotas) use(domain string, waits quota.Use, now time.Duration) *yardv1.Quota {
	last := q.book.Last(domain, now)
	return &yardv1.Quota{
		SubmitTasksPerS: last.Tasks, SubmitBytesPerS: last.Bytes, OpenPolls: int32(q.polls.Count(domain, now)), WaitingTasks: waits.Tasks, StoredBytes: waits.Bytes,
	}
}

// TakeStored reads what domains with a quota have waiting in a partition (topology.HintStored).
func (q *Quotas) TakeStored(data []byte) {
	var m rpcv1.StoredTasks
	if err := m.UnmarshalVT(data); err != nil {
		q.log.Error("an unreadable report of waiting tasks was dropped", "bytes", len(data), signals.Error, err)
		return
	}
	all := make(map[string]quota.Use, len(m.Domains))
	for _, d := range m.Domains {
		all[d.Domain] = quota.Use{Tasks: d.Tasks, Bytes: d.Bytes}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting.Report(quota.Source{Partition: m.Partition, Timer: m.Timer}, all, q.now())
}

// TakeUse reads what a frontend has let in (topology.HintUse).
func (q *Quotas) TakeUse(data []byte) {
	var m rpcv1.FrontendUse
	if err := m.UnmarshalVT(data); err != nil {
		q.log.Error("an unreadable report of a frontend was dropped", "bytes", len(data), signals.Error, err)
		return
	}
	if m.Frontend == q.self {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now, polls := q.now(), make(map[string]int, len(m.Used))
	for _, u := range m.Used {
		polls[u.Domain] = int(u.OpenPolls)
	}
	if !q.polls.Heard(m.Frontend, polls, now) {
		return
	}
	for _, u := range m.Used {
		if q.has(u.Domain) && u.Tasks != 0 {
			q.book.Heard(u.Domain, mayUse(q.catalog.Domain(u.Domain)), quota.Use{Tasks: u.Tasks, Bytes: u.Bytes}, now)
		}
	}
}

// ShareUse tells all frontends what this one has let in of domains with a quota, and shows how much the domains use, until ctx ends.
func (q *Quotas) ShareUse(ctx context.Context) error {
	every, read := quota.ReportEvery, ^uint64(0)
	for said, shown := false, q.now(); backoff.Sleep(ctx, pace.Of(every)); {
		if now := q.now(); now-shown >= showEvery {
			shown = now
			q.show(now)
		}
		if revision := catalog.Domains.Revision(q.catalog); revision != read {
			if read, every = revision, showEvery; slices.ContainsFunc(catalog.Domains.All(q.catalog, ""), func(d *yardv1.Domain) bool { return d.Quota != nil }) {
				every = quota.ReportEvery // else nothing is to be shared
			}
		}
		m := q.unsaid()
		if len(m.Used) == 0 && !said {
			continue
		}
		said = len(m.Used) > 0
		data, err := m.MarshalVT()
		if err == nil {
			err = q.publish(data)
		}
		if err != nil {
			q.log.Debug("tell frontends of what domains use", signals.Error, err)
		}
	}
	return nil
}

func (q *Quotas) unsaid() *rpcv1.FrontendUse {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := &rpcv1.FrontendUse{Frontend: q.self}
	q.book.Keep(q.has)
	all := q.book.Unsaid(q.now())
	for domain, n := range q.polls.Own() {
		if !q.has(domain) {
			continue
		}
		m.Used = append(m.Used, &rpcv1.DomainUsed{Domain: domain, Tasks: all[domain].Tasks, Bytes: all[domain].Bytes, OpenPolls: int64(n)})
		delete(all, domain)
	}
	for domain, u := range all {
		m.Used = append(m.Used, &rpcv1.DomainUsed{Domain: domain, Tasks: u.Tasks, Bytes: u.Bytes})
	}
	return m
}
