package history

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// bucket is a cluster's config bucket with two domains.
type bucket struct {
	*testing.T
	kv jetstream.KeyValue
}

func newBucket(t *testing.T) bucket {
	t.Helper()
	ctx := t.Context()
	js, err := jetstream.New(natskit.Run(t).Connect(t))
	if err == nil {
		err = provision.Apply(ctx, js, topology.Partitioning{History: 1, Matching: 1}, provision.Options{})
	}
	testkit.NoError(t, err)
	kv, err := provision.Bucket(ctx, js, topology.ConfigBucket, nil)
	for _, d := range []string{"shop", "bank"} {
		if err == nil {
			_, err = catalog.Domains.Put(ctx, kv, "", &yardv1.Domain{Name: d})
		}
	}
	testkit.NoError(t, err)
	return bucket{t, kv}
}

func (s bucket) put(domain string, l *yardv1.Tasklist) {
	s.Helper()
	if _, err := catalog.Tasklists.Put(s.Context(), s.kv, domain, l); err != nil {
		s.Fatal(err)
	}
}

// followed is what a service knows of them.
func (s bucket) followed() *tasklists {
	s.Helper()
	t := new(tasklists)
	watched, err := catalog.Watch(s.Context(), s.kv, t.changed)
	if err != nil {
		s.Fatal(err)
	}
	t.follow(watched)
	return t
}

// Caps follow the settings of tasklists.
func TestCapsFollowTheSettings(t *testing.T) {
	s := newBucket(t)
	s.put("shop", &yardv1.Tasklist{Name: "mail", MaxQueued: 7})
	s.put("shop", &yardv1.Tasklist{Name: "bulk"})
	c := s.followed()
	first := c.caps()
	if fmt.Sprint(first.Of) != "map[{shop mail}:7]" {
		t.Errorf("at the start: %v", first.Of)
	}
	becomes := func(want string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error {
			if now := c.caps(); fmt.Sprint(now) != want {
				return fmt.Errorf("they are %v, want %s", now, want)
			}
			return nil
		})
	}
	s.put("bank", &yardv1.Tasklist{Name: "x", MaxQueued: 3})
	becomes("&{map[{bank x}:3 {shop mail}:7] map[] map[] [bank shop]}")
	s.put("shop", &yardv1.Tasklist{Name: "mail", MaxQueuedPerGroup: 5})
	becomes("&{map[{bank x}:3] map[{shop mail}:5] map[] [bank shop]}")
	s.put("shop", &yardv1.Tasklist{Name: "mail"})
	becomes("&{map[{bank x}:3] map[] map[] [bank]}")
	testkit.NoError(t, testkit.Err(catalog.Tasklists.Delete(t.Context(), s.kv, "bank", "x", 0)))
	becomes(fmt.Sprint((*backlog.Caps)(nil)))
	if len(first.Of) != 1 {
		t.Error("what was returned has changed")
	}
}

// TestDomainsWithAQuotaAreCounted from when they get it, and as long as they have it; one of another kind does not matter.
func TestDomainsWithAQuotaAreCounted(t *testing.T) {
	s := newBucket(t)
	put := func(domain string, q *yardv1.Quota) {
		testkit.NoError(t, testkit.Err(catalog.Domains.Put(t.Context(), s.kv, "", &yardv1.Domain{Name: domain, Quota: q})))
	}
	put("bank", &yardv1.Quota{WaitingTasks: 3})
	c := s.followed()
	becomes := func(want ...string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error {
			if now := c.caps(); (now == nil) != (len(want) == 0) || now != nil && (!slices.Equal(now.Domains, want) || len(now.Bounded) != len(want) || now.Tasklists()) {
				return fmt.Errorf("they are %v, want %v", now, want)
			}
			return nil
		})
	}
	becomes("bank")
	put("shop", &yardv1.Quota{StoredBytes: 3000})
	becomes("bank", "shop")
	put("bank", &yardv1.Quota{OpenPolls: 3})
	becomes("shop")
	testkit.NoError(t, testkit.Err(catalog.Domains.Delete(t.Context(), s.kv, "", "shop", 0)))
	becomes()
}

// Partitions follow the settings of tasklists.
func TestPartitionsFollowTheSettings(t *testing.T) {
	s := newBucket(t)
	s.put("bank", &yardv1.Tasklist{Name: "wide", Partitions: 5})
	s.put("shop", &yardv1.Tasklist{Name: "mail", MaxQueued: 7})
	c := s.followed()
	become := func(domain, name string, want int) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error {
			if n := c.partitionsOf(domain, name); n != want {
				return fmt.Errorf("%s %s has %d partitions, want %d", domain, name, n, want)
			}
			return nil
		})
	}
	become("bank", "wide", 5)
	become("shop", "wide", 1)
	become("shop", "mail", 1)
	s.put("shop", &yardv1.Tasklist{Name: "mail", MaxQueued: 7, Partitions: 3})
	become("shop", "mail", 3)
	s.put("bank", &yardv1.Tasklist{Name: "wide", Partitions: 2})
	become("bank", "wide", 2)
	s.put("shop", &yardv1.Tasklist{Name: "mail"})
	become("shop", "mail", 1)
	testkit.NoError(t, testkit.Err(catalog.Tasklists.Delete(t.Context(), s.kv, "bank", "wide", 0)))
	become("bank", "wide", 1)
	if all := c.spread.Load(); all != nil {
		t.Errorf("none has several, and kept are %v", *all)
	}
}
