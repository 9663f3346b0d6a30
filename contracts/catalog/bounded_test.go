package catalog_test

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// TestBoundedDomains are those with a quota of what waits; what was returned before does not change, and changes only where such a quota does.
func TestBoundedDomains(t *testing.T) {
	c, kv := catalog.New(nil), catalogtest.New()
	kv.OnChange = func(e jetstream.KeyValueEntry) { c.Take(e) }
	put := func(domain, quota string) *catalog.Bounded {
		kv.Store(catalog.Domains.Key("", domain), `{"name":"`+domain+`","quota":`+quota+`}`)
		return c.Bounded()
	}
	if b := put("free", `{"open_polls":1}`); b != nil {
		t.Errorf("%v", b)
	}
	one := put("shop", `{"waiting_tasks":10}`)
	if put("free", `{"open_polls":2}`) != one || put("shop", `{"waiting_tasks":10}`) != one {
		t.Error("another one after another quota, or after the same")
	}
	two := put("bank", `{"stored_bytes":2000}`)
	if len(one.Quotas) != 1 || len(two.Quotas) != 2 || two.Quotas["bank"].StoredBytes != 2000 {
		t.Errorf("%v, %v", one.Quotas, two.Quotas)
	}
	if got := put("shop", `{"waiting_tasks":20}`).Quotas["shop"].WaitingTasks; got != 20 {
		t.Errorf("%d once it is raised", got)
	}
	put("shop", `null`)
	if _, err := catalog.Domains.Delete(t.Context(), kv, "", "bank", 0); err != nil {
		t.Fatal(err)
	}
	if b := c.Bounded(); b != nil {
		t.Errorf("%v is left", b.Quotas)
	}
}

// TestALargeReportHasTheNearest domains, by tasks or by bytes.
func TestALargeReportHasTheNearest(t *testing.T) {
	b := &catalog.Bounded{Quotas: map[string]*yardv1.Quota{}}
	var all []*rpcv1.DomainStored
	for i := range 5000 {
		d := &rpcv1.DomainStored{Domain: fmt.Sprint("d", i), Tasks: 100, Bytes: 100}
		all = append(all, d)
		switch b.Quotas[d.Domain] = (&yardv1.Quota{WaitingTasks: 1000, StoredBytes: 10_000}); i % 5000 {
		case 4000:
			b.Quotas[d.Domain] = &yardv1.Quota{WaitingTasks: 101}
		case 4500:
			b.Quotas[d.Domain] = &yardv1.Quota{StoredBytes: 100}
		}
	}
	got := b.Nearest(all)
	if len(got) != 1000 || got[0].Domain != "d4500" || got[1].Domain != "d4000" {
		t.Errorf("%d, first %v", len(got), got[:2])
	}
}
