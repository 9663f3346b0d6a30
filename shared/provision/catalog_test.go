package provision_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// The catalog of contracts is tested here, on a bucket as Apply makes it:
// contracts itself depends on no server.

const soon = 30 * time.Second

func configBucket(t *testing.T, js jetstream.JetStream) jetstream.KeyValue {
	t.Helper()
	kv, err := js.KeyValue(t.Context(), topology.ConfigBucket)
	testkit.NoError(t, err)
	return kv
}

func put(t *testing.T, kv jetstream.KeyValue, domain string, retention int64, types ...string) {
	t.Helper()
	testkit.NoError(t, testkit.Err(catalog.Domains.Put(t.Context(), kv, "", &yardv1.Domain{Name: domain, RetentionMs: retention})))
	for _, name := range types {
		testkit.NoError(t, testkit.Err(catalog.Types.Put(t.Context(), kv, domain, &yardv1.TaskType{Name: name, MaxConcurrency: 3})))
	}
}

// domains are those that a catalog has reported as changed.
type domains struct {
	mu    sync.Mutex
	names []string
}

func (d *domains) add(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names = append(d.names, name)
}

func (d *domains) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.names)
}

func TestCatalogFollowsTheBucket(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits until a stream is missed")
	srv := natskit.Run(t)
	js := connect(t, srv)
	testkit.NoError(t, apply(t, js, two))
	kv := configBucket(t, js)
	put(t, kv, "shop", 60_000, "email.send", "thumb")
	put(t, kv, "lab", 60_000)
	testkit.NoError(t, testkit.Err(kv.Put(t.Context(), catalog.Domains.Key("", "broken"), []byte("{"))))

	var changed domains
	c, err := catalog.Watch(t.Context(), configBucket(t, connect(t, srv)), changed.add)
	testkit.NoError(t, err)
	var names []string
	for _, d := range catalog.Domains.All(c, "") {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, []string{"lab", "shop"}) || len(changed.all()) != 0 {
		t.Errorf("loaded %v, reported %v", names, changed.all())
	}
	if tt := catalog.Types.Of(c, "shop", "email.send"); tt == nil || tt.MaxConcurrency != 3 || len(catalog.Types.All(c, "shop")) != 2 || len(catalog.Types.All(c, "lab")) != 0 {
		t.Errorf("types of shop: %v", catalog.Types.All(c, "shop"))
	}

	put(t, kv, "shop", 120_000)
	await(t, func() bool { d := c.Domain("shop"); return d.GetRetentionMs() == 120_000 })
	put(t, kv, "new", 60_000, "x")
	await(t, func() bool { return catalog.Types.Of(c, "new", "x") != nil })
	testkit.NoError(t, kv.Delete(t.Context(), catalog.Domains.Key("", "lab")))
	await(t, func() bool { return c.Domain("lab") == nil })
	await(t, func() bool { return slices.Equal(changed.all(), []string{"shop", "new", "new", "lab"}) })

	srv.Restart(t)
	js2 := connect(t, srv)
	put(t, configBucket(t, js2), "shop", 180_000)
	await(t, func() bool { d := c.Domain("shop"); return d.GetRetentionMs() == 180_000 })
}

func await(t *testing.T, cond func() bool) {
	t.Helper()
	testkit.Eventually(t, soon, func() error {
		if !cond() {
			return errors.New("the catalog has not followed")
		}
		return nil
	})
}

func TestCatalogReadsWhatWasPut(t *testing.T) {
	t.Parallel()
	srv := natskit.Run(t)
	js := connect(t, srv)
	testkit.NoError(t, apply(t, js, two))
	kv := configBucket(t, js)
	for i := range int64(20) {
		put(t, kv, "shop", i, "a.b")
		if d, err := catalog.Domains.Get(t.Context(), kv, "", "shop"); err != nil || d.RetentionMs != i || d.Name != "shop" {
			t.Fatalf("%v %v", d, err)
		}
	}
	if tt, err := catalog.Types.Get(t.Context(), kv, "shop", "a.b"); err != nil || tt.MaxConcurrency != 3 {
		t.Errorf("%v %v", tt, err)
	}
	for name, err := range map[string]error{
		"domain": testkit.Err(catalog.Domains.Get(t.Context(), kv, "", "none")),
		"type":   testkit.Err(catalog.Types.Get(t.Context(), kv, "shop", "none")),
		"key":    testkit.Err(catalog.Domains.Get(t.Context(), kv, "", "*")),
	} {
		testkit.Code(t, name, err, fault.NotFound)
	}
	srv.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	testkit.Code(t, "without a server", testkit.Err(catalog.Domains.Put(ctx, kv, "", &yardv1.Domain{Name: "shop"})), fault.Unavailable)
}

// R9: what is stored has a revision. A put or a deletion may name it, and one that names another
// changes nothing.
func TestCatalogRevisions(t *testing.T) {
	t.Parallel()
	js := cluster(t)
	kv, ctx := configBucket(t, js), t.Context()
	shop := func(retention, revision int64) *yardv1.Domain {
		return &yardv1.Domain{Name: "shop", RetentionMs: retention, Revision: revision}
	}
	first, err := catalog.Domains.Put(ctx, kv, "", shop(1, 0))
	testkit.NoError(t, err)
	next, err := catalog.Domains.Put(ctx, kv, "", shop(2, first))
	if err != nil || next <= first {
		t.Fatalf("revision %d after %d: %v", next, first, err)
	}
	if again, err := catalog.Domains.Put(ctx, kv, "", shop(2, first)); err != nil || again != next {
		t.Errorf("a repetition whose first answer was lost: %d, %v", again, err)
	}
	for what, err := range map[string]error{
		"put":    testkit.Err(catalog.Domains.Put(ctx, kv, "", shop(3, first))),
		"delete": testkit.Err(catalog.DeleteDomain(ctx, kv, "shop", first)),
		"new":    testkit.Err(catalog.Domains.Put(ctx, kv, "", &yardv1.Domain{Name: "new", Revision: 1})),
	} {
		testkit.Code(t, what+" of an old revision", err, fault.Stale)
	}
	testkit.Code(t, "a negative revision", testkit.Err(catalog.Domains.Put(ctx, kv, "", shop(3, -1))), fault.InvalidArgument)
	c, err := catalog.Watch(ctx, kv, nil)
	testkit.NoError(t, err)
	if d := c.Domain("shop"); d == nil || d.Revision != next || d.RetentionMs != 2 {
		t.Errorf("the copy has %v", d)
	}
	if d, err := catalog.DeleteDomain(ctx, kv, "shop", next); err != nil || d.RetentionMs != 2 || d.Revision != next {
		t.Errorf("deleted %v: %v", d, err)
	}
	testkit.Code(t, "a put in place of what was deleted", testkit.Err(catalog.Domains.Put(ctx, kv, "", shop(2, next))), fault.Stale)
}

// R9: a deleted domain takes its types with it, no one else's, and every copy hears of all.
func TestCatalogDeletes(t *testing.T) {
	t.Parallel()
	js := cluster(t)
	kv, ctx := configBucket(t, js), t.Context()
	put(t, kv, "shop", 1, "a", "a.b", "c")
	put(t, kv, "shop2", 1, "a")
	var heard domains
	c, err := catalog.Watch(ctx, kv, heard.add)
	testkit.NoError(t, err)
	if tt, err := catalog.Types.Delete(ctx, kv, "shop", "c", 0); err != nil || tt.Name != "c" || tt.MaxConcurrency != 3 {
		t.Fatalf("deleted %v: %v", tt, err)
	}
	await(t, func() bool { return catalog.Types.Of(c, "shop", "c") == nil && len(catalog.Types.All(c, "shop")) == 2 })
	for what, err := range map[string]error{
		"type":   testkit.Err(catalog.Types.Delete(ctx, kv, "shop", "c", 0)),
		"domain": testkit.Err(catalog.DeleteDomain(ctx, kv, "lab", 0)),
		"key":    testkit.Err(catalog.DeleteDomain(ctx, kv, "*", 0)),
	} {
		testkit.Code(t, what+" that is not there", err, fault.NotFound)
	}
	if d, err := catalog.DeleteDomain(ctx, kv, "shop", 0); err != nil || d.Name != "shop" {
		t.Fatalf("deleted %v: %v", d, err)
	}
	await(t, func() bool { return c.Domain("shop") == nil && len(catalog.Types.All(c, "shop")) == 0 })
	if catalog.Types.Of(c, "shop2", "a") == nil || len(catalog.Domains.All(c, "")) != 1 {
		t.Errorf("another domain's: %v, %v", catalog.Domains.All(c, ""), catalog.Types.All(c, "shop2"))
	}
	await(t, func() bool { return slices.Equal(heard.all(), []string{"shop", "shop", "shop", "shop"}) })

	// One that broke off before the types is finished by its repetition.
	put(t, kv, "shop", 1, "a")
	testkit.NoError(t, kv.Delete(ctx, catalog.Domains.Key("", "shop")))
	testkit.Code(t, "a repetition", testkit.Err(catalog.DeleteDomain(ctx, kv, "shop", 0)), fault.NotFound)
	testkit.Code(t, "its type", testkit.Err(catalog.Types.Get(ctx, kv, "shop", "a")), fault.NotFound)
}

// Settings of a tasklist are kept as those of a type are. Keys of a
// later version are passed over, and so are fields.
func TestCatalogKeepsTasklists(t *testing.T) {
	js := cluster(t)
	kv, ctx := configBucket(t, js), t.Context()
	put(t, kv, "shop", 1, "a")
	mail := func(priority int32, revision int64) *yardv1.Tasklist {
		return &yardv1.Tasklist{Name: "mail", Priority: priority, Revision: revision}
	}
	first, err := catalog.Tasklists.Put(ctx, kv, "shop", mail(2, 0))
	testkit.NoError(t, err)
	for key, value := range map[string]string{
		"widget.shop.mail": `{"name":"mail"}`, "tasklist.shop.mail.more": `{"name":"mail"}`, "tasklist.shop": `{}`, "tasklist.shop.broken": "{",
		catalog.Tasklists.Key("lab", "newer"): `{"name":"newer","priority":4,"colour":"red"}`,
	} {
		testkit.NoError(t, testkit.Err(kv.Put(ctx, key, []byte(value))))
	}
	var heard domains
	c, err := catalog.Watch(ctx, kv, heard.add)
	testkit.NoError(t, err)
	if l := catalog.Tasklists.Of(c, "shop", "mail"); l == nil || l.Priority != 2 || l.Revision != first || len(catalog.Tasklists.All(c, "shop")) != 1 || len(catalog.Types.All(c, "shop")) != 1 {
		t.Errorf("loaded %v", catalog.Tasklists.All(c, "shop"))
	}
	if l := catalog.Tasklists.Of(c, "lab", "newer"); l == nil || l.Priority != 4 {
		t.Errorf("with a field of a later version: %v", l)
	}
	next, err := catalog.Tasklists.Put(ctx, kv, "shop", mail(4, first))
	if err != nil || next <= first {
		t.Fatalf("revision %d after %d: %v", next, first, err)
	}
	await(t, func() bool { return catalog.Tasklists.Of(c, "shop", "mail").GetRevision() == next })
	for what, err := range map[string]error{
		"put":    testkit.Err(catalog.Tasklists.Put(ctx, kv, "shop", mail(5, first))),
		"delete": testkit.Err(catalog.Tasklists.Delete(ctx, kv, "shop", "mail", first)),
	} {
		testkit.Code(t, what+" of an old revision", err, fault.Stale)
	}
	if l, err := catalog.Tasklists.Delete(ctx, kv, "shop", "mail", next); err != nil || l.Priority != 4 {
		t.Errorf("deleted %v: %v", l, err)
	}
	await(t, func() bool { return catalog.Tasklists.Of(c, "shop", "mail") == nil })
	for what, err := range map[string]error{
		"deleted":  testkit.Err(catalog.Tasklists.Get(ctx, kv, "shop", "mail")),
		"wildcard": testkit.Err(catalog.Tasklists.Delete(ctx, kv, "shop", "*", 0)),
		"dots":     testkit.Err(catalog.Tasklists.Get(ctx, kv, "shop", "mail.more")),
	} {
		testkit.Code(t, what, err, fault.NotFound)
	}
	if names := heard.all(); !slices.Contains(names, "shop") || slices.Contains(names, "lab") {
		t.Errorf("heard of %v", names)
	}
}

// R9: a deleted domain takes the settings of its tasklists and its limits with it, no one else's.
func TestCatalogDeletesWhatIsOfADomain(t *testing.T) {
	js := cluster(t)
	kv, ctx := configBucket(t, js), t.Context()
	c, err := catalog.Watch(ctx, kv, nil)
	testkit.NoError(t, err)
	for _, domain := range []string{"shop", "lab"} {
		put(t, kv, domain, 1, "a")
		testkit.NoError(t, testkit.Err(catalog.Tasklists.Put(ctx, kv, domain, &yardv1.Tasklist{Name: "mail"})))
		testkit.NoError(t, testkit.Err(catalog.Limits.Put(ctx, kv, domain, &yardv1.Limit{Name: "acme", MaxConcurrency: 2})))
	}
	await(t, func() bool {
		return len(catalog.Tasklists.All(c, "shop")) == 1 && len(catalog.Types.All(c, "shop")) == 1 && len(catalog.Limits.All(c, "shop")) == 1
	})
	testkit.NoError(t, testkit.Err(catalog.DeleteDomain(ctx, kv, "shop", 0)))
	await(t, func() bool {
		return catalog.Tasklists.Of(c, "lab", "mail") != nil && catalog.Limits.Of(c, "lab", "acme").GetMaxConcurrency() == 2 && len(catalog.Tasklists.All(c, "shop")) == 0 && len(catalog.Types.All(c, "shop")) == 0 && len(catalog.Limits.All(c, "shop")) == 0
	})
}

// A copy that was away hears of the tasklists that were set meanwhile.
func TestCatalogCatchesUpOnTasklists(t *testing.T) {
	testkit.Slow(t, "waits until a stream is missed")
	srv := natskit.Run(t)
	js := connect(t, srv)
	testkit.NoError(t, apply(t, js, two))
	c, err := catalog.Watch(t.Context(), configBucket(t, connect(t, srv)), nil)
	testkit.NoError(t, err)
	srv.Restart(t)
	testkit.NoError(t, testkit.Err(catalog.Tasklists.Put(t.Context(), configBucket(t, connect(t, srv)), "shop", &yardv1.Tasklist{Name: "mail", Priority: 1})))
	await(t, func() bool { l := catalog.Tasklists.Of(c, "shop", "mail"); return l.GetPriority() == 1 })
}

func TestCatalogStopsWithItsContext(t *testing.T) {
	js := cluster(t)
	kv := configBucket(t, js)
	for i := range 300 { // more than a watch holds
		put(t, kv, fmt.Sprintf("d%d", i), 1)
	}
	idle := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	c, err := catalog.Watch(ctx, kv, nil)
	testkit.NoError(t, err)
	testkit.Equal(t, "domains", len(catalog.Domains.All(c, "")), 300)
	cancel()
	goleak.VerifyNone(t, idle)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := catalog.Watch(ended, kv, nil); err == nil {
		t.Error("a catalog was loaded after its context ended")
	}
}

// meanwhile is a bucket where somebody else does something after the next read.
type meanwhile struct {
	jetstream.KeyValue
	then func()
}

func (m *meanwhile) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	e, err := m.KeyValue.Get(ctx, key)
	if then := m.then; then != nil {
		m.then = nil
		then()
	}
	return e, err
}

// Only a pause that is over is deleted, on a real bucket: not one that holds, nor one that was put in its place meanwhile.
func TestCatalogDeletesPausesThatAreOver(t *testing.T) {
	js := cluster(t)
	bucket := configBucket(t, js)
	kv := &meanwhile{KeyValue: bucket}
	const now = 10_000
	key := catalog.Pauses.Types.Key("shop", "email.send")
	put := func(until int64) {
		t.Helper()
		testkit.NoError(t, testkit.Err(catalog.Pauses.Types.PutAs(t.Context(), kv, "shop", "email.send", &yardv1.Pause{SinceMs: 1, UntilMs: until})))
	}
	deleted := func(what string, want bool) {
		t.Helper()
		if err := catalog.DeleteOver(t.Context(), kv, catalog.Pauses.Types, "shop", "email.send", now); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := bucket.Get(t.Context(), key); (err != nil) != want {
			t.Errorf("%s: read afterwards: %v", what, err)
		}
	}
	deleted("none", true)
	put(0)
	deleted("without an end", false)
	put(now + 1)
	deleted("it holds for 1 ms more", false)
	put(now)
	deleted("it ends now", true)
	put(now - 1)
	kv.then = func() { put(0) }
	deleted("put again meanwhile", false)
	put(now - 1)
	kv.then = func() {
		testkit.Check(t, bucket.Delete(t.Context(), key))
	}
	deleted("deleted meanwhile", true)

	testkit.NoError(t, js.DeleteKeyValue(t.Context(), topology.ConfigBucket))
	testkit.Code(t, "without a bucket", catalog.DeleteOver(t.Context(), kv, catalog.Pauses.Types, "shop", "email.send", now), fault.Unavailable)
}
