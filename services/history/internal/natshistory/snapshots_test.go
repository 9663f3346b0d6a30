package natshistory

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
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
	exerciseSnapshots(t, func(t *testing.T) partition.Snapshots { return snapshots(t) })
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

// L7: the server that sends the chunks may lag and say that it has none, though the leader has stored them: what is loaded is what the leader has.
func TestL7_ASnapshotIsReadAsTheLeaderHasIt(t *testing.T) {
	t.Parallel()
	s, name, chunks := snapshots(t), partition.SnapshotName{Epoch: 1, Seq: 5}, [][]byte{[]byte("a"), []byte("b"), []byte("c")}
	testkit.NoError(t, s.Save(t.Context(), name, chunks))
	var lags atomic.Int64
	lags.Store(3)
	s.JetStream = laggingFor(t, s.NATS, func(call string) bool { return strings.HasPrefix(call, "CONSUMER.MSG.NEXT.") && lags.Add(-1) >= 0 })
	got, err := s.Load(t.Context(), name, len(chunks))
	if err != nil || !slices.EqualFunc(got, chunks, bytes.Equal) || lags.Load() >= 0 {
		t.Errorf("it is loaded as %q, %v", got, err)
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

// I14: on a sealed cluster the user of history may do all that the store does. No other service may write or delete a chunk, and only the
// inspector may read one.
func TestI14_OnlyHistoryWritesSnapshots(t *testing.T) {
	t.Parallel()
	n, roles := topology.Partitioning{History: 1, Matching: 1}, permissions.Services()
	users := []*server.User{{Username: "anyone"}}
	for _, role := range roles {
		may, err := permissions.Of(permissions.User{Role: role}, n)
		testkit.NoError(t, err)
		users = append(users, &server.User{Username: string(role), Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: may.Publish}, Subscribe: &server.SubjectPermission{Allow: may.Subscribe},
		}})
	}
	srv := natskit.Run(t, natskit.WithOptions(func(o *server.Options) { o.Users, o.NoAuthUser = users, "anyone" }))
	js, err := jetstream.New(srv.Connect(t))
	testkit.NoError(t, err)
	testkit.NoError(t, provision.Apply(t.Context(), js, n, provision.Options{}))
	stream := topology.SnapshotStream(0)
	writes := []string{topology.Snapshot(0, 1, 6, 0), "$JS.API.STREAM.PURGE." + stream}
	reads := []string{"$JS.API.STREAM.MSG.GET." + stream, "$JS.API.CONSUMER.CREATE." + stream + ".x.y"}
	for _, role := range roles {
		user := permissions.User{Role: role}
		connect := func() *nats.Conn {
			ignore := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}) // it is read below
			return srv.Connect(t, nats.UserInfo(string(role), ""), nats.CustomInboxPrefix(user.Inbox()), ignore)
		}
		if role == permissions.History {
			storesAll(t, connect())
		}
		may := []string{}
		for _, subject := range slices.Concat(reads, writes) {
			nc := connect()
			testkit.NoError(t, nc.PublishRequest(subject, user.Inbox()+".1", []byte("{}")))
			testkit.NoError(t, nc.Flush()) // the server's refusal comes before its answer
			if err := nc.LastError(); err == nil {
				may = append(may, subject)
			} else if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s publishes %s: %v", role, subject, err)
			}
		}
		want := map[permissions.Role][]string{permissions.History: slices.Concat(reads, writes), permissions.Inspector: reads}[role]
		if !slices.Equal(may, want) {
			t.Errorf("%s may publish %v, want %v", role, may, want)
		}
	}
}

// storesAll does all that a store does.
func storesAll(t *testing.T, nc *nats.Conn) {
	t.Helper()
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	s := NewSnapshots(Config{NATS: nc, JetStream: js, LogVersion: version1, Log: slog.New(slog.DiscardHandler)})
	first, second := partition.SnapshotName{Epoch: 1, Seq: 5}, partition.SnapshotName{Epoch: 1, Seq: 6}
	testkit.NoError(t, s.Save(t.Context(), first, [][]byte{[]byte("a"), []byte("b")}))
	testkit.NoError(t, s.Save(t.Context(), second, [][]byte{[]byte("a"), []byte("b")}))
	testkit.NoError(t, s.Forget(t.Context(), second))
	testkit.NoError(t, testkit.Err(s.Load(t.Context(), second, 2)))
}

// BenchmarkSnapshot saves and loads 64 MiB in 128 chunks, with a sync for each.
func BenchmarkSnapshot(b *testing.B) {
	s, name, chunks := snapshots(b), partition.SnapshotName{Epoch: 1, Seq: 1}, largeChunks()
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
