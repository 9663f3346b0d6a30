package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// watched is a catalog of a bucket, with what it reported.
type watched struct {
	*Catalog
	t       *testing.T
	bucket  *catalogtest.KV
	changed []string
	stop    context.CancelFunc
}

// watching runs a test on a catalog in virtual time; a goroutine that is left behind fails it.
func watching(t *testing.T, fill func(b *catalogtest.KV), test func(w *watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &watched{t: t, bucket: catalogtest.New()}
		if fill != nil {
			fill(w.bucket)
		}
		ctx, stop := context.WithCancel(t.Context())
		w.stop = stop
		var err error
		w.Catalog, err = Watch(ctx, w.bucket, func(d string) { w.changed = append(w.changed, d) })
		checktest.NoError(t, err)
		test(w)
		stop()
		synctest.Wait()
		if n := w.bucket.Watchers(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

func (w *watched) put(domain string, types ...string) {
	w.t.Helper()
	checktest.NoError(w.t, checktest.Err(Domains.Put(w.t.Context(), w.bucket, "", &yardv1.Domain{Name: domain, RetentionMs: int64(w.bucket.Revision())})))
	w.types(domain, types...)
}

func (w *watched) types(domain string, types ...string) {
	w.t.Helper()
	for _, name := range types {
		checktest.NoError(w.t, checktest.Err(Types.Put(w.t.Context(), w.bucket, domain, &yardv1.TaskType{Name: name})))
	}
}

// noticed waits for what a watcher missed.
func (w *watched) noticed() {
	time.Sleep(CompareEvery*2 + rewatchWaitLast + time.Second)
	synctest.Wait()
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

// What cannot be read leaves what was there before.
func TestWhatIsMalformedChangesNothing(t *testing.T) {
	watching(t, nil, func(w *watched) {
		w.put("shop", "a")
		w.reported("the first", "shop", "shop")
		for key, value := range map[string]string{
			Domains.Key("", "shop"): "{", Types.Key("shop", "a"): "nonsense", topology.VersionKey: "x", "other": "{}", "type.": "{}",
		} {
			w.bucket.Store(key, value)
		}
		w.reported("malformed")
		if w.Domain("shop") == nil || w.Version() != 0 {
			t.Errorf("domain %v, version %d", w.Domain("shop"), w.Version())
		}
		if Types.Of(w.Catalog, "shop", "a") == nil {
			t.Error("the type is gone")
		}
	})
}

func TestTheVersionNeverGoesDown(t *testing.T) {
	watching(t, nil, func(w *watched) {
		w.bucket.Store(topology.VersionKey, "2")
		synctest.Wait()
		for _, value := range []string{"1", ""} {
			if value == "" {
				w.bucket.Forget(topology.VersionKey)
			} else {
				w.bucket.Store(topology.VersionKey, value)
			}
			synctest.Wait()
			if w.Version() != 2 {
				t.Errorf("after %q it is %d", value, w.Version())
			}
		}
		w.bucket.Store(topology.VersionKey, "99")
		w.reported("versions") // they are no one's domain
		if w.Version() != 99 || w.WriteVersion() != logversion.Newest() {
			t.Errorf("version %d, written is %d", w.Version(), w.WriteVersion())
		}
		// A watch that starts again, on a bucket from before, does not lower it either.
		w.bucket.Restart()
		w.bucket.EndWatches()
		w.noticed()
		checktest.Equal(t, "after a new watch it", w.Version(), 99)
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
		w.bucket.Locked(func() { w.bucket.Deaf = true })
		_, group := Groups.Put(w.t.Context(), w.bucket, "grouped", &yardv1.Group{Name: "acme", Weight: new(2.0)})
		_, list := Tasklists.Put(w.t.Context(), w.bucket, "listed", &yardv1.Tasklist{Name: "mail", MaxQueued: 1})
		_, limit := Limits.Put(w.t.Context(), w.bucket, "limited", &yardv1.Limit{Name: "acme", MaxConcurrency: 1})
		checktest.NoError(t, errors.Join(group, list, limit))
		checktest.NoError(t, checktest.Err(DeleteDomain(w.t.Context(), w.bucket, "gone", 0)))
		w.put("changed")
		w.types("typed", "b")
		w.put("new")
		w.bucket.Locked(func() { w.bucket.Deaf = false })
		w.bucket.EndWatches()
		w.noticed()
		w.reported("the new watch", "changed", "gone", "grouped", "limited", "listed", "new", "typed")
		checktest.Equal(t, "domains", names(Domains.All(w.Catalog, "")), []string{"changed", "grouped", "limited", "listed", "new", "same", "typed"})
		checktest.Equal(t, "types", names(Types.All(w.Catalog, "typed")), []string{"a", "b"})
	})
}

// A watch that is dead says nothing; the bucket's last revision tells.
func TestAWatchThatIsBehindIsBegunAnew(t *testing.T) {
	watching(t, nil, func(w *watched) {
		w.put("shop")
		w.reported("while it hears", "shop")
		w.bucket.Locked(func() { w.bucket.Deaf = true })
		w.put("missed")
		w.noticed()
		w.reported("when it is missed", "missed")
		// A bucket that was made again begins at 1: it has less than was seen.
		w.bucket.Restart()
		w.noticed()
		w.reported("another bucket", "missed", "shop")
		// What is whole is not started again for nothing.
		before := w.bucket.Begun()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.bucket.Begun() - before; n != 0 {
			t.Errorf("%d watches of a bucket in which nothing happens", n)
		}
	})
}

// While the server is away it is asked again, ever more seldom, and the last state stays.
func TestAServerThatIsAwayIsAskedAgain(t *testing.T) {
	watching(t, nil, func(w *watched) {
		w.put("shop")
		synctest.Wait()
		w.bucket.Locked(func() { w.bucket.Broken = errBroken })
		w.bucket.EndWatches()
		before := w.bucket.Begun()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.bucket.Begun() - before; n < 30 || n > 40 { // every 2 s, and sooner at first
			t.Errorf("asked %d times in a minute", n)
		}
		if w.Domain("shop") == nil {
			t.Error("the last state is gone")
		}
		w.bucket.Locked(func() { w.bucket.Broken = nil })
		w.noticed()
		w.put("back")
		synctest.Wait()
		if w.Domain("back") == nil {
			t.Error("it does not follow again")
		}
	})
}

func TestAWatchNeedsABucket(t *testing.T) {
	b := catalogtest.New()
	b.Broken = errBroken
	if _, err := Watch(t.Context(), b, nil); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	b.Broken = nil
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
	fill := func(b *catalogtest.KV) {
		for i := range 10 * restFrom {
			b.Store(Types.Key("vast", fmt.Sprint("t", i)), `{}`)
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
		if n := Types.Count(w.Catalog, "vast"); Types.Of(w.Catalog, "vast", "new99") == nil || n != 10*restFrom+100 {
			t.Errorf("there are %d", n)
		}
		w.changed = nil
		w.types("shop", "c", "d")
		w.reported("afterwards", "shop", "shop")
		w.types("vast", "last")
		synctest.Wait()
		w.bucket.EndWatches() // while it rests
		w.noticed()
		w.types("vast", "after")
		synctest.Wait()
		if Types.Of(w.Catalog, "vast", "after") == nil {
			t.Error("it does not follow any more")
		}
	})
}
