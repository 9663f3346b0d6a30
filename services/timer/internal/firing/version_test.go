package firing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/quarantine"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// newer is the log version of the next program.
var newer = logversion.Newest() + 1

// TestI13AnUnknownVersionEndsTheOwner: in a message met at the load or later, in the
// cursor, in history's checkpoint. Nothing of the store is skipped or fired. R21.
func TestI13AnUnknownVersionEndsTheOwner(t *testing.T) {
	t.Parallel()
	bucket := topology.Timer(0, topology.TimerBucket(time.Now().UnixMilli()))
	message := func(w *world) { w.raw(bucket, testkit.Encoded(t, &logv1.Batch{LogVersion: newer})) }
	cursor := func(w *world) { w.raw(topology.Fired(0), testkit.Encoded(t, &logv1.Cursor{LogVersion: newer})) }
	checkpoint := func(w *world) {
		kv, err := w.js.KeyValue(t.Context(), topology.CheckpointsBucket)
		if err == nil {
			_, err = kv.Put(t.Context(), topology.HistoryCheckpoint(0), testkit.Encoded(t, &logv1.Checkpoint{LogVersion: newer}))
		}
		testkit.NoError(t, err)
	}
	quick := func(d *firing.Deps) { d.Config.PurgeEvery = 10 * time.Millisecond }
	for name, before := range map[string]func(*world){"message": message, "cursor": cursor} {
		t.Run(name+" at the load", func(t *testing.T) {
			w := newWorld(t)
			w.park(3, time.Now())
			before(w)
			var unknown *logversion.UnknownError
			if err := w.owner().Load(t.Context()); !errors.As(err, &unknown) {
				t.Errorf("%v", err)
			}
		})
	}
	for name, after := range map[string]func(*world){"message": message, "cursor": cursor, "checkpoint": checkpoint} {
		t.Run(name+" later", func(t *testing.T) {
			w := newWorld(t)
			r := w.owner(quick)
			testkit.NoError(t, r.Load(t.Context()))
			ended := make(chan error, 1)
			go func() { ended <- r.Run(t.Context()) }()
			after(w)
			parked := w.park(1, time.Now()) // makes it meet the cursor
			var unknown *logversion.UnknownError
			select {
			case err := <-ended:
				if !errors.As(err, &unknown) {
					t.Errorf("%v", err)
				}
			case <-time.After(soon):
				t.Fatal("the owner goes on")
			}
			if name == "message" && len(w.fired()[key(parked[0])]) > 0 {
				t.Error("what lies behind the unknown message was fired")
			}
			testkit.Check(t, testkit.Err(natslog.Get(t.Context(), w.js, topology.TimerStream(0), 1)))
		})
	}
}

// TestWhatIsWrittenCarriesTheClustersVersion. R21.
func TestWhatIsWrittenCarriesTheClustersVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	later, now := w.park(1, time.Now().Add(time.Hour)), w.park(2, time.Now())
	r := w.own(func(d *firing.Deps) {
		d.LogVersion = func() uint32 { return newer }
		d.Store = deafStore{d.Store} // it could not read its own early message
		d.Config.EarlyFor = time.Second
	})
	w.eachOnce(now)
	fireEarly(t, r, later)
	last, err := natslog.LastForSubject(t.Context(), w.js, topology.TimerStream(0), topology.Timer(0, topology.TimerBucket(later[0].DueAtMs)))
	testkit.NoError(t, err)
	var early logv1.Batch
	if err := early.UnmarshalVT(last.Data); err != nil || early.LogVersion != newer || len(early.Early) != 1 {
		t.Errorf("early message %v: %v", &early, err)
	}
	err = natslog.ReadAll(t.Context(), w.js, natslog.ReadConfig{Stream: topology.HistoryStream(0)}, func(r natslog.Record) error {
		var b logv1.Batch
		if r.Subject == topology.Fired(0) {
			return nil
		}
		if err := b.UnmarshalVT(r.Data); err != nil || b.LogVersion != newer {
			t.Errorf("%s carries %d: %v", r.Subject, b.LogVersion, err)
		}
		return nil
	})
	testkit.Check(t, err)
}

// TestMalformedMessagesGoIntoQuarantine, whole and once, and the good records of
// their message go on. R19.
func TestMalformedMessagesGoIntoQuarantine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dueAt := time.Now()
	bucket := topology.Timer(0, topology.TimerBucket(dueAt.UnixMilli()))
	good := w.park(2, dueAt)
	noBatch := []byte{0x0a, 9, 1}
	w.raw(bucket, noBatch)
	w.made++
	id := ids.NewTaskID(time.UnixMilli(int64(w.made)), 0, w.made)
	mixed := []*logv1.Record{{Id: []byte("short"), Domain: "shop", Tasklist: "mail", DueAtMs: dueAt.UnixMilli()}, {
		Id: id[:], Domain: "shop", Tasklist: "mail", Type: "t", Priority: 3, DueAtMs: dueAt.UnixMilli(), Parkings: 1,
	}, {Id: make([]byte, len(id)), Domain: "shop", Tasklist: "mail", Type: "t", Priority: 3, DueAtMs: dueAt.Add(-time.Minute).UnixMilli(), Parkings: 1}}
	mixed[2].Id[0] = 1
	w.write(mixed...)
	good = append(good, mixed[1])
	w.raw("yard.timer.0.no-bucket", []byte("lost its way"))
	r := w.own()
	w.eachOnce(good)
	r.stop()
	w.own() // who takes over meets them again
	late := w.park(1, dueAt)
	w.eachOnce(append(good, late...))

	var set []quarantine.Item
	err := quarantine.List(t.Context(), w.js, quarantine.Filter{Service: "timer", Partition: 0}, func(i quarantine.Item) error {
		set = append(set, i)
		return nil
	})
	if err != nil || len(set) != 3 {
		t.Fatalf("%d in quarantine: %v", len(set), err)
	}
	for i, want := range []string{string(noBatch), string(testkit.Encoded(t, &logv1.Batch{Tasks: mixed})), "lost its way"} {
		if string(set[i].Data) != want || set[i].Reason == "" || set[i].OriginSeq != uint64(i+2) || set[i].OriginStream != topology.TimerStream(0) {
			t.Errorf("%+v", set[i])
		}
	}
}

// TestQuarantineWithoutAnswer: a try ends, so that there is another one. A subscriber that
// keeps silent stands for a stream without a leader.
func TestQuarantineWithoutAnswer(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for tasks to be due, or for answers that do not come")
	w := newWorld(t)
	testkit.NoError(t, w.js.DeleteStream(t.Context(), topology.QuarantineStream))
	testkit.NoError(t, testkit.Err(w.nc.Subscribe(topology.QuarantineFilter("", -1), func(*nats.Msg) {})))
	err := w.deps().Quarantine(t.Context(), firing.Stored{Data: []byte{0xff}}, "broken")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want that the deadline is exceeded", err)
	}
}

// TestQuarantineIsWaitedFor: while it cannot be reached nothing is passed over.
func TestQuarantineIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dueAt := time.Now()
	w.raw(topology.Timer(0, topology.TimerBucket(dueAt.UnixMilli())), []byte{0xff})
	testkit.NoError(t, w.js.DeleteStream(t.Context(), topology.QuarantineStream))
	tried := make(chan struct{}, 1)
	r := w.owner(func(d *firing.Deps) {
		put := d.Quarantine
		d.Quarantine = func(ctx context.Context, m firing.Stored, reason string) error {
			err := put(ctx, m, reason)
			if err != nil {
				select {
				case tried <- struct{}{}:
				default:
				}
			}
			return err
		}
	})
	loaded := make(chan error, 1)
	go func() { loaded <- r.Load(t.Context()) }()
	<-tried
	select {
	case err := <-loaded:
		t.Fatalf("loaded without quarantine: %v", err)
	default:
	}
	testkit.NoError(t, testkit.Err(w.js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: topology.QuarantineStream, Subjects: []string{topology.QuarantineFilter("", -1)}, AllowAtomicPublish: true,
	})))
	testkit.Check(t, <-loaded)
}
