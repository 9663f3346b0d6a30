package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Caps follow the settings of tasklists.
func TestCapsFollowTheSettings(t *testing.T) {
	ctx := t.Context()
	js, err := jetstream.New(testkit.RunNATS(t).Connect(t))
	if err == nil {
		err = provision.Apply(ctx, js, topology.Partitioning{History: 1, Matching: 1}, provision.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	kv, err := provision.Bucket(ctx, js, topology.ConfigBucket, nil)
	if err != nil {
		t.Fatal(err)
	}
	put := func(domain, name string, most int32) {
		t.Helper()
		if _, err := catalog.PutTasklist(ctx, kv, domain, &yardv1.Tasklist{Name: name, MaxQueued: most}); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"shop", "bank"} {
		if _, err := catalog.PutDomain(ctx, kv, &yardv1.Domain{Name: d}); err != nil {
			t.Fatal(err)
		}
	}
	put("shop", "mail", 7)
	put("shop", "bulk", 0)
	var c caps
	settings, err := catalog.Watch(ctx, kv, c.changed)
	if err != nil {
		t.Fatal(err)
	}
	c.follow(settings)
	first := c.get()
	if fmt.Sprint(first.Of) != "map[{shop mail}:7]" {
		t.Errorf("at the start: %v", first.Of)
	}
	becomes := func(want string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error {
			if now := c.get(); fmt.Sprint(now) != want {
				return fmt.Errorf("they are %v, want %s", now, want)
			}
			return nil
		})
	}
	put("bank", "x", 3)
	becomes("&{map[{bank x}:3 {shop mail}:7] [bank shop]}")
	put("shop", "mail", 0)
	becomes("&{map[{bank x}:3] [bank]}")
	if _, err := catalog.DeleteTasklist(ctx, kv, "bank", "x", 0); err != nil {
		t.Fatal(err)
	}
	becomes(fmt.Sprint((*backlog.Caps)(nil)))
	if len(first.Of) != 1 {
		t.Error("what was returned has changed")
	}
}
