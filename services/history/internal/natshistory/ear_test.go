package natshistory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAnEarHearsWhoFallsSilent, of the domains that it knows, and says so to those who have its polls, again for a while.
func TestAnEarHearsWhoFallsSilent(t *testing.T) {
	t.Parallel()
	server := testkit.RunNATS(t)
	mouth, hears, worker := server.Connect(t), server.Connect(t), server.Connect(t)
	said := make(chan *nats.Msg, 64)
	if _, err := worker.ChanSubscribe(topology.HintSilent, said); err != nil {
		t.Fatal(err)
	}
	if err := worker.Flush(); err != nil {
		t.Fatal(err)
	}
	ear, err := NewEar(mouth, hears, partition.NewWorkers(), func(domain string) bool { return domain != "unknown" })
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); ear.Run(ctx) }()
	send := func(domain, id, more string) {
		t.Helper()
		if err := worker.Publish(topology.AliveHint(domain), fmt.Appendf(nil, `{"worker_id":%q,"every_ms":500%s}`, id, more)); err != nil {
			t.Fatal(err)
		}
	}
	send("unknown", "worker-0123456789", "")
	send("shop", "worker-that-leaves", "")
	send("shop", "worker-that-leaves", `,"leaving":true`)
	send("shop", "worker-that-dies", "")
	for range 2 {
		select {
		case m := <-said:
			var all rpcv1.Silent
			if err := all.UnmarshalVT(m.Data); err != nil {
				t.Fatal(err)
			}
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
