package gateway

import (
	"maps"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// memCatalog is a catalog of a bucket in memory, to which changes come at once.
type memCatalog struct {
	*catalog.Catalog
	kv *catalogtest.KV
}

func newMemCatalog() *memCatalog {
	c := &memCatalog{Catalog: catalog.New(nil), kv: catalogtest.New()}
	c.kv.OnChange = func(e jetstream.KeyValueEntry) { c.Take(e) }
	c.kv.Store(catalog.Domains.Key("", "shop"), `{"name":"shop"}`)
	return c
}

// add stores settings, which come to the catalog together.
func add[M catalog.Settings](t *testing.T, c *memCatalog, k catalog.Kind[M], domain string, all ...M) {
	t.Helper()
	one, changes := c.kv.OnChange, []jetstream.KeyValueEntry(nil)
	c.kv.Locked(func() { c.kv.OnChange = func(e jetstream.KeyValueEntry) { changes = append(changes, e) } })
	for _, m := range all {
		testkit.NoError(t, testkit.Err(k.Put(t.Context(), c.kv, domain, m)))
	}
	c.kv.Locked(func() { c.kv.OnChange = one })
	c.Take(changes...)
}

// stop stores a pause or a drain.
func stop(t *testing.T, c *memCatalog, k catalog.Kind[*yardv1.Pause], domain, name string, p *yardv1.Pause) {
	t.Helper()
	testkit.NoError(t, testkit.Err(k.PutAs(t.Context(), c.kv, domain, name, p)))
}

// drainWorkers stores that more workers are drained.
func (c *memCatalog) drainWorkers(t *testing.T, domain string, sinceMS int64, ids ...string) {
	t.Helper()
	err := catalog.ChangeDrainedWorkers(t.Context(), c.kv, domain, func(all map[string]*yardv1.WorkerDrain) (bool, error) {
		for _, id := range ids {
			all[id] = &yardv1.WorkerDrain{SinceMs: sinceMS}
		}
		return true, nil
	})
	testkit.Check(t, err)
}

// elsewhere has f store what does not come to the catalog.
func (c *memCatalog) elsewhere(f func()) {
	c.kv.Locked(func() { c.kv.Deaf = true })
	f()
	c.kv.Locked(func() { c.kv.Deaf = false })
}

// breaks has the bucket answer nothing but an error; nil = no more.
func (c *memCatalog) breaks(err error) {
	c.kv.Locked(func() { c.kv.Broken = err })
}

// scales are the tasklists that have a scale, sorted.
func (c *memCatalog) scales(domain string) []string {
	return slices.Sorted(maps.Keys(maps.Collect(catalog.Scales.Each(c.Catalog, domain))))
}
