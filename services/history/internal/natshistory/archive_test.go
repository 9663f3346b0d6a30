package natshistory

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/archive"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
	"github.com/yardmaster-io/yardmaster/shared/turns"
)

// serverPorts is a server with one partition, the owner's connection to it, and a
// reader with its own.
func serverPorts(tb testing.TB) (owner Config, reader *Reader) {
	tb.Helper()
	return serverPortsAt(tb, natskit.Run(tb))
}

func serverPortsAt(tb testing.TB, srv *natskit.Server) (owner Config, reader *Reader) {
	tb.Helper()
	config := func() Config {
		nc := srv.Connect(tb)
		js, err := jetstream.New(nc)
		testkit.NoError(tb, err)
		return Config{NATS: nc, JetStream: js, LogVersion: version1, Log: slog.New(slog.DiscardHandler)}
	}
	owner = config()
	testkit.NoError(tb, provision.Apply(tb.Context(), owner.JetStream, topology.Partitioning{History: 1, Matching: 1}, provision.Options{}))
	reader, err := NewReader(config())
	testkit.NoError(tb, err)
	tb.Cleanup(func() {
		testkit.Check(tb, reader.Close(context.WithoutCancel(tb.Context())))
	})
	return owner, reader
}

func TestArchive(t *testing.T) {
	t.Parallel()
	exerciseArchive(t, func(t *testing.T) archivePorts {
		owner, reader := serverPorts(t)
		return archivePorts{
			Archive: func() partition.Archive {
				a := NewArchive(owner, suiteRetention)
				a.indexAfter.Messages, a.indexAfter.Bytes = 64, 1<<20 // the index comes into being soon
				return a
			},
			Reader: reader,
			Submit: func(lane ids.Lane, batch []byte) uint64 {
				return store(t, owner.NATS, topology.SubmitShared(0, lane), batch)
			},
			SubmitOf: func(at replica.Queue, batch []byte) uint64 {
				return store(t, owner.NATS, topology.Submit(0, at.Lane, at.Place.Domain(), cmp.Or(at.Place.Tasklist(), "mail")), batch)
			},
			Dead: func(t *testing.T) (all []*logv1.Record) {
				err := natslog.ReadAll(t.Context(), owner.JetStream, natslog.ReadConfig{Stream: topology.DeadLetterStream}, func(r natslog.Record) error {
					var b logv1.Batch
					err := b.UnmarshalVT(r.Data)
					all = append(all, b.Tasks...)
					return err
				})
				testkit.NoError(t, err)
				return all
			},
		}
	})
}

// R5: what no message can hold is reported by its id, and does not hold up others forever.
func TestTooLargeToFile(t *testing.T) {
	t.Parallel()
	owner, _ := serverPorts(t)
	a := NewArchive(owner, suiteRetention)
	fits, huge := finishedTask("shop", time.Now(), 1), finishedTask("shop", time.Now(), 2)
	huge.Payload.Data = make([]byte, 1<<20)
	_, err := a.File(t.Context(), []*taskstate.Task{fits, huge}, 0)
	for what, err := range map[string]error{"file": err, "bury": a.StoreDead(t.Context(), []*taskstate.Task{huge, fits})} {
		var large *partition.RefusedTaskError
		if !errors.As(err, &large) || large.Task != huge.ID || (large.KeepS > 0) != (what == "file") {
			t.Errorf("%s: %v", what, err)
		}
	}
	testkit.Check(t, testkit.Err(a.File(t.Context(), []*taskstate.Task{fits}, 0)))
	last, err := natslog.LastSeq(t.Context(), owner.JetStream, topology.DeadLetterStream)
	if err != nil || last != 1 {
		t.Errorf("%d letters, want that of the one that fits: %v", last, err)
	}
}

// Where a stream has replicas, the leader is asked too, and the same is found.
func TestReaderAsksTheLeader(t *testing.T) {
	t.Parallel()
	owner, reader := serverPorts(t)
	reader.replicas = replicas{many: true, asked: time.Now().Add(time.Hour)}
	a, last, filed := NewArchive(owner, suiteRetention), uint64(0), 0
	a.indexAfter.Messages = 64
	for i := range uint64(20) {
		var tasks []*taskstate.Task
		for k := range 1 + 300*(i%3) {
			tasks = append(tasks, finishedTask("shop", time.Now(), i<<20+k))
		}
		var err error
		last, err = a.File(t.Context(), tasks, last)
		testkit.NoError(t, err)
		none := ids.NewTaskID(tasks[0].ID.Time(), 0, 1<<40+i)
		found, err := reader.Archived(t.Context(), searches("shop", tasks[0].ID, none))
		if err != nil || found[0] == nil || found[1] != nil {
			t.Fatalf("%v, %v", found, err)
		}
		filed += len(tasks)
		if got := listAll(t, reader, "shop", 1000, anyTask); len(got) != filed {
			t.Fatalf("%d of %d tasks are listed", len(got), filed)
		}
	}
}

// A replica that lacks a page, or the tail's end, is noticed by what the leader has.
func TestLaggingReplicaIsNoticed(t *testing.T) {
	t.Parallel()
	owner, reader := serverPorts(t)
	a := NewArchive(owner, suiteRetention)
	testkit.NoError(t, testkit.Err(a.File(t.Context(), []*taskstate.Task{finishedTask("shop", time.Now(), 1)}, 0)))
	stream, tail := topology.ArchiveStream(0), spanRead{subject: topology.ArchiveTasks(0), from: 1}
	for _, c := range []struct {
		what string
		have natslog.Answer
		lags bool
	}{
		{"nothing", natslog.Answer{}, true},
		{"all", natslog.Answer{Records: []natslog.Record{{Seq: 1}}}, false},
		{"a part", natslog.Answer{Records: []natslog.Record{{Seq: 1}}, More: true}, true},
	} {
		if got, err := reader.lags(t.Context(), stream, tail, c.have); err != nil || got != c.lags {
			t.Errorf("it has %s: lags %v, %v", c.what, got, err)
		}
	}
}

// I14: lists come in turn, and so many of a domain wait at most. Another domain's wait for no more than one of them, and
// one whose caller has left is not read.
func TestI14_ListsTakeTurns(t *testing.T) {
	t.Parallel()
	owner, reader := serverPorts(t)
	fileAll(t, NewArchive(owner, suiteRetention), many(1, shop, func(int) time.Time { return time.Now() }))
	const more = 9
	held, ended := make(chan struct{}), make(chan error, listsWaiting+1+more)
	reads := make(chan struct{}, cap(ended))
	for range cap(ended) {
		go func() {
			_, err := reader.Finished(t.Context(), "shop", ids.Last, 1, func(*logv1.Record) bool { reads <- struct{}{}; <-held; return true })
			ended <- err
		}()
	}
	for range more {
		if err := <-ended; !errors.Is(err, turns.ErrBusy) {
			t.Errorf("one too many: %v", err)
		}
	}
	<-reads // and all others wait for it
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	if _, err := reader.Finished(ctx, "quiet", ids.Last, 1, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("another domain's, whose caller leaves: %v", err)
	}
	close(held)
	for range listsWaiting + 1 {
		testkit.Check(t, <-ended)
	}
}

// I14: a list that reads many messages and finds nothing lets those of others in between.
func TestI14_ALongListIsReadInSteps(t *testing.T) {
	t.Parallel()
	owner, reader := serverPorts(t)
	inLine := make(chan struct{})
	joins := sync.OnceFunc(func() { close(inLine) })
	reader.lists = turns.NewLine(turns.Config{Most: 1, Weight: func(domain string) int {
		if domain == "quiet" {
			joins()
		}
		return 1
	}})
	large := many(4*listMsgs, shop, func(int) time.Time { return time.Now() })
	for _, task := range large {
		task.Payload.Data = make([]byte, archive.MessageBytes)
	}
	a := NewArchive(owner, suiteRetention)
	fileAll(t, a, large)
	fileAll(t, a, many(1, func(int) string { return "quiet" }, func(int) time.Time { return time.Now() }))
	quiet, before := make(chan struct{}), 0
	var asking sync.WaitGroup
	ask := sync.OnceFunc(func() {
		asking.Go(func() {
			_, err := reader.Finished(t.Context(), "quiet", ids.Last, 1, func(*logv1.Record) bool { close(quiet); return true })
			testkit.Check(t, err)
		})
		<-inLine
	})
	_, err := reader.Finished(t.Context(), "shop", ids.Last, 1, func(*logv1.Record) bool {
		ask()
		select {
		case <-quiet:
		default:
			before++
		}
		return false
	})
	testkit.NoError(t, err)
	asking.Wait()
	if before == 0 || before > 3*listMsgs {
		t.Errorf("%d of %d tasks were read before another domain's list", before, len(large))
	}
}

// I14: of thousands of tasks that one domain looks for, only those under way come before the one of another domain.
func TestI14_LookupsTakeTurns(t *testing.T) {
	t.Parallel()
	owner, reader := serverPorts(t)
	fileAll(t, NewArchive(owner, suiteRetention), many(100, shop, func(int) time.Time { return time.Now() }))
	absent := idsOf(many(10_000, shop, func(i int) time.Time { return time.Now().Add(-time.Duration(i) * time.Second) }))
	flood := make(chan error, 1)
	go func() { flood <- testkit.Err(reader.Archived(t.Context(), searches("flood", absent...))) }()
	const few = 50
	for range few {
		testkit.NoError(t, testkit.Err(reader.Archived(t.Context(), searches("shop", absent[0]))))
	}
	select {
	case err := <-flood:
		t.Fatalf("the flood was over before %d lookups that came one after the other: %v", few, err)
	default:
	}
	testkit.NoError(t, <-flood)
}
