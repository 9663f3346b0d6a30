package natshistory

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

func connect(t *testing.T) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc := natskit.Run(t).Connect(t)
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	testkit.NoError(t, provision.Apply(t.Context(), js, topology.Partitioning{History: 1, Matching: 1}, provision.Options{}))
	return nc, js
}

func TestPorts(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "files and deletes much")
	exercisePorts(t, func(t *testing.T) suitePorts {
		nc, js := connect(t)
		kv, err := js.KeyValue(t.Context(), topology.CheckpointsBucket)
		testkit.NoError(t, err)
		cfg := Config{NATS: nc, JetStream: js, LogVersion: version1, Log: slog.New(slog.DiscardHandler)}
		return suitePorts{
			Log: NewLog(cfg), TimerStore: NewTimerStore(cfg), Checkpoints: Checkpoints{cfg, kv},
			Submit: func(lane ids.Lane, batch []byte) uint64 {
				return store(t, nc, topology.SubmitShared(0, lane), batch)
			},
			SubmitOf: func(at replica.Queue, batch []byte) uint64 {
				return store(t, nc, topology.Submit(0, at.Lane, at.Place.Domain(), cmp.Or(at.Place.Tasklist(), "mail")), batch)
			},
			SubmitMember: func(lane ids.Lane, id string, tasks []byte) uint64 {
				return store(t, nc, topology.SubmitBatch(0, lane, "shop", id), tasks)
			},
		}
	})
}

// An answer bounces where there is no subscriber, and not where somebody replies to it.
func TestAnswersThatReachNobodyBounce(t *testing.T) {
	t.Parallel()
	nc, _ := connect(t)
	w, closeWire, err := NewWire(nc, nil, slog.New(slog.DiscardHandler))
	testkit.NoError(t, err)
	defer closeWire()
	bounced := make(chan string, 2)
	heard, err := nc.SubscribeSync("_INBOX.someone")
	testkit.NoError(t, err)
	w.Answer("_INBOX.someone", []byte("x"), func() { bounced <- "_INBOX.someone" })
	m, err := heard.NextMsg(5 * time.Second)
	if err == nil {
		err = errors.Join(m.Respond(nil), m.Respond([]byte("thanks")))
	}
	testkit.NoError(t, err)
	w.Answer("_INBOX.nobody", []byte("x"), func() { bounced <- "_INBOX.nobody" })
	testkit.Equal(t, "the answer to bounced", <-bounced, "_INBOX.nobody")
	testkit.NoError(t, nc.Flush())
	select {
	case who := <-bounced:
		t.Errorf("the answer to %s bounced too", who)
	default:
	}
}

// What no stream takes is sent again until one does, and no more then.
func TestWhatIsToBeStoredIsSentUntilItIs(t *testing.T) {
	t.Parallel()
	nc, js := connect(t)
	w, closeWire, err := NewWire(nc, nil, slog.New(slog.DiscardHandler))
	testkit.NoError(t, err)
	defer closeWire()
	w.Store("stored.by.none", []byte("x"))
	w.Store("stored.by.none", []byte("y"))
	testkit.NoError(t, nc.Flush())
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "LATE", Subjects: []string{"stored.by.none"}, Storage: jetstream.MemoryStorage})
	testkit.NoError(t, err)
	count := func() (uint64, error) {
		i, err := stream.Info(t.Context())
		if err != nil {
			return 0, err
		}
		return i.State.Msgs, nil
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if n, err := count(); err != nil || n < 2 {
			return fmt.Errorf("%d messages are stored: %v", n, err)
		}
		return nil
	})
	testkit.Eventually(t, 10*time.Second, func() error {
		w.storing.mu.Lock()
		defer w.storing.mu.Unlock()
		if n := len(w.storing.all); n > 0 || w.storing.bytes != 0 {
			return fmt.Errorf("%d messages of %d bytes are kept", n, w.storing.bytes)
		}
		return nil
	})
	testkit.Equal(t, "would be sent again", len(w.storing.due(time.Now().Add(storeAgain+time.Second))), 0)
}

// R1: a reply subject in the log is no proof that it leads to an inbox. Nothing is published
// elsewhere, and what was granted there is taken back as if no one listened.
func TestR1_VerdictsGoToInboxesOnly(t *testing.T) {
	t.Parallel()
	nc, _ := connect(t)
	inboxes, err := topology.NewInboxes([]string{topology.TenantInboxes})
	testkit.NoError(t, err)
	log, metrics := slog.New(slog.DiscardHandler), signalkit.Metrics(t)
	w, closeWire, err := NewWire(nc, natsrpc.NewReplies(inboxes, "history", metrics, log), log)
	testkit.NoError(t, err)
	defer closeWire()
	heard, err := nc.SubscribeSync(">")
	testkit.NoError(t, err)
	wrong := []string{
		"$JS.API.STREAM.PURGE." + topology.HistoryStream(0), topology.Event(1), topology.UserInbox("shop", "ann") + ".1", "_INBOX.1",
		topology.ServiceInbox("frontend") + ".1\r\nPUB yard.history.0.event 0\r\n",
	}
	bounced := make(chan struct{}, len(wrong))
	for _, to := range wrong {
		w.Answer(to, []byte("x"), nil)
		w.Answer(to, []byte("x"), func() { bounced <- struct{}{} })
	}
	for range wrong {
		<-bounced
	}
	good := topology.ServiceInbox("frontend") + ".1"
	w.Answer(good, []byte("x"), nil)
	if m, err := heard.NextMsg(5 * time.Second); err != nil || m.Subject != good {
		t.Errorf("%v %v", m, err)
	}
	testkit.Equal(t, "counted", metrics.Counter(signals.RepliesRefused, "history").Value(), int64(2*len(wrong)))
}

func store(t *testing.T, nc *nats.Conn, subject string, data []byte) uint64 {
	t.Helper()
	seq, _, err := natslog.Append(t.Context(), nc, natslog.Msg{Subject: subject, Data: data})
	testkit.NoError(t, err)
	return seq
}
