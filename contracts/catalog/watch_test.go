package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// watched is a catalog of a bucket, with what it reported.
type watched struct {
	*Catalog
	t       *testing.T
	bucket  *bucket
	changed []string
	stop    context.CancelFunc
}

// watching runs a test on a catalog in virtual time; a goroutine that is left behind fails it.
func watching(t *testing.T, fill func(b *bucket), test func(w *watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &watched{t: t, bucket: newBucket()}
		if fill != nil {
			fill(w.bucket)
		}
		ctx, stop := context.WithCancel(t.Context())
		w.stop = stop
		var err error
		if w.Catalog, err = Watch(ctx, w.bucket, func(d string) { w.changed = append(w.changed, d) }); err != nil {
			t.Fatal(err)
		}
		test(w)
		stop()
		synctest.Wait()
		w.bucket.locked(func() {
			if n := len(w.bucket.watchers); n != 0 {
				t.Errorf("%d watches are left", n)
			}
		})
	})
}

func (w *watched) put(domain string, types ...string) {
	w.t.Helper()
	if _, err := PutDomain(w.t.Context(), w.bucket, &yardv1.Domain{Name: domain, RetentionMs: int64(w.bucket.revision)}); err != nil {
		w.t.Fatal(err)
	}
	w.types(domain, types...)
}

func (w *watched) types(domain string, types ...string) {
	w.t.Helper()
	for _, name := range types {
		if _, err := PutType(w.t.Context(), w.bucket, domain, &yardv1.TaskType{Name: name}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// reported checks of which domains it reported since the last call.
func (w *watched) reported(what string, want ...string) {
	w.t.Helper()
	synctest.Wait()
	if !slices.Equal(w.changed, want) {
		w.t.Errorf("%s: it reported %v, not %v", what, w.changed, want)
	}
	w.changed = nil
}

func names[T interface{ GetName() string }](all []T) (names []string) {
	for _, one := range all {
		names = append(names, one.GetName())
	}
	return names
}

func TestACatalogHasWhatWasThereAndFollows(t *testing.T) {
	fill := func(b *bucket) {
		for _, name := range []string{"shop", "bank"} {
			b.set(topology.DomainKey(name), []byte(`{"name":"`+name+`"}`), false)
		}
		b.set(topology.TypeKey("shop", "old"), []byte(`{"name":"old"}`), false)
		b.set(topology.DomainKey("former"), nil, true)
		b.set(topology.VersionKey, []byte("3"), false)
		b.set(topology.ClusterKey, []byte(`{}`), false)
	}
	watching(t, fill, func(w *watched) {
		if got := names(w.Domains()); !slices.Equal(got, []string{"bank", "shop"}) || w.Version() != 3 {
			t.Errorf("domains %v, version %d", got, w.Version())
		}
		if d, ok := w.Domain("shop"); !ok || d.Revision != 1 {
			t.Errorf("%v %v", d, ok)
		}
		if ty, ok := w.Type("shop", "old"); !ok || ty.Revision != 3 {
			t.Errorf("%v %v", ty, ok)
		}
		w.reported("the beginning") // a watch reads it anyway

		w.types("shop", "mail", "b.c")
		w.reported("two types", "shop", "shop")
		if got := names(w.Types("shop")); !slices.Equal(got, []string{"b.c", "mail", "old"}) {
			t.Errorf("types %v", got)
		}
		if _, err := DeleteType(w.t.Context(), w.bucket, "shop", "old", 0); err != nil {
			t.Fatal(err)
		}
		w.reported("a deleted type", "shop")
		if _, ok := w.Type("shop", "old"); ok {
			t.Error("a deleted type is there")
		}
		if _, err := DeleteDomain(w.t.Context(), w.bucket, "bank", 0); err != nil {
			t.Fatal(err)
		}
		w.reported("a deleted domain", "bank")
		if _, ok := w.Domain("bank"); ok {
			t.Error("a deleted domain is there")
		}
	})
}

// What a reader holds does not change under its hands.
func TestWhatWasReadStays(t *testing.T) {
	watching(t, nil, func(w *watched) {
		w.put("shop", "a")
		synctest.Wait()
		before := w.now.Load()
		w.put("bank")
		w.types("shop", "b")
		synctest.Wait()
		if len(before.domains) != 1 || len(before.types["shop"]) != 1 {
			t.Errorf("%v %v", before.domains, before.types)
		}
	})
}

// What cannot be read leaves what was there before.
func TestWhatIsMalformedChangesNothing(t *testing.T) {
	watching(t, nil, func(w *watched) {
		w.put("shop", "a")
		w.reported("the first", "shop", "shop")
		w.bucket.locked(func() {
			for key, value := range map[string]string{
				topology.DomainKey("shop"): "{", topology.TypeKey("shop", "a"): "nonsense", topology.VersionKey: "x", "other": "{}", "type.": "{}",
			} {
				w.bucket.set(key, []byte(value), false)
			}
		})
		w.reported("malformed")
		if _, ok := w.Domain("shop"); !ok || w.Version() != 0 {
			t.Errorf("domain %v, version %d", ok, w.Version())
		}
		if _, ok := w.Type("shop", "a"); !ok {
			t.Error("the type is gone")
		}
	})
}

func TestTheVersionNeverGoesDown(t *testing.T) {
	watching(t, nil, func(w *watched) {
		w.bucket.locked(func() { w.bucket.set(topology.VersionKey, []byte("2"), false) })
		synctest.Wait()
		for _, value := range []string{"1", ""} {
			w.bucket.locked(func() { w.bucket.set(topology.VersionKey, []byte(value), value == "") })
			synctest.Wait()
			if w.Version() != 2 {
				t.Errorf("after %q it is %d", value, w.Version())
			}
		}
		w.bucket.locked(func() { w.bucket.set(topology.VersionKey, []byte("99"), false) })
		w.reported("versions") // they are no one's domain
		if w.Version() != 99 || w.WriteVersion() != logversion.Newest() {
			t.Errorf("version %d, written is %d", w.Version(), w.WriteVersion())
		}
		// A watch that starts again, on a bucket from before, does not lower it either.
		w.bucket.locked(func() { delete(w.bucket.entries, topology.VersionKey) })
		w.bucket.endWatches()
		time.Sleep(noticed)
		synctest.Wait()
		if w.Version() != 99 {
			t.Errorf("after a new watch it is %d", w.Version())
		}
	})
}

// A watch that ended is started again, and what was missed is reported: each domain that differs, once.
func TestAWatchThatEndsIsBegunAnew(t *testing.T) {
	watching(t, nil, func(w *watched) {
		w.put("same", "a")
		w.put("gone", "a")
		w.put("changed")
		w.put("typed", "a")
		w.put("grouped")
		w.put("listed")
		w.put("limited")
		synctest.Wait()
		w.changed = nil
		w.bucket.locked(func() { w.bucket.deaf = true })
		_, group := PutGroup(w.t.Context(), w.bucket, "grouped", &yardv1.Group{Name: "acme", Weight: new(2.0)})
		_, list := PutTasklist(w.t.Context(), w.bucket, "listed", &yardv1.Tasklist{Name: "mail", MaxQueued: 1})
		_, limit := PutLimit(w.t.Context(), w.bucket, "limited", &yardv1.Limit{Name: "acme", MaxConcurrency: 1})
		if err := errors.Join(group, list, limit); err != nil {
			t.Fatal(err)
		}
		if _, err := DeleteDomain(w.t.Context(), w.bucket, "gone", 0); err != nil {
			t.Fatal(err)
		}
		w.put("changed")
		w.types("typed", "b")
		w.put("new")
		w.bucket.locked(func() { w.bucket.deaf = false })
		w.bucket.endWatches()
		time.Sleep(noticed)
		synctest.Wait()
		w.reported("the new watch", "changed", "gone", "grouped", "limited", "listed", "new", "typed")
		if got := names(w.Domains()); !slices.Equal(got, []string{"changed", "grouped", "limited", "listed", "new", "same", "typed"}) {
			t.Errorf("domains %v", got)
		}
		if got := names(w.Types("typed")); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("types %v", got)
		}
	})
}

// A watch that is dead says nothing; the bucket's last revision tells.
func TestAWatchThatIsBehindIsBegunAnew(t *testing.T) {
	watching(t, nil, func(w *watched) {
		w.put("shop")
		w.reported("while it hears", "shop")
		w.bucket.locked(func() { w.bucket.deaf = true })
		w.put("missed")
		time.Sleep(noticed)
		synctest.Wait()
		w.reported("when it is missed", "missed")
		// A bucket that was made again begins at 1: it has less than was seen.
		w.bucket.locked(func() {
			w.bucket.revision = 0
			clear(w.bucket.entries)
		})
		time.Sleep(noticed)
		synctest.Wait()
		w.reported("another bucket", "missed", "shop")
		// What is whole is not started again for nothing.
		before := w.bucket.begun()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.bucket.begun() - before; n != 0 {
			t.Errorf("%d watches of a bucket in which nothing happens", n)
		}
	})
}

// While the server is away it is asked again, ever more seldom, and the last state stays.
func TestAServerThatIsAwayIsAskedAgain(t *testing.T) {
	watching(t, nil, func(w *watched) {
		w.put("shop")
		synctest.Wait()
		w.bucket.locked(func() { w.bucket.broken = errBroken })
		w.bucket.endWatches()
		before := w.bucket.begun()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.bucket.begun() - before; n < 30 || n > 40 { // every 2 s, and sooner at first
			t.Errorf("asked %d times in a minute", n)
		}
		if _, ok := w.Domain("shop"); !ok {
			t.Error("the last state is gone")
		}
		w.bucket.locked(func() { w.bucket.broken = nil })
		time.Sleep(noticed)
		synctest.Wait()
		w.put("back")
		synctest.Wait()
		if _, ok := w.Domain("back"); !ok {
			t.Error("it does not follow again")
		}
	})
}

func TestAWatchNeedsABucket(t *testing.T) {
	b := newBucket()
	b.broken = errBroken
	if _, err := Watch(t.Context(), b, nil); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	b.broken = nil
	ended, end := context.WithCancel(t.Context())
	end()
	c, err := Watch(ended, b, nil) // nil: no report of changes
	if err == nil {
		c.onChange("shop")
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// I14: changes of a domain with many settings, each of which copies them all, are taken together, and none is lost; those of small
// domains are taken one by one.
func TestI14_ChangesOfManySettingsAreTakenTogether(t *testing.T) {
	fill := func(b *bucket) {
		for i := range 10 * restFrom {
			b.set(topology.TypeKey("vast", fmt.Sprint("t", i)), []byte(`{}`), false)
		}
	}
	watching(t, fill, func(w *watched) {
		w.put("shop")
		w.types("shop", "a", "b")
		w.reported("a small one", "shop", "shop", "shop")
		for i := range 100 {
			w.types("vast", fmt.Sprint("new", i))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(restMax)
		synctest.Wait()
		if n, most := len(w.changed), 100/(10*restFrom*int(restPerCopy)/int(time.Millisecond))+3; n < 2 || n > most {
			t.Errorf("100 changes of %d settings were taken in %d parts, want %d at most", 10*restFrom, n, most)
		}
		if _, ok := w.Type("vast", "new99"); !ok || w.Counts("vast").Types != 10*restFrom+100 {
			t.Errorf("%+v, the last one is there: %v", w.Counts("vast"), ok)
		}
		w.changed = nil
		w.types("shop", "c", "d")
		w.reported("afterwards", "shop", "shop")
		w.types("vast", "last")
		synctest.Wait()
		w.bucket.endWatches() // while it rests
		time.Sleep(noticed)
		synctest.Wait()
		w.types("vast", "after")
		synctest.Wait()
		if _, ok := w.Type("vast", "after"); !ok {
			t.Error("it does not follow any more")
		}
	})
}
