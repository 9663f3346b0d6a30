package natsgate

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

var partitioning = topology.Partitioning{History: 2, Matching: 1}

func connect(t *testing.T) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc := natskit.Run(t).Connect(t)
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	testkit.NoError(t, provision.Apply(t.Context(), js, partitioning, provision.Options{}))
	return nc, js
}

// What the repeat of unknown outcomes rests on (decision 0005), on a real server.
func TestTheLogRecognisesARepeatedMessage(t *testing.T) {
	nc, js := connect(t)
	log, ctx := NewLog(nc, js), t.Context()
	msg := func(tasklist, data, id string) natslog.Msg {
		return natslog.Msg{Subject: topology.Submit(0, ids.LaneFirst, "shop", tasklist), Data: []byte(data), MsgID: id}
	}
	first, duplicate, err := log.Append(ctx, msg("a", "first", "m1"))
	if err != nil || duplicate {
		t.Fatalf("append: %v %v", duplicate, err)
	}
	// The id counts, not the subject or the body: the one that has it first, has it.
	seq, duplicate, err := log.Append(ctx, msg("b", "another's", "m1"))
	if err != nil || !duplicate || seq != first {
		t.Fatalf("repeat: seq %d, duplicate %v, %v", seq, duplicate, err)
	}
	if m, err := log.Message(ctx, 0, seq); err != nil || string(m.Data) != "first" || time.Since(m.Time).Abs() > time.Hour {
		t.Fatalf("holder of the id: %+v, %v", m, err)
	}

	for _, msgs := range [][]natslog.Msg{{msg("a", "x", "m2")}, {msg("a", "x", "m2"), msg("b", "y", "m3")}} {
		told := make([]int, len(msgs))
		log.AppendEach(ctx, msgs, func(i int, a natslog.Appended) {
			if told[i]++; a.Err != nil || a.Seq != first+1+uint64(i) || a.Duplicate != (i == 0 && len(msgs) == 2) {
				t.Errorf("%d of %d: %+v", i, len(msgs), a)
			}
		})
		if slices.Min(told) != 1 || slices.Max(told) != 1 {
			t.Errorf("outcomes were reported %v times", told)
		}
	}
	stream, err := js.Stream(ctx, topology.HistoryStream(0))
	testkit.NoError(t, err)
	testkit.Equal(t, "messages are stored", stream.CachedInfo().State.Msgs, 3)

	testkit.NoError(t, stream.Purge(ctx))
	if m, err := log.Message(ctx, 0, first); err != nil || m != nil {
		t.Errorf("a forgotten message: %+v, %v", m, err)
	}
	if _, duplicate, err := log.Append(ctx, msg("a", "first", "m1")); err != nil || !duplicate {
		t.Errorf("the id of a forgotten message is forgotten too: %v", err)
	}
}

func TestWhatFailsIsToldApart(t *testing.T) {
	nc, js := connect(t)
	log, ctx := NewLog(nc, js), t.Context()
	m := natslog.Msg{Subject: topology.Submit(1, ids.LaneFirst, "shop", "a")}
	testkit.NoError(t, js.DeleteStream(ctx, topology.HistoryStream(1)))
	if _, _, err := log.Append(ctx, m); !errors.Is(err, natslog.ErrNotStored) {
		t.Errorf("a missing stream: %v", err)
	}
	other := natslog.Msg{Subject: topology.SubmitShared(0, ids.LaneFirst)}
	log.AppendEach(ctx, []natslog.Msg{m, other}, func(i int, a natslog.Appended) {
		if i == 0 && !errors.Is(a.Err, natslog.ErrNotStored) || i == 1 && a.Err != nil {
			t.Errorf("%d of two, the first into a missing stream: %v", i, a.Err)
		}
	})
	nc.Close()
	if _, _, err := log.Append(ctx, m); !errors.Is(err, natslog.ErrNotStored) {
		t.Errorf("no connection: %v", err)
	}
}

// heard is a Listener.
type heard struct {
	verdicts, loads chan string
	tasklists       chan string
	answered        chan string
	refused         chan uint64
	bounced         chan uint64
}

func (h heard) TakeVerdicts(data []byte)          { h.verdicts <- string(data) }
func (h heard) TakeLoad(data []byte)              { h.loads <- string(data) }
func (h heard) TasksBounced(uint64)               {}
func (h heard) TakeTasklistLoad(data []byte)      { h.tasklists <- string(data) }
func (h heard) TakeAnswered(data []byte)          { h.answered <- string(data) }
func (h heard) EventsRefused(id uint64, _ string) { h.refused <- id }
func (h heard) PollBounced(id uint64)             { h.bounced <- id }

func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func TestTheInboxTellsApartWhatArrives(t *testing.T) {
	nc, _ := connect(t)
	h := heard{make(chan string, 9), make(chan string, 9), make(chan string, 9), make(chan string, 9), make(chan uint64, 9), make(chan uint64, 9)}
	inbox := NewInbox(nc)
	inbox.Listen(h, h, map[string]func([]byte){topology.HintLoad: h.TakeLoad, topology.HintTasklistLoad: h.TakeTasklistLoad})
	go func() {
		testkit.Check(t, inbox.Run(t.Context()))
	}()
	next(t, inbox.Ready())

	testkit.NoError(t, nc.Publish(inbox.VerdictsTo(), []byte("v")))
	testkit.NoError(t, nc.Publish(topology.HintLoad, []byte("l")))
	testkit.NoError(t, nc.Publish(topology.HintTasklistLoad, []byte("t")))
	testkit.Equal(t, "heard", next(t, h.verdicts)+next(t, h.loads)+next(t, h.tasklists), "vlt")
	testkit.NoError(t, inbox.PublishPoll(0, 1, 41, []byte("poll")))
	testkit.Equal(t, "poll was bounced", next(t, h.bounced), 41)
	testkit.NoError(t, nc.Publish(inbox.AnsweredTo(), []byte("answered")))
	testkit.Equal(t, "heard", next(t, h.answered), "answered")
	testkit.NoError(t, inbox.PublishEvents(1, 43, []byte("nobody")))
	testkit.Equal(t, "events were refused", next(t, h.refused), 43)
}
