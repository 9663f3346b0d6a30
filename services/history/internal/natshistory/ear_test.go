package natshistory

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/hearing"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// TestAnEarHearsWhoFallsSilent, of the domains that it knows, and says so to those who have its polls, again for a while.
func TestAnEarHearsWhoFallsSilent(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "stores much, or waits for the server")
	server := natskit.Run(t)
	mouth, hears, worker := server.Connect(t), server.Connect(t), server.Connect(t)
	said := make(chan *nats.Msg, 64)
	testkit.NoError(t, testkit.Err(worker.ChanSubscribe(topology.HintSilent, said)))
	testkit.NoError(t, worker.Flush())
	ear, err := NewEar(mouth, hears, hearing.New(), func(domain string) bool { return domain != "unknown" })
	testkit.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); ear.Run(ctx) }()
	send := func(domain, id, more string) {
		t.Helper()
		testkit.NoError(t, worker.Publish(topology.AliveHint(domain), fmt.Appendf(nil, `{"worker_id":%q,"every_ms":500%s}`, id, more)))
	}
	send("unknown", "worker-0123456789", "")
	send("shop", "worker-that-leaves", "")
	send("shop", "worker-that-leaves", `,"leaving":true`)
	send("shop", "worker-that-dies", "")
	for range 2 {
		select {
		case m := <-said:
			var all rpcv1.Silent
			testkit.NoError(t, all.UnmarshalVT(m.Data))
			if len(all.Workers) != 1 || all.Workers[0].Domain != "shop" || all.Workers[0].WorkerId != "worker-that-dies" {
				t.Errorf("silent: %v", all.Workers)
			}
		case <-time.After(time.Minute):
			t.Fatal("no one is silent")
		}
	}
	stop()
	<-ended
}

// I14: all workers that a process can know may fall silent at once, with the longest names, and each is named.
func TestAllWorkersAreToldOfThatFallSilentAtOnce(t *testing.T) {
	t.Parallel()
	server := natskit.Run(t)
	listener := server.Connect(t)
	said := make(chan *nats.Msg, 1024)
	testkit.NoError(t, testkit.Err(listener.ChanSubscribe(topology.HintSilent, said)))
	testkit.NoError(t, listener.Flush())
	ear, err := NewEar(server.Connect(t), server.Connect(t), hearing.New(), func(string) bool { return true })
	testkit.NoError(t, err)
	const workers = 32_768
	all := &rpcv1.Silent{}
	for i := range workers {
		all.Workers = append(all.Workers, &rpcv1.SilentWorker{Domain: fmt.Sprintf("%064d", i%8), WorkerId: fmt.Sprintf("%064d", i)})
	}
	ear.tell(all, true)
	named := map[string]bool{}
	for len(named) < workers {
		select {
		case m := <-said:
			var some rpcv1.Silent
			testkit.NoError(t, some.UnmarshalVT(m.Data))
			for _, w := range some.Workers {
				named[w.WorkerId] = true
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%d of %d are named", len(named), workers)
		}
	}
}

// earOf is an ear that does not run.
func earOf(t *testing.T, server *natskit.Server) *Ear {
	t.Helper()
	ear, err := NewEar(server.Connect(t), server.Connect(t), hearing.New(), func(string) bool { return true })
	testkit.NoError(t, err)
	return ear
}

// TestAnEarNotesWhatItMayHaveMissed: messages that found no room, and a connection that was renewed.
func TestAnEarNotesWhatItMayHaveMissed(t *testing.T) {
	t.Parallel()
	server := natskit.Run(t)
	ear, worker := earOf(t, server), server.Connect(t)
	until := func(what string, done func() bool) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error {
			if ear.hear(&nats.Msg{Subject: topology.AliveHint("shop")}); done() {
				return nil
			}
			return errors.New(what)
		})
	}
	if ear.lost(); ear.dropped != 0 || ear.reconnects != 0 {
		t.Fatalf("%d dropped, %d reconnects", ear.dropped, ear.reconnects)
	}
	for range signsWaitingMax + 10 {
		testkit.NoError(t, worker.Publish(topology.AliveHint("shop"), nil))
	}
	until("no one notes what was dropped", func() bool { return ear.dropped > 0 })
	testkit.NoError(t, ear.hears.ForceReconnect())
	until("no one notes the reconnect", func() bool { return ear.reconnects > 0 })
}

// TestAnEarSaysThingsOnceInAWhile, unless there is something fresh, and is not confused by what is not its own message.
func TestAnEarSaysThingsOnceInAWhile(t *testing.T) {
	t.Parallel()
	server := natskit.Run(t)
	ear := earOf(t, server)
	sub, err := ear.mouth.SubscribeSync(topology.HintSilent)
	testkit.NoError(t, err)
	all := &rpcv1.Silent{Workers: []*rpcv1.SilentWorker{{Domain: "shop", WorkerId: "worker-that-dies"}}}
	ear.toldAt = ear.workers.Now() + time.Hour // so the time that this test takes does not matter
	ear.tell(all, false)
	ear.tell(all, true)
	ear.toldAt = ear.workers.Now() + time.Hour
	ear.tell(all, false)
	ear.hear(&nats.Msg{Subject: ear.self, Data: []byte("no number")})
	testkit.NoError(t, ear.mouth.Flush())
	if n, _, err := sub.Pending(); n != 1 || err != nil {
		t.Errorf("it was said %d times: %v", n, err)
	}
}
