package linear

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	natsNodes = 3
	// instances are of each service.
	instances = 2
	// away is for how long what was killed stays away, paused for how long a process is stopped, calm how long nothing happens between two
	// faults: that is longer than a takeover.
	away, paused, calm = 3 * time.Second, 10 * time.Second, 4 * time.Second
)

// TestEachTaskHasOneLifeThroughFaults kills a process of each service, pauses one of history, and takes a node of NATS away, while clients work. The long form, with
// YARD_CHAOS_ROUNDS in the environment, pauses one of each service and takes another node away.
func TestEachTaskHasOneLifeThroughFaults(t *testing.T) {
	testkit.Slow(t, "disturbs a cluster of processes")
	binaries, err := cluster.Build()
	testkit.NoError(t, err)
	t.Cleanup(func() {
		testkit.Check(t, binaries.Remove())
	})
	c := cluster.Start(t, binaries, instances, cluster.WithNATSNodes(natsNodes))
	define(t, c.Admin(), c.Client(domain))
	h := newHistory()
	r := start(t, h, func() *nats.Conn { return c.Conn(domain, nats.UseOldRequestStyle(), nats.MaxReconnects(-1)) })
	d := &disturber{t: t, c: c, h: h}
	d.rest(calm)
	for i, s := range cluster.Services() {
		d.kill(s, i%instances)
	}
	d.loseNode(0)
	if os.Getenv("YARD_CHAOS_ROUNDS") == "" { // the short form
		d.pause(cluster.History, 1)
	} else {
		for i, s := range cluster.Services() {
			d.pause(s, (i+1)%instances)
		}
		d.loseNode(1)
	}
	r.end()
	c.AwaitReady()
	h.finish(t, &client{nc: c.Conn(domain, nats.UseOldRequestStyle()), h: h, no: operators + workers})
	h.check(t, d.faults)
}

// disturber does one thing after the other to a cluster, and writes it down.
type disturber struct {
	t      *testing.T
	c      *cluster.Cluster
	h      *history
	faults []string
}

func (d *disturber) note(format string, args ...any) {
	d.faults = append(d.faults, fmt.Sprintf("%.1fs ", time.Duration(d.h.now()).Seconds())+fmt.Sprintf(format, args...))
}

// rest lets the clients work on.
func (d *disturber) rest(lasts time.Duration) {
	select {
	case <-time.After(lasts):
	case <-d.t.Context().Done():
	}
}

func (d *disturber) kill(s cluster.Service, i int) {
	d.t.Helper()
	d.note("kill %s-%d", s, i)
	d.c.Kill(s, i)
	d.rest(away)
	d.c.Restart(s, i)
	d.c.AwaitProcess(s, i)
	d.rest(calm)
}

func (d *disturber) pause(s cluster.Service, i int) {
	d.t.Helper()
	d.note("pause %s-%d", s, i)
	d.c.Pause(s, i)
	d.rest(paused)
	d.c.Resume(s, i)
	d.rest(calm)
}

func (d *disturber) loseNode(i int) {
	d.t.Helper()
	d.note("kill nats-%d", i)
	d.c.Kill(cluster.NATS, i)
	d.rest(paused)
	d.c.Restart(cluster.NATS, i)
	d.c.AwaitProcess(cluster.NATS, i)
	d.c.AwaitReplicas()
	d.rest(calm)
}
