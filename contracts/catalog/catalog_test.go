package catalog

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
)

// The tests that need a server stand in shared/provision, which can start one:
// contracts is what clients depend on, so it depends on no server.

func TestLookupsDoNotAllocate(t *testing.T) {
	b := catalogtest.New()
	c := New(nil)
	b.OnChange = func(e jetstream.KeyValueEntry) { c.Take(e) }
	b.Store(Domains.Key("", "shop"), `{"name":"shop"}`)
	b.Store(Types.Key("shop", "email.send"), `{"name":"email.send"}`)
	b.Store(Workers.Key("", "shop"), `{"workers":[{"worker_id":"w1","drain":{}}]}`)
	if n := testing.AllocsPerRun(100, func() {
		if c.Domain("shop") == nil || Types.Of(c, "shop", "email.send") == nil || Types.Of(c, "nobody", "email.send") != nil ||
			Tasklists.Of(c, "shop", "mail") != nil || c.DrainedWorker("shop", "w1") == nil || c.Partitions("shop", "mail") != 1 {
			t.Error("a lookup went wrong")
		}
	}); n != 0 {
		t.Errorf("%v allocations per lookup", n)
	}
}
