package quotas_test

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/quotas"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// catalogOf has the domain shop, whose quota put changes.
func catalogOf() (c *catalog.Catalog, put func(quota string)) {
	c, kv := catalog.New(nil), catalogtest.New()
	kv.OnChange = func(e jetstream.KeyValueEntry) { c.Take(e) }
	kv.Store(catalog.Domains.Key("", "free"), `{"name":"free"}`)
	return c, func(quota string) { kv.Store(catalog.Domains.Key("", "shop"), `{"name":"shop","quota":`+quota+`}`) }
}

// cluster are frontends that hear of each other.
type cluster struct {
	all []*quotas.Quotas

	mu      sync.Mutex
	reports int
	// stalled: the last one hears nothing; backlog is what it is to hear.
	stalled bool
	backlog [][]byte
}

func frontends(t *testing.T, c *catalog.Catalog, n int) *cluster {
	cl := &cluster{}
	for range n {
		cl.all = append(cl.all, quotas.New(c, cl.publish, nil, slog.New(slog.DiscardHandler)))
	}
	for _, q := range cl.all {
		go func() { testkit.Check(t, q.ShareUse(t.Context())) }()
	}
	return cl
}

func (c *cluster) publish(data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reports++
	for i, q := range c.all { // its own comes back, too
		if c.stalled && i == len(c.all)-1 {
			c.backlog = append(c.backlog, data)
		} else {
			q.TakeUse(data)
		}
	}
	return nil
}

// stalls has the last one hear nothing for some time, and all of it at the end.
func (c *cluster) stalls(meanwhile func()) {
	c.mu.Lock()
	c.stalled = true
	c.mu.Unlock()
	meanwhile()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, data := range c.backlog {
		c.all[len(c.all)-1].TakeUse(data)
	}
	c.stalled, c.backlog = false, nil
}

func submit(q *quotas.Quotas, domain string, tasks, bytes int) error {
	return q.Charge(domain, tasks, bytes).Take()
}

// wantOver checks a refusal for a quota.
func wantOver(t *testing.T, err error) {
	t.Helper()
	if e := fault.From(err); e == nil || e.Code != fault.ResourceExhausted || e.Detail[fault.DetailReason] != "quota" || e.RetryAfter <= 0 {
		t.Errorf("over the quota: %v", e)
	}
}

// TestFrontendsHearOfEachOther: what one has let in, the other counts, once; a domain without a quota is not reported.
func TestFrontendsHearOfEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, put := catalogOf()
		put(`{"submit_tasks_per_s":100,"open_polls":2}`)
		both := frontends(t, c, 2)
		all := both.all
		testkit.NoError(t, submit(all[0], "free", 1000, 1000))
		testkit.NoError(t, all[0].Open("free"))
		time.Sleep(time.Second)
		testkit.Equal(t, "reports of a domain without a quota", both.reports, 0)
		testkit.NoError(t, submit(all[0], "shop", 150, 5000))
		testkit.NoError(t, all[0].Open("shop"))
		testkit.NoError(t, all[1].Open("shop"))
		time.Sleep(time.Second + 50*time.Millisecond)
		testkit.NoError(t, submit(all[1], "shop", 60, 1))
		wantOver(t, submit(all[1], "shop", 1, 1))
		for _, q := range all {
			wantOver(t, q.Open("shop"))
			use := q.Use(c.Domain("shop"))
			if use.SubmitTasksPerS != 150 || use.OpenPolls != 2 || q.Use(c.Domain("free")) != nil {
				t.Errorf("the use is %v", use)
			}
		}
		all[0].Close("shop")
		time.Sleep(time.Second)
		testkit.NoError(t, all[1].Open("shop"))
		all[0].TakeUse([]byte("no message"))
	})
}

// TestALoweredQuotaLocksNoOneOut: a domain that ran above its quota waits for seconds, also where the quota was taken away and set again meanwhile.
func TestALoweredQuotaLocksNoOneOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, put := catalogOf()
		put(`{"submit_tasks_per_s":100000}`)
		q := frontends(t, c, 1).all[0]
		for range 3000 { // for 3 s, twice the quota
			_ = submit(q, "shop", 200, 1)
			time.Sleep(time.Millisecond)
		}
		put(`{"submit_tasks_per_s":10}`)
		for range 2 {
			time.Sleep(5 * time.Second)
			testkit.NoError(t, submit(q, "shop", 10_000, 1)) // its debt goes with the quota
			put("null")
			time.Sleep(time.Second)
			put(`{"submit_tasks_per_s":10}`)
		}
	})
}

// TestAnyQuotaShowsTheUse, also of what it does not bound; and polls that were open before there was one count at all frontends.
func TestAnyQuotaShowsTheUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, put := catalogOf()
		put("null")
		all := frontends(t, c, 2).all
		for range 3 {
			testkit.NoError(t, all[0].Open("shop"))
		}
		for _, q := range []string{`{"submit_tasks_per_s":100000}`, `{"submit_bytes_per_s":100000}`, `{"open_polls":2}`} {
			put(q)
			testkit.NoError(t, submit(all[0], "shop", 500, 5000))
			testkit.NoError(t, submit(all[1], "shop", 500, 5000))
			time.Sleep(1050 * time.Millisecond)
			for _, one := range all {
				use := one.Use(c.Domain("shop"))
				if use.SubmitTasksPerS != 1000 || use.SubmitBytesPerS != 10_000 || use.OpenPolls != 3 {
					t.Errorf("the use with %s is %v", q, use)
				}
			}
		}
		wantOver(t, all[1].Open("shop"))
	})
}

// TestAStalledFrontendRefusesNothingForWhatIsOver: the reports that it hears at once are of ten seconds. A short backlog counts whole, and so does what comes after.
func TestAStalledFrontendRefusesNothingForWhatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, put := catalogOf()
		put(`{"submit_tasks_per_s":100,"open_polls":9}`)
		cl := frontends(t, c, 2)
		half := func(d time.Duration) { // of the quota
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				testkit.NoError(t, submit(cl.all[0], "shop", 5, 5))
			}
		}
		cl.stalls(func() {
			half(9 * time.Second)
			testkit.NoError(t, cl.all[0].Open("shop"))
			half(time.Second)
		})
		testkit.NoError(t, submit(cl.all[1], "shop", 1, 1))
		testkit.Equal(t, "polls are open", cl.all[1].Use(c.Domain("shop")).OpenPolls, 1)
		time.Sleep(3 * time.Second)
		cl.stalls(func() {
			time.Sleep(450 * time.Millisecond)
			testkit.NoError(t, submit(cl.all[0], "shop", 150, 5))
			time.Sleep(400 * time.Millisecond)
		})
		wantOver(t, submit(cl.all[1], "shop", 1, 1))
	})
}

// reports has an owner report what shop has waiting.
func reports(t *testing.T, q *quotas.Quotas, partition int32, timer bool, tasks, bytes int64) {
	t.Helper()
	q.TakeStored(testkit.Encoded(t, &rpcv1.StoredTasks{Partition: partition, Timer: timer, Domains: []*rpcv1.DomainStored{{Domain: "shop", Tasks: tasks, Bytes: bytes}}}))
}

// TestADomainWithAsMuchWaitingAsItMayIsRefused: as reported by the owners of the partitions, whose reports hold for two seconds. Another domain is not.
func TestADomainWithAsMuchWaitingAsItMayIsRefused(t *testing.T) {
	for quota, value := range map[string]string{signals.QuotaWaitingTasks: `{"waiting_tasks":100}`, signals.QuotaStoredBytes: `{"stored_bytes":100000}`} {
		synctest.Test(t, func(t *testing.T) {
			c, put := catalogOf()
			put(value)
			metrics := signalkit.Metrics(t)
			q := quotas.New(c, func([]byte) error { return nil }, metrics, slog.New(slog.DiscardHandler))
			go func() { testkit.Check(t, q.ShareUse(t.Context())) }()
			testkit.NoError(t, submit(q, "shop", 1, 1)) // nothing is known yet
			time.Sleep(1500 * time.Millisecond)
			reports(t, q, 0, false, 60, 60_000)
			reports(t, q, 0, true, 39, 39_000)
			testkit.NoError(t, submit(q, "shop", 50, 50_000)) // the last one may exceed it
			time.Sleep(time.Second)
			reports(t, q, 0, false, 110, 110_000)
			time.Sleep(900 * time.Millisecond)
			wantOver(t, submit(q, "shop", 1, 1))
			testkit.NoError(t, submit(q, "free", 1000, 1000))
			if use := q.Use(c.Domain("shop")); use.WaitingTasks != 149 || use.StoredBytes != 149_000 {
				t.Errorf("the use is %v", use)
			}
			testkit.Equal(t, "percent used", metrics.Gauge(signals.QuotaUsed, quota).Value(), 149)
			for _, one := range signals.Quotas {
				want := int64(0)
				if one == quota {
					want = 1
				}
				testkit.Equal(t, "refusals for "+one, metrics.Counter(signals.QuotaRefusals, one).Value(), want)
			}
			reports(t, q, 0, true, 0, 0)
			reports(t, q, 0, false, 99, 99_000)
			time.Sleep(time.Second)
			testkit.NoError(t, submit(q, "shop", 1, 1))
			reports(t, q, 0, false, 100, 100_000)
			wantOver(t, submit(q, "shop", 1, 1))
			put("null")
			testkit.NoError(t, submit(q, "shop", 1, 1))
			put(value)
			time.Sleep(2 * time.Second) // its owner is away
			testkit.NoError(t, submit(q, "shop", 1, 1))
			q.TakeStored([]byte("no message"))
		})
	}
}

// TestAFloodIsRefusedBeforeItIsReported: what came in the last second counts, at every frontend. A refused request does not, nor one that was not stored.
func TestAFloodIsRefusedBeforeItIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, put := catalogOf()
		put(`{"waiting_tasks":100}`)
		all := frontends(t, c, 2).all
		accepted := 0
		for range 50 {
			if submit(all[0], "shop", 10, 10) == nil {
				accepted += 10
			}
		}
		testkit.Equal(t, "accepted at one frontend", accepted, 100)
		time.Sleep(150 * time.Millisecond)
		wantOver(t, submit(all[1], "shop", 1, 1))
		time.Sleep(time.Second) // and it has all been done
		charge := all[0].Charge("shop", 100, 100)
		testkit.NoError(t, charge.Take())
		wantOver(t, submit(all[0], "shop", 1, 1))
		charge.Return(100)
		testkit.NoError(t, submit(all[0], "shop", 1, 1))
	})
}
