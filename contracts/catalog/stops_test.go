package catalog

import (
	"maps"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// Neither is the other, and what is over counts at 0 only.
func TestPausesAndDrainsOfADomain(t *testing.T) {
	fill := func(b *catalogtest.KV) {
		b.Store(Drains.Tasklists.Key("shop", "old"), `{"since_ms":5,"until_ms":9}`)
		b.Store(Drains.Tasklists.Key("shop", "mail"), `{"since_ms":5}`)
		b.Store(Drains.Types.Key("shop", "pay.out"), `{"since_ms":5}`)
		b.Store(Drains.Groups.Key("shop", "a.b"), `{"since_ms":5}`)
		b.Store(Pauses.Tasklists.Key("shop", "mail"), `{"since_ms":5,"until_ms":30}`)
		b.Store(Pauses.Groups.Key("shop", "acme"), `{"since_ms":5,"until_ms":20}`)
		b.Store(Pauses.Types.Key("bank", "x"), `{"since_ms":5,"until_ms":40}`)
		b.Store(Pauses.Domains.Key("", "bank"), `{"since_ms":5,"until_ms":35}`)
	}
	watching(t, fill, func(w *watched) {
		for at, want := range map[int64][]string{0: {"mail", "old"}, 8: {"mail", "old"}, 9: {"mail"}} {
			all := Drains.Of(w.Catalog, "shop", at)
			if got := slices.Sorted(maps.Keys(all.Tasklists)); !slices.Equal(got, want) || len(all.Types) != 1 || all.Types["pay.out"] == nil || all.Groups["a.b"] == nil || all.Len() != len(want)+2 {
				t.Errorf("at %d: %v %v", at, got, all)
			}
		}
		if all := Pauses.Of(w.Catalog, "shop", 9); all.Len() != 2 || all.Tasklists["mail"] == nil || all.Groups["acme"] == nil {
			t.Errorf("%v", all)
		}
		for at, paused := range map[int64]bool{0: true, 34: true, 35: false} {
			if all := Pauses.Of(w.Catalog, "bank", at); (all.Domain != nil) != paused || all.Len() != 1 || Drains.Of(w.Catalog, "bank", at).Domain != nil {
				t.Errorf("at %d: %+v", at, all)
			}
		}
		for at, want := range map[int64]map[string]int64{1: {"shop": 20, "bank": 35}, 20: {"shop": 30, "bank": 35}, 35: {"bank": 40}, 40: {}} {
			if ends := Pauses.Ends(w.Catalog, at); !maps.Equal(ends, want) {
				t.Errorf("at %d pauses end at %v", at, ends)
			}
		}
	})
}

// A pause in force is not deleted as one that is over, whatever a frontend believed of it a moment ago.
func TestOnlyWhatIsOverIsDeletedAsOver(t *testing.T) {
	b, ctx, key := catalogtest.New(), t.Context(), Pauses.Tasklists.Key("shop", "mail")
	for _, c := range []struct {
		until int64
		stays bool
	}{{0, true}, {10, true}, {9, false}} {
		checktest.NoError(t, checktest.Err(Pauses.Tasklists.PutAs(ctx, b, "shop", "mail", &yardv1.Pause{SinceMs: 1, UntilMs: c.until})))
		if err := DeleteOver(ctx, b, Pauses.Tasklists, "shop", "mail", 9); err != nil || b.Has(key) != c.stays {
			t.Errorf("until %d: there %v, want %v: %v", c.until, b.Has(key), c.stays, err)
		}
	}
	checktest.Check(t, DeleteOver(ctx, b, Pauses.Tasklists, "shop", "mail", 9))
}

// A pause that meets the deletion of its domain is deleted, too; one that was put again meanwhile is of a domain that was created again.
func TestAPauseDoesNotOutliveItsDomain(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		kind         Kind[*yardv1.Pause]
		domain, name string
	}{{Pauses.Domains, "", "shop"}, {Drains.Groups, "shop", "acme"}} {
		b, key := catalogtest.New(), c.kind.Key(c.domain, c.name)
		put := func() error { return PutStop(ctx, b, c.kind, c.domain, c.name, &yardv1.Pause{SinceMs: 1}) }
		b.Store(Domains.Key("", "shop"), `{"name":"shop"}`)
		checktest.NoError(t, put())
		checktest.NoError(t, checktest.Err(DeleteDomain(ctx, b, "shop", 0)))
		if err := put(); fault.CodeOf(err) != fault.NotFound || len(b.Stored()) != 0 {
			t.Errorf("%s: %v, %v are stored", key, err, b.Stored())
		}
		b.Meanwhile = func() { b.Store(key, `{"since_ms":2}`) }
		if err := put(); fault.CodeOf(err) != fault.NotFound || !b.Has(key) {
			t.Errorf("%s: %v, what was put meanwhile is there: %v", key, err, b.Has(key))
		}
		b.Broken = errBroken
		refused(t, "without the bucket", put(), fault.Unavailable, "")
		b.Broken, b.Meanwhile = nil, func() { b.Broken = errBroken } // after the domain was looked for
		if err := put(); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", key, err)
		}
	}
}
