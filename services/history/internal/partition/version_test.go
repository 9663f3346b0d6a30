package partition_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/memhistory"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// line is the owners of one partition, one after the other, on a world in memory.
type line struct {
	t       *testing.T
	world   *memhistory.World
	verdict chan *logv1.VerdictBatch
	change  func(*partition.Deps)
}

func newLine(t *testing.T) *line {
	l := &line{t: t, verdict: make(chan *logv1.VerdictBatch, 64), change: func(*partition.Deps) {}}
	take := func(subject string, data []byte) {
		v := new(logv1.VerdictBatch)
		if subject == "asker" && v.UnmarshalVT(data) == nil {
			l.verdict <- v
		}
	}
	l.world = memhistory.NewWorld(take, func(subject string, data []byte) bool { take(subject, data); return true })
	return l
}

// run starts an owner; stop ends it and returns its error.
func (l *line) run(node string) (o *partition.Owner, ended chan error, stop func() error) {
	w := l.world
	d := partition.Deps{
		Partitioning: topology.Partitioning{History: 1, Matching: 1}, Node: node, Config: partition.DefaultConfig(),
		Log: w, Archive: memhistory.Archive{World: w, Retention: func(*taskstate.Task) time.Duration { return time.Hour }},
		Reader: memhistory.Reader{World: w}, TimerStore: w, Timer: w, Checkpoints: w, Snapshots: memhistory.Snapshots{World: w}, Wire: w,
		Quarantine: func(_ context.Context, item partition.Quarantined) error {
			l.t.Errorf("set apart: %+v", item)
			return nil
		},
		LogVersion: func() uint32 { return 1 }, Tokens: ids.NewTokens([ids.TokenSecretBytes]byte{}),
		Logger: slog.New(slog.DiscardHandler), Metrics: partition.NewMetrics(nil),
	}
	l.change(&d)
	o = partition.New(d)
	ctx, cancel := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	go func() {
		err := o.Run(ctx)
		cancel()
		ended <- err
	}()
	return o, ended, func() error {
		cancel()
		return <-ended
	}
}

// end is the error of an owner that must end by itself, or says that it goes on.
func end(ended chan error) error {
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Minute):
		return errors.New("it goes on")
	}
}

// encoded is a message as it is stored.
func (l *line) encoded(m interface{ MarshalVT() ([]byte, error) }) []byte {
	data, err := m.MarshalVT()
	testkit.Check(l.t, err)
	return data
}

// grab asks for the first attempt of a task that was submitted at seq in lane 3.
func (l *line) grab(id ids.TaskID, seq uint64) *logv1.Event {
	return &logv1.Event{
		Kind: logv1.EventKind_EVENT_KIND_STARTED, TaskId: id[:], Position: uint64(ids.NewPosition(seq, 3)), Version: 1, Nonce: 1,
	}
}

// unreadable are the ways in which a program of a later version makes an older one stop.
func unreadable(l *line, id ids.TaskID) map[string]func() {
	newer := logversion.Newest() + 1
	return map[string]func(){
		"events": func() {
			l.world.AppendTurn(l.encoded(&logv1.Turn{LogVersion: newer, Epoch: 1, Number: 9}))
		},
		"submits": func() {
			l.world.AppendSubmit(3, l.encoded(&logv1.Batch{LogVersion: newer, Tasks: []*logv1.Record{{Id: []byte("of another form")}}}))
		},
		"kind": func() {
			later := l.grab(id, 1)
			later.Kind = logv1.EventKind_EVENT_KIND_DISPLACE + 1
			l.world.AppendTurn(l.encoded(&logv1.Turn{Epoch: 1, Number: 9, Batches: []*logv1.EventBatch{{ReplyTo: "asker", Events: []*logv1.Event{later}}}}))
		},
		"kind that does not fit": func() {
			later := l.grab(id, 1)
			later.Kind = 256 + logv1.EventKind_EVENT_KIND_STARTED
			l.world.AppendTurn(l.encoded(&logv1.Turn{Epoch: 1, Number: 9, Batches: []*logv1.EventBatch{{ReplyTo: "asker", Events: []*logv1.Event{later}}}}))
		},
	}
}

// TestI13AnOwnerStopsAtWhatItDoesNotKnow: it answers nothing behind it, no checkpoint passes it,
// nothing is set apart, and the next owner of its version stops there too. R21.
func TestI13AnOwnerStopsAtWhatItDoesNotKnow(t *testing.T) {
	for name := range unreadable(nil, ids.TaskID{}) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t)
				id := ids.NewTaskID(time.Now(), 0, 1)
				at := l.world.AppendSubmit(3, submitted(t, id)) + 2 // behind the claim
				o, ended, stop := l.run("old")
				<-o.Ready()
				time.Sleep(5 * time.Second)
				if name == "submits" {
					unreadable(l, id)[name]()
					if err := end(ended); !errors.Is(err, partition.ErrUnreadable) {
						t.Fatalf("the owner ended with %v", err)
					}
				} else { // an owner reads turns of others in its takeover only
					testkit.NoError(t, stop())
					unreadable(l, id)[name]()
					l.world.SendEvents(l.encoded(&logv1.EventBatch{ReplyTo: "asker", Events: []*logv1.Event{l.grab(id, 1)}}))
				}
				l.stopsAgain(at)
			})
		})
	}
}

// stopsAgain starts another owner of the same version, which meets what is at a sequence.
func (l *line) stopsAgain(at uint64) {
	_, ended, _ := l.run("as old")
	if err := end(ended); !errors.Is(err, partition.ErrUnreadable) {
		l.t.Fatalf("the next owner ended with %v", err)
	}
	time.Sleep(5 * time.Second)
	select {
	case v := <-l.verdict:
		l.t.Errorf("answered: %v", v)
	default:
	}
	cp := l.world.Checkpoint()
	if cp.GetSnapshot().GetSeq() >= at {
		l.t.Errorf("the checkpoint passed message %d: %v", at, cp)
	}
	testkit.Equal(l.t, "the checkpoint is of version", cp.LogVersion, 1)
}

// TestI13ATakeoverStopsAtWhatItDoesNotKnow: a checkpoint of a later version is not replaced, and
// a message in the tail of the timer store is not passed over. R21.
func TestI13ATakeoverStopsAtWhatItDoesNotKnow(t *testing.T) {
	newer := logversion.Newest() + 1
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		testkit.NoError(t, testkit.Err(l.world.Save(t.Context(), &logv1.Checkpoint{Epoch: 7, Owner: "new", LogVersion: newer}, 0)))
		if _, ended, _ := l.run("old"); !errors.Is(end(ended), partition.ErrUnreadable) {
			t.Error("an owner took a checkpoint that it cannot read")
		}
		if cp := l.world.Checkpoint(); cp.Epoch != 7 || cp.Owner != "new" || cp.LogVersion != newer {
			t.Errorf("the checkpoint was replaced: %v", cp)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		testkit.NoError(t, testkit.Err(l.world.Park(t.Context(), 0, l.encoded(&logv1.Batch{LogVersion: newer}))))
		if _, ended, _ := l.run("old"); !errors.Is(end(ended), partition.ErrUnreadable) {
			t.Error("an owner took over a timer store that it cannot read")
		}
	})
}
