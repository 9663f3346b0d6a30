package storage_test

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/storage"
)

const mib = 1 << 20

// TestGate: tasks are taken while each limit has its reserve free, and again when a quarter more is,
// so that a log at the edge does not change its mind each second.
func TestGate(t *testing.T) {
	c := storage.Config{ReservePercent: 10, ReserveBytes: 50 * mib}
	var g storage.Gate
	for _, step := range []struct {
		what string
		used int64 // MiB of 100
		full bool
	}{
		{"half", 50, false},
		{"the reserve is whole", 90, false},
		{"it is touched", 91, true},
		{"it is whole, but for the margin", 89, true},
		{"and so is the margin", 87, false},
		{"the reserve is whole again", 90, false},
		{"it is filled to the brim", 100, true},
		{"and past it", 120, true},
	} {
		why := g.Look(c, []storage.Limit{{Of: "the stream", Used: 1, Max: 1 << 40}, {Of: "the account", Used: step.used * mib, Max: 100 * mib}})
		if (why != "") != step.full {
			t.Errorf("%s: %q", step.what, why)
		}
	}
}

func TestReserveOfALargeLimitIsBounded(t *testing.T) {
	c := storage.Config{ReservePercent: 10, ReserveBytes: 50 * mib}
	var g storage.Gate
	large := storage.Limit{Of: "the account", Max: 1 << 40}
	if large.Used = large.Max - 51*mib; g.Look(c, []storage.Limit{large}) != "" {
		t.Error("full with 51 MiB left")
	}
	if large.Used = large.Max - 49*mib; g.Look(c, []storage.Limit{large}) == "" {
		t.Error("not full with 49 MiB left")
	}
	if g.Look(c, nil) != "" {
		t.Error("full without a limit")
	}
}

func TestConfig(t *testing.T) {
	if why := storage.DefaultConfig().Valid(); why != "" {
		t.Error(why)
	}
	for _, bad := range []storage.Config{{ReservePercent: 0, ReserveBytes: 1}, {ReservePercent: 91, ReserveBytes: 1}, {ReservePercent: 10}, {ReservePercent: 10, ReserveBytes: 1, BytesMax: -1}} {
		if bad.Valid() == "" {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// Whatever reserve is valid: a storage that is empty again takes tasks again.
func TestAnEmptyStorageTakesTasksAgain(t *testing.T) {
	for percent := 1; percent <= 90; percent++ {
		c := storage.Config{ReservePercent: percent, ReserveBytes: 1 << 40}
		if why := c.Valid(); why != "" {
			t.Fatal(why)
		}
		var g storage.Gate
		l := storage.Limit{Of: "the account", Used: 100 * mib, Max: 100 * mib}
		if g.Look(c, []storage.Limit{l}) == "" {
			t.Fatalf("%d %%: not full at the brim", percent)
		}
		l.Used = 1 * mib
		if why := g.Look(c, []storage.Limit{l}); why != "" {
			t.Errorf("%d %%: with 99 of 100 MiB free: %s", percent, why)
		}
	}
}
