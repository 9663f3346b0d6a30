package backup_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/backup"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

func TestMain(m *testing.M) { natskit.VerifyTestMain(m) }

// within bounds what takes a moment in a healthy run.
const within = time.Minute

var parts = topology.Partitioning{History: 1, Matching: 1}

// events is how many messages the log has had.
const events = 60

// none is for who needs no progress.
func none(backup.Stream) {}

// atRest is a cluster without services, that has stored something in each kind of stream.
func atRest(t *testing.T) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc := natskit.Run(t).Connect(t)
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	testkit.NoError(t, provision.Apply(t.Context(), js, parts, provision.Options{}))
	noise := rand.New(rand.NewChaCha8([32]byte{}))
	for range events {
		data := make([]byte, 16<<10) // no compression makes one chunk of them
		for i := range data {
			data[i] = byte(noise.Uint32())
		}
		publish(t, js, topology.Event(0), string(data))
	}
	history, err := js.Stream(t.Context(), topology.HistoryStream(0))
	testkit.NoError(t, err)
	testkit.NoError(t, history.Purge(t.Context(), jetstream.WithPurgeSequence(10)))
	publish(t, js, topology.Timer(0, 7), "waits")
	publish(t, js, topology.Timer(0, 8), "waits too")
	timer, err := js.Stream(t.Context(), topology.TimerStream(0))
	testkit.NoError(t, err)
	testkit.NoError(t, timer.DeleteMsg(t.Context(), 2)) // the last sequence has no message
	publish(t, js, topology.Snapshot(0, 1, 1, 0), "state")
	publish(t, js, topology.BucketSubject(topology.CheckpointsBucket, topology.HistoryCheckpoint(0)), "checkpoint")
	return nc, js
}

func publish(t *testing.T, js jetstream.JetStream, subject, text string) {
	t.Helper()
	testkit.NoError(t, testkit.Err(js.Publish(t.Context(), subject, []byte(text))))
}

// contents are the messages of all streams that are stored, and where each stream ends.
func contents(t *testing.T, js jetstream.JetStream) (all []string) {
	t.Helper()
	for _, name := range topology.Stored(parts) {
		stream, err := js.Stream(t.Context(), name)
		testkit.NoError(t, err)
		state := stream.CachedInfo().State
		first := max(state.FirstSeq, 1) // 0: it never had a message
		all = append(all, fmt.Sprint(name, first, state.LastSeq, state.Msgs))
		for seq := first; seq <= state.LastSeq; seq++ {
			msg, err := stream.GetMsg(t.Context(), seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			testkit.NoError(t, err)
			all = append(all, fmt.Sprint(seq, msg.Subject, msg.Header, msg.Time, sha256.Sum256(msg.Data)))
		}
	}
	return all
}

// other is a NATS without streams.
func other(t *testing.T) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc := natskit.Run(t).Connect(t)
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	return nc, js
}

func restore(t *testing.T, nc *nats.Conn, dir string) error {
	t.Helper()
	return testkit.Err(backup.Restore(t.Context(), nc, dir, 1, slog.New(slog.DiscardHandler), none))
}

// refused fails the test unless err says why.
func refused(t *testing.T, err error, why ...string) {
	t.Helper()
	for _, text := range why {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
}

// L19: another NATS has every message, at its sequence and with its time, and the hint streams.
func TestARestoredClusterHasEveryMessage(t *testing.T) {
	from, before := atRest(t)
	dir := filepath.Join(t.TempDir(), "monday")
	var copied []string
	m, err := backup.Create(t.Context(), from, dir, func(s backup.Stream) { copied = append(copied, s.Name) })
	testkit.NoError(t, err)
	if !slices.Equal(copied, topology.Stored(parts)) || len(m.Streams) != len(copied) || m.Partitioning != parts {
		t.Errorf("copied %v: %+v", copied, m)
	}
	verified, err := backup.Verify(dir, none)
	testkit.NoError(t, err)
	testkit.Equal(t, "the manifest", verified.Streams[0].LastSeq, uint64(events))

	alone, _ := other(t)
	_, err = backup.Restore(t.Context(), alone, dir, 3, slog.New(slog.DiscardHandler), none)
	refused(t, err, "replicas > 1", topology.HistoryStream(0), "repeat") // one server has no three replicas
	to, after := other(t)
	testkit.NoError(t, restore(t, to, dir))
	want, got := contents(t, before), contents(t, after)
	testkit.Equal(t, "messages", len(got), len(want))
	for i := range min(len(want), len(got)) {
		testkit.Equal(t, "a stream or message", got[i], want[i])
	}
	testkit.NoError(t, testkit.Err(after.Stream(t.Context(), topology.MatchingStream(0))))
	refused(t, restore(t, to, dir), "without the streams of a cluster", topology.HistoryStream(0), topology.BucketStream(topology.ConfigBucket))
}

// A service that lives is named, before anything is written.
func TestABackupIsRefusedWhileAServiceLives(t *testing.T) {
	nc, _ := atRest(t)
	to, _ := other(t)
	dir, whole := filepath.Join(t.TempDir(), "dir"), filepath.Join(t.TempDir(), "whole")
	testkit.NoError(t, testkit.Err(backup.Create(t.Context(), nc, whole, none)))
	lives(t, nc)
	lives(t, to)
	refused(t, testkit.Err(backup.Create(t.Context(), nc, dir, none)), "not at rest", "timer node-7")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder: %v", err)
	}
	refused(t, restore(t, to, whole), "not at rest", "timer node-7")
}

// lives has a process of a service live until the test ends.
func lives(t *testing.T, nc *nats.Conn) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	p := &process.Presence{Service: "timer", Node: "node-7", NATS: nc, Health: telemetry.NewHealth("", nil), Log: slog.New(slog.DiscardHandler)}
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		testkit.Check(t, <-ended)
	})
	testkit.Eventually(t, within, func() error { return testkit.Err(nc.Request(topology.Ping("timer"), nil, within)) })
}

// What changes during the copy is found, also in a stream that was copied before; so is a service that comes up.
func TestABackupIsNoneIfSomethingChangesMeanwhile(t *testing.T) {
	for what, change := range map[string]struct {
		do  func(t *testing.T, nc *nats.Conn, js jetstream.JetStream)
		why string
	}{
		"a message is stored": {func(t *testing.T, _ *nats.Conn, js jetstream.JetStream) {
			publish(t, js, topology.Event(0), "late")
		}, topology.HistoryStream(0)},
		"a message is deleted": {func(t *testing.T, _ *nats.Conn, js jetstream.JetStream) {
			stream, err := js.Stream(t.Context(), topology.TimerStream(0))
			testkit.NoError(t, err)
			testkit.NoError(t, stream.DeleteMsg(t.Context(), 1))
		}, topology.TimerStream(0)},
		"a service comes up": {func(t *testing.T, nc *nats.Conn, _ jetstream.JetStream) { lives(t, nc) }, "timer node-7"},
	} {
		t.Run(what, func(t *testing.T) {
			nc, js := atRest(t)
			dir := t.TempDir()
			last := topology.BucketStream(topology.ConfigBucket)
			_, err := backup.Create(t.Context(), nc, dir, func(s backup.Stream) {
				if s.Name == last {
					change.do(t, nc, js)
				}
			})
			refused(t, err, change.why)
			refused(t, testkit.Err(backup.Verify(dir, none)), "is no backup")
		})
	}
}

// A copy that ends early is no backup, whichever stream was the last one.
func TestACopyThatEndsEarlyIsNoBackup(t *testing.T) {
	nc, _ := atRest(t)
	for _, name := range topology.Stored(parts) {
		dir := t.TempDir()
		endsAt(t, name, func(ctx context.Context, copied func(backup.Stream)) error {
			return testkit.Err(backup.Create(ctx, nc, dir, copied))
		})
		refused(t, testkit.Err(backup.Verify(dir, none)), "is no backup")
		refused(t, testkit.Err(backup.Create(t.Context(), nc, dir, none)), "is not empty")
	}
}

// A restore that ends early has made no cluster.
func TestARestoreThatEndsEarlyMakesNoCluster(t *testing.T) {
	nc, _ := atRest(t)
	dir, stored := t.TempDir(), topology.Stored(parts)
	testkit.NoError(t, testkit.Err(backup.Create(t.Context(), nc, dir, none)))
	to, js := other(t)
	endsAt(t, stored[len(stored)-2], func(ctx context.Context, restored func(backup.Stream)) error {
		return testkit.Err(backup.Restore(ctx, to, dir, 1, slog.New(slog.DiscardHandler), restored))
	})
	if _, err := provision.Partitioning(t.Context(), js); !errors.Is(err, provision.ErrNotProvisioned) {
		t.Errorf("there is a cluster: %v", err)
	}
}

// endsAt interrupts do when it is done with a stream.
func endsAt(t *testing.T, name string, do func(ctx context.Context, each func(backup.Stream)) error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	err := do(ctx, func(s backup.Stream) {
		if s.Name == name {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended at %s: %v", name, err)
	}
}

// Every file is checked, from its first byte to its last, and the list of streams too.
func TestADamagedBackupIsFound(t *testing.T) {
	nc, _ := atRest(t)
	dir := t.TempDir()
	testkit.NoError(t, testkit.Err(backup.Create(t.Context(), nc, dir, none)))
	to, js := other(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.snapshot"))
	if err != nil || len(files) != len(topology.Stored(parts)) {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		testkit.NoError(t, err)
		damaged := slices.Clone(data)
		damaged[len(data)-1] ^= 1
		for what, content := range map[string][]byte{"a flipped byte": damaged, "a truncated file": data[:len(data)-1]} {
			testkit.NoError(t, os.WriteFile(file, content, 0o600))
			t.Log(what)
			refused(t, testkit.Err(backup.Verify(dir, none)), filepath.Base(file)+" is damaged")
			refused(t, restore(t, to, dir), "is damaged")
		}
		testkit.NoError(t, os.WriteFile(file, data, 0o600))
	}
	manifest := filepath.Join(dir, "manifest.json")
	data, err := os.ReadFile(manifest)
	testkit.NoError(t, err)
	for old, changed := range map[string]string{topology.TimerStream(0): "YARD_OTHER", `"form": 1`: `"form": 2`, `"streams"`: `"steams"`} {
		testkit.NoError(t, os.WriteFile(manifest, []byte(strings.Replace(string(data), old, changed, 1)), 0o600))
		if _, err := backup.Verify(dir, none); err == nil {
			t.Errorf("%s is not missed", old)
		}
	}
	testkit.NoError(t, os.WriteFile(manifest, []byte(strings.Replace(string(data), `"log_version": 1`, `"log_version": 99`, 1)), 0o600))
	refused(t, restore(t, to, dir), "99")
	for name := range js.StreamNames(t.Context()).Name() {
		t.Errorf("%s was restored", name)
	}
}

// A stream that has not what the manifest says is an error, though its file is whole.
func TestARestoredStreamIsCompared(t *testing.T) {
	nc, _ := atRest(t)
	dir := t.TempDir()
	testkit.NoError(t, testkit.Err(backup.Create(t.Context(), nc, dir, none)))
	manifest := filepath.Join(dir, "manifest.json")
	data, err := os.ReadFile(manifest)
	testkit.NoError(t, err)
	more := strings.Replace(string(data), fmt.Sprintf(`"last_seq": %d`, events), fmt.Sprintf(`"last_seq": %d`, events+1), 1)
	testkit.NoError(t, os.WriteFile(manifest, []byte(more), 0o600))
	to, _ := other(t)
	refused(t, restore(t, to, dir), fmt.Sprintf("up to %d, the backup has", events))
}

// A NATS without a cluster has nothing to copy.
func TestThereMustBeACluster(t *testing.T) {
	nc, _ := other(t)
	refused(t, testkit.Err(backup.Create(t.Context(), nc, t.TempDir(), none)), "there is no cluster")
}
