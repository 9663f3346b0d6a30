package firing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/natstimer"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// TestMain runs more tests side by side than there are cores: most of the time they
// wait for servers and for the disk.
func TestMain(m *testing.M) {
	testkit.SideBySide(6)
	natskit.VerifyTestMain(m)
}

// soon bounds a broken run; nothing is expected to take this long.
const soon = 60 * time.Second

// notSoon is when tasks are due that are to wait still when a test has done something to them, on a slow
// machine too.
const notSoon = 5 * time.Second

// world is a real server with one timer partition, and the hand of history:
// it parks tasks and reads back what was fired.
type world struct {
	tb     testing.TB
	server *natskit.Server
	nc     *nats.Conn
	js     jetstream.JetStream
	made   uint64
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{tb: tb, server: natskit.Run(tb)}
	w.nc = w.server.Connect(tb)
	var err error
	w.js, err = jetstream.New(w.nc)
	testkit.NoError(tb, err)
	testkit.NoError(tb, provision.Apply(tb.Context(), w.js, topology.Partitioning{History: 1, Matching: 1}, provision.Options{}))
	return w
}

// park writes n tasks of one due time in one message, and returns them.
func (w *world) park(n int, dueAt time.Time, change ...func(i int, r *logv1.Record)) []*logv1.Record {
	w.tb.Helper()
	all := make([]*logv1.Record, n)
	for i := range all {
		w.made++
		id := ids.NewTaskID(time.UnixMilli(int64(w.made)), 0, w.made)
		all[i] = &logv1.Record{
			Id: id[:], Domain: "shop", Tasklist: "mail", Type: "email.send", Priority: 3, Payload: []byte(strconv.Itoa(i)),
			DueAtMs: dueAt.UnixMilli(), Parkings: 1, Steps: []*logv1.Step{{Kind: 1, AtMs: 5}, {Kind: 2, AtMs: 6}},
		}
		for _, c := range change {
			c(i, all[i])
		}
	}
	w.write(all...)
	return all
}

// write appends records of one bucket as they are.
func (w *world) write(all ...*logv1.Record) {
	w.tb.Helper()
	w.writeAs(0, all...)
}

// writeAs is write by the history owner of an epoch.
func (w *world) writeAs(epoch uint64, all ...*logv1.Record) {
	w.tb.Helper()
	w.append(topology.Timer(0, topology.TimerBucket(all[0].DueAtMs)), &logv1.Batch{Tasks: all, Epoch: epoch})
}

// fence has a history owner of an epoch take over.
func (w *world) fence(epoch uint64) {
	w.tb.Helper()
	w.append(topology.TimerFence(0), &logv1.Batch{Fence: true, Epoch: epoch})
}

func (w *world) append(subject string, b *logv1.Batch) {
	w.tb.Helper()
	w.raw(subject, testkit.Encoded(w.tb, b))
}

// raw appends a message as it is.
func (w *world) raw(subject string, data []byte) {
	w.tb.Helper()
	if _, _, err := natslog.Append(w.tb.Context(), w.nc, natslog.Msg{Subject: subject, Data: data}); err != nil {
		w.tb.Fatal(err)
	}
}

// fired is one record on its way back, and where it was filed.
type fired struct {
	record  *logv1.Record
	subject string
	at      time.Time
}

// fired reads back all that was ever fired, by id and parkings.
func (w *world) fired() map[string][]fired {
	w.tb.Helper()
	all := map[string][]fired{}
	err := natslog.ReadAll(w.tb.Context(), w.js, natslog.ReadConfig{Stream: topology.HistoryStream(0)}, func(r natslog.Record) error {
		if r.Subject == topology.Fired(0) {
			return nil
		}
		var b logv1.Batch
		if err := b.UnmarshalVT(r.Data); err != nil {
			return err
		}
		for _, t := range b.Tasks {
			all[key(t)] = append(all[key(t)], fired{t, r.Subject, r.Time})
		}
		return nil
	})
	testkit.NoError(w.tb, err)
	return all
}

func key(r *logv1.Record) string {
	return ids.TaskID(r.Id).String() + "/" + strconv.Itoa(int(r.Parkings))
}

// eachOnce waits until all of want was fired and checks that nothing was twice.
func (w *world) eachOnce(want []*logv1.Record) map[string][]fired {
	w.tb.Helper()
	var got map[string][]fired
	testkit.Eventually(w.tb, soon, func() error {
		got = w.fired()
		if len(got) < len(want) {
			return fmt.Errorf("%d of %d fired", len(got), len(want))
		}
		return nil
	})
	for _, r := range want {
		testkit.MustEqual(w.tb, fmt.Sprintf("%s fired", key(r)), len(got[key(r)]), 1)
	}
	if len(got) != len(want) {
		w.tb.Fatalf("%d tasks fired, %d wanted", len(got), len(want))
	}
	return got
}

// checkpoint says that history remembers what it parked up to seq.
func (w *world) checkpoint(seq uint64) {
	w.tb.Helper()
	kv, err := w.js.KeyValue(w.tb.Context(), topology.CheckpointsBucket)
	testkit.NoError(w.tb, err)
	data := testkit.Encoded(w.tb, &logv1.Checkpoint{Snapshot: &logv1.SnapshotRef{TimerSeq: seq}})
	testkit.NoError(w.tb, testkit.Err(kv.Put(w.tb.Context(), topology.HistoryCheckpoint(0), data)))
}

// stored counts the messages left in the timer store.
func (w *world) stored() uint64 {
	w.tb.Helper()
	s, err := w.js.Stream(w.tb.Context(), topology.TimerStream(0))
	testkit.NoError(w.tb, err)
	return s.CachedInfo().State.Msgs
}

// left waits until n messages are left in the timer store.
func (w *world) left(n uint64) {
	w.tb.Helper()
	testkit.Eventually(w.tb, soon, func() error {
		if got := w.stored(); got != n {
			return fmt.Errorf("%d messages left, want %d", got, n)
		}
		return nil
	})
}

// running is one owner at work.
type running struct {
	*firing.Owner
	stop    func()
	ended   chan error
	fired   atomic.Int64
	waiting atomic.Int64
	// outdated counts void tasks of replaced history owners.
	outdated atomic.Int64
}

// own starts an owner. It is stopped with the test, if not before.
func (w *world) own(change ...func(*firing.Deps)) *running {
	w.tb.Helper()
	r := w.owner(change...)
	testkit.NoError(w.tb, r.Load(w.tb.Context()))
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.tb.Context()))
	go func() { r.ended <- r.Run(ctx) }()
	stopped := false
	r.stop = func() {
		cancel()
		if stopped {
			return
		}
		stopped = true
		testkit.Check(w.tb, <-r.ended)
	}
	w.tb.Cleanup(r.stop)
	return r
}

// owner makes an owner that is not started.
func (w *world) owner(change ...func(*firing.Deps)) *running {
	w.tb.Helper()
	r := &running{ended: make(chan error, 1)}
	d := w.deps()
	d.Gauges.Waiting = func(n, _ int) { r.waiting.Store(int64(n)) }
	d.Gauges.Outdated = func(n int) { r.outdated.Add(int64(n)) }
	d.Gauges.Fired = func(n int, _ time.Duration) { r.fired.Add(int64(n)) }
	for _, c := range change {
		c(&d)
	}
	r.Owner = firing.New(d)
	return r
}

// serve keeps an owner running until ctx ends, as package ownership does: who is
// overtaken is started again. Owners are made by the test's own goroutine.
func serve(ctx context.Context, owners <-chan *running) error {
	for ctx.Err() == nil {
		r, ok := <-owners
		if !ok {
			return errors.New("overtaken again and again")
		}
		if err := r.Load(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if err := r.Run(ctx); err != nil && !errors.Is(err, firing.ErrOvertaken) {
			return err
		}
	}
	return nil
}

// deps of an owner that is not started.
func (w *world) deps() firing.Deps {
	w.tb.Helper()
	log := slog.New(slog.DiscardHandler)
	store, err := natstimer.OpenStore(w.tb.Context(), w.js, 0, log)
	testkit.NoError(w.tb, err)
	history, err := natstimer.OpenLog(w.tb.Context(), w.js, 0, func() uint32 { return 1 })
	testkit.NoError(w.tb, err)
	config := firing.DefaultConfig()
	config.EarlyFor = soon // no call gives up on a slow machine
	return firing.Deps{
		Store: store, Pruner: store, Log: history, Config: config, Logger: log, Now: time.Now,
		Quarantine: store.SetApart, LogVersion: func() uint32 { return 1 },
		Gauges: firing.Gauges{
			Waiting: func(int, int) {}, Next: func(int64) {}, Loaded: func(time.Duration) {}, Fired: func(int, time.Duration) {}, Appended: func(time.Duration) {}, Early: func(int) {}, Outdated: func(int) {},
		},
	}
}

// deafStore hears of nothing that is written after the load.
type deafStore struct{ firing.Store }

func (deafStore) Read(ctx context.Context, _ uint64, _ func(firing.Stored) error) error {
	<-ctx.Done()
	return nil
}
