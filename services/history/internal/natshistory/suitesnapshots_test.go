package natshistory

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// exerciseSnapshots runs the suite of partition.Snapshots; each part on a store of its own.
func exerciseSnapshots(t *testing.T, make func(t *testing.T) partition.Snapshots) {
	t.Helper()
	for name, part := range map[string]func(*testing.T, partition.Snapshots){
		"what is saved is loaded": savedSnapshot, "a torn snapshot is none": tornSnapshot, "older snapshots are deleted": olderSnapshots,
		"a newer owner's stay": newerSnapshots, "a large one": largeSnapshot,
	} {
		t.Run(name, func(t *testing.T) { part(t, make(t)) })
	}
}

func saveSnapshot(t *testing.T, s partition.Snapshots, name partition.SnapshotName, chunks ...string) {
	t.Helper()
	data := make([][]byte, len(chunks))
	for i := range chunks {
		data[i] = []byte(chunks[i])
	}
	testkit.NoError(t, s.Save(t.Context(), name, data))
	for i := range data { // the store keeps no buffer of the caller
		clear(data[i])
	}
}

// hasSnapshot checks that a store has a snapshot with these chunks, and with no other number of them; none: it does not have it.
func hasSnapshot(t *testing.T, s partition.Snapshots, name partition.SnapshotName, want ...string) {
	t.Helper()
	for count := range len(want) + 2 {
		chunks, err := s.Load(t.Context(), name, count)
		if count == 0 && len(want) == 0 {
			continue // nothing is all of nothing
		}
		if count != len(want) {
			if !errors.Is(err, partition.ErrNoSnapshot) {
				t.Errorf("%v has %d chunks, and asked for %d the store says %q, %v", name, len(want), count, chunks, err)
			}
			continue
		}
		testkit.NoError(t, err)
		var got []string
		for _, c := range chunks {
			got = append(got, string(c))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v is %q, want %q", name, got, want)
		}
	}
}

func savedSnapshot(t *testing.T, s partition.Snapshots) {
	first, second := partition.SnapshotName{Epoch: 1, Seq: 10}, partition.SnapshotName{Epoch: 1, Seq: 11}
	hasSnapshot(t, s, first)
	many := make([]string, 12) // the order is that of numbers, not of digits
	for i := range many {
		many[i] = fmt.Sprint("chunk ", i)
	}
	saveSnapshot(t, s, first, many...)
	saveSnapshot(t, s, second, "one", "", "three")
	hasSnapshot(t, s, first, many...)
	hasSnapshot(t, s, second, "one", "", "three")
	saveSnapshot(t, s, first, many...)
	hasSnapshot(t, s, first, many...)
	hasSnapshot(t, s, partition.SnapshotName{Epoch: 2, Seq: 10})
}

func tornSnapshot(t *testing.T, s partition.Snapshots) {
	torn := partition.SnapshotName{Epoch: 3, Seq: 7}
	saveSnapshot(t, s, torn, "one", "two")
	if chunks, err := s.Load(t.Context(), torn, 3); !errors.Is(err, partition.ErrNoSnapshot) {
		t.Errorf("two of three chunks are loaded as %q, %v", chunks, err)
	}
	saveSnapshot(t, s, torn, "one", "two", "three")
	hasSnapshot(t, s, torn, "one", "two", "three")
}

func olderSnapshots(t *testing.T, s partition.Snapshots) {
	ctx := t.Context()
	names := []partition.SnapshotName{{Epoch: 1, Seq: 90}, {Epoch: 2, Seq: 8}, {Epoch: 2, Seq: 9}, {Epoch: 10, Seq: 2}}
	for _, name := range names {
		saveSnapshot(t, s, name, "a", "b")
	}
	testkit.NoError(t, s.Forget(ctx))
	for _, name := range names {
		hasSnapshot(t, s, name, "a", "b")
	}
	testkit.NoError(t, s.Forget(ctx, names[3], names[1]))
	for i, kept := range []bool{false, true, false, true} {
		if kept {
			hasSnapshot(t, s, names[i], "a", "b")
		} else {
			hasSnapshot(t, s, names[i])
		}
	}
	saveSnapshot(t, s, names[0], "again") // it can be saved again
	hasSnapshot(t, s, names[0], "again")
	testkit.NoError(t, s.Forget(ctx, names[3]))
	testkit.NoError(t, s.Forget(ctx, names[3]))
	hasSnapshot(t, s, names[0])
	hasSnapshot(t, s, names[3], "a", "b")
}

// newerSnapshots: I12: an owner that was replaced deletes what its successors do not need, and nothing of theirs.
func newerSnapshots(t *testing.T, s partition.Snapshots) {
	old, own, next := partition.SnapshotName{Epoch: 4, Seq: 20}, partition.SnapshotName{Epoch: 5, Seq: 30}, partition.SnapshotName{Epoch: 6, Seq: 40}
	for _, name := range []partition.SnapshotName{old, own, next} {
		saveSnapshot(t, s, name, "a", "b")
	}
	testkit.NoError(t, s.Forget(t.Context(), own))
	hasSnapshot(t, s, old)
	hasSnapshot(t, s, own, "a", "b")
	hasSnapshot(t, s, next, "a", "b")
}

// largeChunks are a snapshot of 64 MiB, whose chunks differ.
func largeChunks() [][]byte {
	chunks := make([][]byte, 128)
	for i := range chunks {
		chunks[i] = bytes.Repeat([]byte{byte(i), byte(i >> 3), 0x5a, byte(255 - i)}, 128<<10)
	}
	return chunks
}

func largeSnapshot(t *testing.T, s partition.Snapshots) {
	name, chunks := partition.SnapshotName{Epoch: 7, Seq: 1 << 40}, largeChunks()
	testkit.NoError(t, s.Save(t.Context(), name, chunks))
	got, err := s.Load(t.Context(), name, len(chunks))
	testkit.NoError(t, err)
	if !slices.EqualFunc(got, chunks, bytes.Equal) {
		t.Error("what is loaded differs from what was saved")
	}
}
