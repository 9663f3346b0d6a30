package catalog

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// The rule that all readers go by: as the settings say, or, with a partitions_max, as the scale says within both.
func TestPartitionsAreWithinTheSettings(t *testing.T) {
	for _, c := range []struct{ partitions, most, scale, want int }{
		{0, 0, 0, 1},
		{-5, 0, 0, 1},
		{4, 0, 0, 4},
		{65, 0, 0, 64},
		{4, -1, 7, 4},
		{4, 0, 7, 4},
		{0, 0, 7, 1}, // what is left of a scale does not count
		{0, 8, 0, 1},
		{3, 8, 0, 3},
		{3, 8, 2, 3},
		{3, 8, 5, 5},
		{3, 8, 9, 8},
		{3, 8, -9, 3},
		{0, 100, 99, 64},
		{70, 80, 75, 64},
		{6, 2, 4, 6},
	} {
		l := &yardv1.Tasklist{Partitions: int32(c.partitions), PartitionsMax: int32(c.most)}
		if n := Partitions(l, Scale{Partitions: c.scale}); n != c.want {
			t.Errorf("%+v: %d", c, n)
		}
	}
	if n := Partitions(nil, Scale{Partitions: 7}); n != 1 {
		t.Errorf("without settings: %d", n)
	}
	if least, most := PartitionsBetween(&yardv1.Tasklist{PartitionsMax: 8}); least != 1 || most != 8 {
		t.Errorf("%d to %d", least, most)
	}
	if least, most := PartitionsBetween(&yardv1.Tasklist{Partitions: 5}); least != 5 || most != 5 {
		t.Errorf("%d to %d", least, most)
	}
}

// A scale comes, changes and goes as a change of its domain; a put of the settings keeps it; one that cannot be read is passed over.
func TestACatalogFollowsScales(t *testing.T) {
	fill := func(b *bucket) {
		b.set(topology.ScaleKey("bank", "old"), []byte(`3`), false)
		b.set(topology.ScaleKey("bank", "broken"), []byte(`three`), false)
		b.set(topology.TasklistSettingsKey("bank", "old"), []byte(`{"name":"old","partitions_max":8}`), false)
	}
	watching(t, fill, func(w *watched) {
		if n := w.Partitions("bank", "old"); n != 3 || w.Scale("bank", "old").Revision != 1 || w.Scale("bank", "broken") != (Scale{}) {
			t.Errorf("%d partitions, %v", n, w.Scales())
		}
		before := w.now.Load()
		if err := PutScale(t.Context(), w.bucket, "bank", "old", 5, 1); err != nil {
			t.Fatal(err)
		}
		if err := PutScale(t.Context(), w.bucket, "shop", "mail", 2, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := PutTasklist(t.Context(), w.bucket, "bank", &yardv1.Tasklist{Name: "old", PartitionsMax: 4}); err != nil {
			t.Fatal(err)
		}
		w.reported("two scales and settings", "bank", "shop", "bank")
		if n := w.Partitions("bank", "old"); n != 4 || w.Scale("bank", "old").Partitions != 5 || len(w.Scales()) != 2 {
			t.Errorf("%d partitions, %v", n, w.Scales())
		}
		if before.scales["bank"]["old"].Partitions != 3 || len(before.scales["shop"]) != 0 {
			t.Errorf("what was read has changed: %v", before.scales)
		}
		if _, err := w.bucket.Get(t.Context(), topology.ScaleKey("bank", "old")); err != nil { // the bucket in memory goes by what was read
			t.Fatal(err)
		}
		if err := DeleteScale(t.Context(), w.bucket, "bank", "old", w.Scale("bank", "old").Revision); err != nil {
			t.Fatal(err)
		}
		w.reported("a scale that is deleted", "bank")
		if n := w.Partitions("bank", "old"); n != 1 || len(w.Scales()) != 1 {
			t.Errorf("%d partitions, %v", n, w.Scales())
		}
	})
}

// A scale that changed while no one listened is a change of its domain.
func TestAScaleIsFoundWhenTheWatchComesBack(t *testing.T) {
	a, b := newState(), newState()
	set(a.scales, "shop", "mail", Scale{3, 7}, false)
	set(b.scales, "shop", "mail", Scale{4, 8}, false)
	if a.same(b, "shop") || !a.same(a.clone(), "shop") || !a.same(b, "bank") {
		t.Error("compared wrongly")
	}
	var told []string
	c := &Catalog{onChange: func(domain string) { told = append(told, domain) }}
	c.now.Store(a)
	c.replace(b)
	if fmt.Sprint(told) != "[shop]" {
		t.Error(told)
	}
}

// Of several writers one wins: the others' revision is stale, and so is that there is none.
func TestAScaleIsStoredOnce(t *testing.T) {
	b, ctx := newBucket(), t.Context()
	if err := PutScale(ctx, b, "shop", "mail", 2, 0); err != nil {
		t.Fatal(err)
	}
	refused(t, "a second first", PutScale(ctx, b, "shop", "mail", 3, 0), fault.Stale, "")
	if err := PutScale(ctx, b, "shop", "mail", 4, 1); err != nil {
		t.Fatal(err)
	}
	refused(t, "of a revision that is no more", PutScale(ctx, b, "shop", "mail", 5, 1), fault.Stale, "")
	b.broken = errBroken
	refused(t, "away", PutScale(ctx, b, "shop", "mail", 5, 2), fault.Unavailable, "")
}

// Settings go with their scale, and so does a domain with all of its; other tasklists' stay.
func TestAScaleGoesWithItsTasklist(t *testing.T) {
	b, ctx := newBucket(), t.Context()
	for _, domain := range []string{"shop", "shop2"} {
		if _, err := PutDomain(ctx, b, &yardv1.Domain{Name: domain}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"mail", "push"} {
			if _, err := PutTasklist(ctx, b, domain, &yardv1.Tasklist{Name: name, PartitionsMax: 8}); err != nil {
				t.Fatal(err)
			}
			if err := PutScale(ctx, b, domain, name, 2, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	there := func(domain, name string) bool {
		e := b.entries[topology.ScaleKey(domain, name)]
		return e != nil && !e.gone
	}
	if _, err := DeleteTasklist(ctx, b, "shop", "mail", 0); err != nil {
		t.Fatal(err)
	}
	if there("shop", "mail") || !there("shop", "push") || !there("shop2", "mail") {
		t.Error("not the scale of the tasklist that was deleted, or another one, is gone")
	}
	if _, err := DeleteDomain(ctx, b, "shop", 0); err != nil {
		t.Fatal(err)
	}
	if there("shop", "push") || !there("shop2", "mail") || !there("shop2", "push") {
		t.Error("not the scales of the domain that was deleted, or others, are gone")
	}
	// After a deletion it may be stored as if there had been none.
	if err := PutScale(ctx, b, "shop", "mail", 2, 0); err != nil {
		t.Error(err)
	}
}
