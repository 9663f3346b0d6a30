package natshistory

import (
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/porttest"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func connect(t *testing.T) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc := testkit.RunNATS(t).Connect(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := provision.Apply(t.Context(), js, topology.Partitioning{History: 1, Matching: 1}, provision.Options{}); err != nil {
		t.Fatal(err)
	}
	return nc, js
}

func TestPorts(t *testing.T) {
	t.Parallel()
	porttest.Exercise(t, func(t *testing.T) porttest.Ports {
		nc, js := connect(t)
		kv, err := js.KeyValue(t.Context(), topology.CheckpointsBucket)
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{NATS: nc, JetStream: js, Log: slog.New(slog.DiscardHandler)}
		return porttest.Ports{
			Log: Log{cfg}, TimerStore: NewTimerStore(cfg), Checkpoints: Checkpoints{cfg, kv},
			Submit: func(lane ids.Lane, batch []byte) uint64 {
				seq, _, err := natslog.Append(t.Context(), nc, natslog.Msg{Subject: topology.Submit(0, lane, "shop", "mail"), Data: batch})
				if err != nil {
					t.Fatal(err)
				}
				return seq
			},
		}
	})
}

func TestAnswersThatReachNobodyBounce(t *testing.T) {
	t.Parallel()
	nc, _ := connect(t)
	w, closeWire, err := NewWire(nc, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer closeWire()
	bounced := make(chan string, 2)
	heard, err := nc.SubscribeSync("someone")
	if err != nil {
		t.Fatal(err)
	}
	w.Answer("someone", []byte("x"), func() { bounced <- "someone" })
	w.Answer("nobody", []byte("x"), func() { bounced <- "nobody" })
	if _, err := heard.NextMsg(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if who := <-bounced; who != "nobody" {
		t.Errorf("the answer to %s bounced", who)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	select {
	case who := <-bounced:
		t.Errorf("the answer to %s bounced too", who)
	default:
	}
}
