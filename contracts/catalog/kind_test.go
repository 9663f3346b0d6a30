package catalog

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// eachKind runs a test for every kind of records. Make makes a record that differs with n, and has a revision if the kind has.
func eachKind(t *testing.T, test func(t *testing.T, k Kind[message], make func(n, revision int64) message)) {
	covered := map[*kind]bool{}
	run := func(k *kind, with func(n int32) message) {
		covered[k] = true
		t.Run(k.noun, func(t *testing.T) {
			test(t, Kind[message]{k}, func(n, revision int64) message {
				m := with(int32(n))
				k.setRevision(m, revision)
				return m
			})
		})
	}
	run(Domains.kind, func(n int32) message { return &yardv1.Domain{RetentionMs: int64(n)} })
	run(Types.kind, func(n int32) message { return &yardv1.TaskType{MaxConcurrency: n} })
	run(Tasklists.kind, func(n int32) message { return &yardv1.Tasklist{MaxQueued: n} })
	run(Limits.kind, func(n int32) message { return &yardv1.Limit{MaxConcurrency: n} })
	run(Groups.kind, func(n int32) message { return &yardv1.Group{MaxConcurrency: n} })
	run(Scales.kind, func(n int32) message { return &rpcv1.TasklistScale{Partitions: n} })
	run(Workers.kind, func(n int32) message {
		return &rpcv1.DrainedWorkers{Workers: []*rpcv1.DrainedWorker{{WorkerId: "w1", Drain: &yardv1.WorkerDrain{SinceMs: int64(n)}}}}
	})
	for _, stops := range []Stops{Pauses, Drains} {
		for _, k := range []Kind[*yardv1.Pause]{stops.Domains, stops.Tasklists, stops.Types, stops.Groups} {
			run(k.kind, func(n int32) message { return &yardv1.Pause{SinceMs: int64(n)} })
		}
	}
	for _, k := range kinds {
		if !covered[k] {
			t.Errorf("%s is not tested", k.noun)
		}
	}
}

// domainOf is the domain by which the records of domain shop are kept.
func (k *kind) domainOf(domain string) string {
	if k.clusterWide {
		return ""
	}
	return domain
}

func TestRecordsAreKeptByRevision(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind[message], make func(n, revision int64) message) {
		b, ctx, domain := catalogtest.New(), t.Context(), k.domainOf("shop")
		given := make(3, 0)
		first, err := k.PutAs(ctx, b, domain, "acme", given)
		if err != nil || first != 1 || !proto.Equal(given, make(3, 0)) {
			t.Fatal(first, err, given)
		}
		if got, err := k.Get(ctx, b, domain, "acme"); err != nil || !proto.Equal(got, make(3, first)) {
			t.Errorf("%v %v", got, err)
		}
		second, err := k.PutAs(ctx, b, domain, "acme", make(2, first))
		if err != nil || second <= first {
			t.Fatal(second, err)
		}
		if k.revision != nil {
			again, err := k.PutAs(ctx, b, domain, "acme", make(2, first))
			if err != nil || again != second {
				t.Errorf("a repeat is revision %d, not %d: %v", again, second, err)
			}
			_, err = k.PutAs(ctx, b, domain, "acme", make(9, first))
			refused(t, "an old revision", err, fault.Stale, k.field("revision"))
			_, err = k.PutAs(ctx, b, domain, "acme", make(9, -1))
			refused(t, "a revision that is none", err, fault.InvalidArgument, k.field("revision"))
			_, err = k.PutAs(ctx, b, domain, "other", make(9, 7))
			refused(t, "a revision of what is not there", err, fault.Stale, k.field("revision"))
		}
		refused(t, "a first one", k.Swap(ctx, b, domain, "acme", make(9, 0), 0), fault.Stale, "")
		refused(t, "in place of an old revision", k.Swap(ctx, b, domain, "acme", make(9, 0), first), fault.Stale, "")
		_, err = k.Delete(ctx, b, domain, "acme", first)
		refused(t, "a delete of an old revision", err, fault.Stale, "/revision")
		if was, err := k.Delete(ctx, b, domain, "acme", second); err != nil || !proto.Equal(was, make(2, second)) {
			t.Errorf("%v %v", was, err)
		}
		_, err = k.Delete(ctx, b, domain, "acme", 0)
		refused(t, "what is deleted already", err, fault.NotFound, "")
		checktest.Check(t, k.Swap(ctx, b, domain, "acme", make(4, 0), 0))
		_, err = k.Get(ctx, b, k.domainOf("bank"), "other")
		refused(t, "one that is not there", err, fault.NotFound, "")
		b.Broken = errBroken
		_, err = k.Get(ctx, b, domain, "acme")
		refused(t, "a bucket that is away", err, fault.Unavailable, "")
		refused(t, "a bucket that is away", k.Swap(ctx, b, domain, "acme", make(9, 0), second), fault.Unavailable, "")
	})
}

func TestNamesThatAreNoKeys(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind[message], make func(n, revision int64) message) {
		b, ctx, domain := catalogtest.New(), t.Context(), k.domainOf("shop")
		wrong := []string{"", "*", ".a", "a.", "a..b", "a b"}
		if !k.dotted {
			wrong = append(wrong, "a.b")
		}
		for _, name := range wrong {
			_, err := k.PutAs(ctx, b, domain, name, make(1, 0))
			refused(t, "name "+name, err, fault.InvalidArgument, k.field("name"))
			refused(t, "name "+name, k.Swap(ctx, b, domain, name, make(1, 0), 0), fault.InvalidArgument, k.field("name"))
			_, err = k.Get(ctx, b, domain, name)
			refused(t, "get "+name, err, fault.NotFound, "")
		}
		if !k.clusterWide {
			_, err := k.PutAs(ctx, b, "a.b", "acme", make(1, 0))
			refused(t, "a domain that is no key", err, fault.InvalidArgument, "/domain")
		}
		if k.dotted {
			checktest.Check(t, checktest.Err(k.PutAs(ctx, b, domain, "a.b", make(1, 0))))
		}
		if keys := b.Stored(); len(keys) > 1 {
			t.Errorf("stored %v", keys)
		}
	})
}

// A key says whose record it holds, and is of one kind.
func TestKeysAreReadBack(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind[message], _ func(n, revision int64) message) {
		of := map[string]string{k.Key(k.domainOf("shop"), "acme"): "acme"}
		if k.dotted {
			of[k.Key("shop", "a.b")] = "a.b"
		}
		for key, want := range of {
			got, domain, name := ofKey(key)
			if got != k.kind || domain != k.domainOf("shop") || name != want || k.concerns(domain, name) == "" {
				t.Errorf("%s is of %v, %q, %q", key, got, domain, name)
			}
		}
		wrong := []string{k.prefix, k.prefix + ".acme", k.prefix + "shop.", "x" + k.Key("shop", "acme")}
		if !k.clusterWide {
			wrong = append(wrong, k.prefix+"shop")
		}
		if !k.dotted {
			wrong = append(wrong, k.Key("shop", "a.b"))
		}
		for _, key := range wrong {
			if k, _, _ := ofKey(key); k != nil {
				t.Errorf("%s is taken for a %s", key, k.noun)
			}
		}
	})
}

// A domain goes with all its records, and with no other's.
func TestADomainTakesItsRecordsAlong(t *testing.T) {
	b, ctx := catalogtest.New(), t.Context()
	eachKind(t, func(t *testing.T, k Kind[message], make func(n, revision int64) message) {
		for _, domain := range []string{"shop", "shop2"} {
			name := "acme"
			if k.clusterWide {
				name = domain
			}
			checktest.NoError(t, checktest.Err(k.PutAs(ctx, b, k.domainOf(domain), name, make(1, 0))))
		}
	})
	checktest.NoError(t, checktest.Err(DeleteDomain(ctx, b, "shop", 0)))
	if left := b.Stored(); len(left) != len(kinds) {
		t.Errorf("%v are left", left)
	}
	for _, key := range b.Stored() {
		if k, domain, name := ofKey(key); k.concerns(domain, name) != "shop2" {
			t.Errorf("%s is left", key)
		}
	}
}

// A record that comes, changes and goes is reported as a change of its domain, also if it was missed. What is malformed is passed over, and what was read
// stays as it is.
func TestACatalogFollowsRecords(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind[message], make func(n, revision int64) message) {
		domain, old, acme := k.domainOf("shop"), "old", "acme"
		if k.clusterWide {
			old, acme = "shop", "bank"
		}
		fill := func(b *catalogtest.KV) {
			value, err := k.encode(make(7, 0))
			checktest.NoError(t, err)
			b.Store(k.Key(domain, old), string(value))
			b.Store(k.Key(domain, "broken"), "{")
		}
		watching(t, fill, func(w *watched) {
			before := w.now.Load()
			has := func(c *Catalog, want ...string) {
				t.Helper()
				names := slices.Sorted(maps.Keys(maps.Collect(k.Each(c, domain))))
				if !slices.Equal(names, want) || k.Count(c, domain) != len(want) || len(k.All(c, domain)) != len(want) {
					t.Errorf("there are %v, want %v", names, want)
				}
			}
			has(w.Catalog, old)
			if m := k.Of(w.Catalog, domain, old); !proto.Equal(m, make(7, 1)) || k.Revision(w.Catalog) != 1 {
				t.Errorf("%v, revision %d", m, k.Revision(w.Catalog))
			}
			if m := k.Of(w.Catalog, "bank2", old); m != nil {
				t.Errorf("another domain has %v", m)
			}
			concerned := k.concerns(domain, acme)
			for n := range int64(2) {
				checktest.NoError(t, checktest.Err(k.PutAs(t.Context(), w.bucket, domain, acme, make(n, 0))))
			}
			w.reported("a new one and its change", concerned, concerned)
			has(w.Catalog, slices.Sorted(slices.Values([]string{old, acme}))...)
			if m := k.Of(w.Catalog, domain, acme); !proto.Equal(m, make(1, int64(w.bucket.Revision()))) || k.Revision(w.Catalog) != w.bucket.Revision() {
				t.Errorf("%v", m)
			}
			read := New(nil)
			read.now.Store(before)
			has(read, old)
			w.bucket.Locked(func() { w.bucket.Deaf = true })
			checktest.NoError(t, checktest.Err(k.Delete(t.Context(), w.bucket, domain, acme, 0)))
			w.bucket.Locked(func() { w.bucket.Deaf = false })
			w.reported("what is missed")
			w.bucket.EndWatches()
			synctest.Wait()
			w.noticed()
			w.reported("the new watch", concerned)
			has(w.Catalog, old)
			checktest.NoError(t, checktest.Err(k.Delete(t.Context(), w.bucket, domain, old, 0)))
			w.reported("a deleted one", "shop")
			has(w.Catalog)
			if domains := slices.Collect(k.InDomains(w.Catalog)); len(domains) != 0 {
				t.Errorf("%v have records", domains)
			}
		})
	})
}
