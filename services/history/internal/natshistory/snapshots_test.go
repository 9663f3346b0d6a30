package natshistory

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/porttest"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// snapshots is a store on a server that syncs each message.
func snapshots(tb testing.TB) Snapshots {
	tb.Helper()
	nc := natskit.Run(tb).Connect(tb)
	js, err := jetstream.New(nc)
	testkit.NoError(tb, err)
	testkit.NoError(tb, provision.Apply(tb.Context(), js, topology.Partitioning{History: 1, Matching: 1}, provision.Options{}))
	return NewSnapshots(Config{NATS: nc, JetStream: js, LogVersion: version1, Log: slog.New(slog.DiscardHandler)})
}

func TestSnapshots(t *testing.T) {
	t.Parallel()
	porttest.ExerciseSnapshots(t, func(t *testing.T) partition.Snapshots { return snapshots(t) })
}

// A chunk that is saved again takes no more space, and a save that is given up on is repeated.
func TestSnapshotsAreSavedAgain(t *testing.T) {
	t.Parallel()
	s, name, chunks := snapshots(t), partition.SnapshotName{Epoch: 1, Seq: 5}, [][]byte{[]byte("a"), []byte("b"), []byte("c")}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Save(ended, name, chunks); !errors.Is(err, context.Canceled) || errors.Is(err, partition.ErrRefused) {
		t.Errorf("a save that was given up on: %v", err)
	}
	for range 3 {
		testkit.NoError(t, s.Save(t.Context(), name, chunks))
	}
	stream, err := s.JetStream.Stream(t.Context(), topology.SnapshotStream(0))
	testkit.NoError(t, err)
	testkit.Equal(t, "stored messages", stream.CachedInfo().State.Msgs, uint64(len(chunks)))
	if err := s.Save(t.Context(), name, [][]byte{make([]byte, s.NATS.MaxPayload()+1)}); !errors.Is(err, partition.ErrRefused) {
		t.Errorf("a chunk that is too large for the server: %v", err)
	}
}

// A snapshot of which a chunk in the middle is lost is none.
func TestASnapshotWithAHole(t *testing.T) {
	t.Parallel()
	s, name := snapshots(t), partition.SnapshotName{Epoch: 1, Seq: 5}
	testkit.NoError(t, s.Save(t.Context(), name, [][]byte{[]byte("a"), []byte("b"), []byte("c")}))
	testkit.NoError(t, testkit.Err(natslog.Purge{Subject: topology.Snapshot(0, 1, 5, 1), Before: 100}.Do(t.Context(), s.JetStream, topology.SnapshotStream(0))))
	if chunks, err := s.Load(t.Context(), name, 3); !errors.Is(err, partition.ErrNoSnapshot) {
		t.Errorf("it is loaded as %q, %v", chunks, err)
	}
}

// BenchmarkSnapshot saves and loads 64 MiB in 128 chunks, with a sync for each.
func BenchmarkSnapshot(b *testing.B) {
	s, name, chunks := snapshots(b), partition.SnapshotName{Epoch: 1, Seq: 1}, porttest.LargeSnapshot()
	b.Run("save", func(b *testing.B) {
		b.SetBytes(64 << 20)
		for b.Loop() {
			name.Seq++
			testkit.NoError(b, s.Save(b.Context(), name, chunks))
			b.StopTimer()
			testkit.NoError(b, s.Forget(b.Context(), name))
			b.StartTimer()
		}
	})
	b.Run("load", func(b *testing.B) {
		b.SetBytes(64 << 20)
		for b.Loop() {
			testkit.NoError(b, testkit.Err(s.Load(b.Context(), name, len(chunks))))
		}
	})
}
