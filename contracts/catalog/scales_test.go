package catalog

import (
	"testing"
	"testing/synctest"

	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
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
		if n := PartitionsOf(l, &rpcv1.TasklistScale{Partitions: int32(c.scale)}); n != c.want {
			t.Errorf("%+v: %d", c, n)
		}
	}
	checktest.Equal(t, "without settings", PartitionsOf(nil, &rpcv1.TasklistScale{Partitions: 7}), 1)
	if least, most := PartitionsBetween(&yardv1.Tasklist{PartitionsMax: 8}); least != 1 || most != 8 {
		t.Errorf("%d to %d", least, most)
	}
	if least, most := PartitionsBetween(&yardv1.Tasklist{Partitions: 5}); least != 5 || most != 5 {
		t.Errorf("%d to %d", least, most)
	}
}

// A put of the settings keeps the scale, and both count at once.
func TestTheNumberOfPartitionsFollows(t *testing.T) {
	watching(t, func(b *catalogtest.KV) {
		b.Store(Scales.Key("bank", "old"), `{"partitions":3}`)
		b.Store(Tasklists.Key("bank", "old"), `{"name":"old","partitions_max":8}`)
	}, func(w *watched) {
		partitions := func(want int) {
			t.Helper()
			synctest.Wait()
			checktest.Equal(t, "partitions", w.Partitions("bank", "old"), want)
		}
		partitions(3)
		checktest.NoError(t, Scales.Swap(t.Context(), w.bucket, "bank", "old", &rpcv1.TasklistScale{Partitions: 5}, 1))
		partitions(5)
		if _, err := Tasklists.Put(t.Context(), w.bucket, "bank", &yardv1.Tasklist{Name: "old", PartitionsMax: 4}); err != nil {
			t.Fatal(err)
		}
		partitions(4)
		if _, err := Scales.Delete(t.Context(), w.bucket, "bank", "old", 0); err != nil {
			t.Fatal(err)
		}
		partitions(1)
	})
}
