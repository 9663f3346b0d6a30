package quotas_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/quotas"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// catalogOf has the domain shop, whose quota put changes.
func catalogOf() (c *catalog.Catalog, put func(quota string)) {
	c, kv := catalog.New(nil), catalogtest.New()
	kv.OnChange = func(e jetstream.KeyValueEntry) { c.Take(e) }
	kv.Store(catalog.Domains.Key("", "free"), `{"name":"free"}`)
	return c, func(quota string) { kv.Store(catalog.Domains.Key("", "shop"), `{"name":"shop","quota":`+quota+`}`) }
}

// TestFrontendsHearOfEachOther: what one has let in, the other counts, once; a domain without a quota is not reported.
func TestFrontendsHearOfEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, put := catalogOf()
		put(`{"submit_tasks_per_s":100,"open_polls":2}`)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all [2]*quotas.Quotas
		reports := 0
		for i := range all {
			all[i] = quotas.New(c, func(data []byte) error {
				reports++
				for _, q := range all { // its own comes back, too
					q.TakeUse(data)
				}
				return nil
			}, slog.New(slog.DiscardHandler))
			go func() { testkit.Check(t, all[i].ShareUse(ctx)) }()
		}
		testkit.NoError(t, all[0].Submit("free", 1000, 1000))
		testkit.NoError(t, all[0].Open("free"))
		time.Sleep(time.Second)
		testkit.Equal(t, "reports of a domain without a quota", reports, 0)
		testkit.NoError(t, all[0].Submit("shop", 150, 5000))
		testkit.NoError(t, all[0].Open("shop"))
		testkit.NoError(t, all[1].Open("shop"))
		time.Sleep(time.Second + 50*time.Millisecond)
		testkit.NoError(t, all[1].Submit("shop", 60, 1))
		if e := fault.From(all[1].Submit("shop", 1, 1)); e == nil || e.Code != fault.ResourceExhausted || e.RetryAfter <= 0 {
			t.Errorf("over the quota of tasks: %v", e)
		}
		for _, q := range all {
			if e := fault.From(q.Open("shop")); e == nil || e.Code != fault.ResourceExhausted {
				t.Errorf("over the quota of polls: %v", e)
			}
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
		q := quotas.New(c, func([]byte) error { return nil }, slog.New(slog.DiscardHandler))
		go func() { testkit.Check(t, q.ShareUse(t.Context())) }()
		for range 3000 { // for 3 s, twice the quota
			_ = q.Submit("shop", 200, 1)
			time.Sleep(time.Millisecond)
		}
		put(`{"submit_tasks_per_s":10}`)
		for range 2 {
			time.Sleep(5 * time.Second)
			testkit.NoError(t, q.Submit("shop", 1, 1))
			put("null")
			time.Sleep(time.Second)
			put(`{"submit_tasks_per_s":10}`)
		}
	})
}
