package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// idleLists is how many tasklists have an idle worker: each shard has some.
	idleLists = 16
	// idleWait is how long an idle poll waits: longer than anything else in this test.
	idleWait = 60 * time.Second
)

// takeoverMax is how long a takeover may take in the long form, on a machine that is free for it; the
// short form prints how long it takes.
const takeoverMax = 20 * time.Second

// disturbances are what befalls one process of a service, and how it comes back.
var disturbances = []struct {
	name     string
	drains   bool // it ends what waits there before it goes
	do, undo func(*cluster.Cluster, cluster.Service)
}{
	{"kill -9", false, func(c *cluster.Cluster, s cluster.Service) { c.Kill(s, 0) }, func(c *cluster.Cluster, s cluster.Service) { c.Restart(s, 0) }},
	{"SIGTERM", true, func(c *cluster.Cluster, s cluster.Service) { c.Term(s, 0) }, func(c *cluster.Cluster, s cluster.Service) { c.Restart(s, 0) }},
	{"SIGSTOP", false, func(c *cluster.Cluster, s cluster.Service) { c.Pause(s, 0) }, func(c *cluster.Cluster, s cluster.Service) { c.Resume(s, 0) }},
}

// TestIdleWorkersAreServedAfterATakeover: workers whose polls wait at a matching process that
// is killed, drained or hung get the tasks that come next from its successor: the frontends end
// polls that a process cannot answer any more, so that no one waits until they are over (R42).
func TestIdleWorkersAreServedAfterATakeover(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "disturbs a cluster of processes")
	c := cluster.Start(t, binaries, instances)
	i := startIdle(t, c)
	for _, d := range disturbances {
		i.round("before "+d.name, func() {})
		before := ended(t, c)
		i.round(d.name, func() { d.do(c, cluster.Matching) })
		if !d.drains && ended(t, c) == before {
			t.Errorf("%s: no frontend has ended a poll", d.name)
		}
		d.undo(c, cluster.Matching)
		c.AwaitProcess(cluster.Matching, 0)
		i.round("back after "+d.name, func() {})
	}
	c.CheckAll()
}

// idle is tasklists with a worker each.
type idle struct {
	t      *testing.T
	client *yard.Client
	ran    chan ran
}

// ran is a task that began.
type ran struct {
	list string
	at   time.Time
}

func startIdle(t *testing.T, c *cluster.Cluster) *idle {
	t.Helper()
	i := &idle{t: t, client: c.Client(domain), ran: make(chan ran, idleLists)}
	define(t, c, i.client, yard.TaskType{Name: string(quick)})
	working, stop := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	for n := range idleLists {
		w := yard.NewWorker(i.client, idleList(n), yard.WithConcurrency(1), yard.WithPollWait(idleWait))
		yard.Handle(w, string(quick), func(_ context.Context, list string) (string, error) {
			i.ran <- ran{list, time.Now()}
			return "", nil
		})
		workers.Go(func() {
			testkit.Check(t, w.Run(working))
		})
	}
	t.Cleanup(func() {
		stop()
		workers.Wait()
	})
	return i
}

// ended is how many polls the frontends have ended because their owner was replaced.
func ended(t *testing.T, c *cluster.Cluster) (n int) {
	t.Helper()
	for i := range c.Instances(cluster.Frontend) {
		var page string
		testkit.Eventually(t, within, func() (err error) {
			page, err = c.Metrics(cluster.Frontend, i)
			return err
		})
		for line := range strings.Lines(page) {
			if text, ok := strings.CutPrefix(line, signals.PollsOwnerReplaced.Prometheus()+" "); ok {
				count, err := strconv.Atoi(strings.TrimSpace(text))
				testkit.NoError(t, err)
				n += count
			}
		}
	}
	return n
}

func idleList(n int) string { return fmt.Sprintf("idle-%d", n) }

// round waits until all workers are idle, disturbs, submits a task to each and prints
// how long after the disturbance began they ran.
func (i *idle) round(name string, disturb func()) {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), within)
	defer cancel()
	for n := range idleLists {
		testkit.Eventually(i.t, within, func() error {
			d, err := i.client.Wire().DescribeTasklist(ctx, idleList(n))
			if err == nil && d.WaitingPolls < 1 {
				err = fmt.Errorf("%s has no idle worker", idleList(n))
			}
			return err
		})
	}
	began := time.Now()
	disturb()
	for n := range idleLists {
		testkit.NoError(i.t, testkit.Err(i.client.Submit(ctx, yard.Task{Type: string(quick), Tasklist: idleList(n), Payload: idleList(n)})))
	}
	left := map[string]bool{}
	for n := range idleLists {
		left[idleList(n)] = true
	}
	var took []time.Duration
	for len(left) > 0 {
		select {
		case r := <-i.ran:
			if left[r.list] {
				took = append(took, r.at.Sub(began))
			}
			delete(left, r.list)
		case <-ctx.Done():
			i.t.Fatalf("%s: %d idle workers are not served: %v", name, len(left), left)
		}
	}
	slices.Sort(took)
	most := took[len(took)-1]
	i.t.Logf("%-20s served after %4d ms (p50), %4d ms (max)", name, took[len(took)/2].Milliseconds(), most.Milliseconds())
	if settingsOf(i.t).long && most > takeoverMax {
		i.t.Errorf("%s: served after %v", name, most)
	}
}

// TestTakeoversAreQuick measures for how long the partitions of a process have no owner
// that answers, when it is killed, drained or hung.
func TestTakeoversAreQuick(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "disturbs a cluster of processes")
	c := cluster.Start(t, binaries, instances)
	nc := c.Inside()
	bound := within
	if settingsOf(t).long {
		bound = takeoverMax
	}
	for _, s := range []cluster.Service{cluster.History, cluster.Timer, cluster.Matching} {
		if c.Instances(s) < 2 {
			continue
		}
		for _, d := range disturbances {
			stop := probe(t, nc, s)
			d.do(c, s)
			gaps := stop()
			d.undo(c, s)
			c.AwaitProcess(s, 0)
			slices.Sort(gaps)
			t.Logf("%-8s %-8s no one answers for %v", s, d.name, gaps)
			if most := gaps[len(gaps)-1]; most > bound {
				t.Errorf("%s, %s: no one answered for %v", s, d.name, most)
			}
		}
	}
	c.CheckAll()
}

// probe asks all partitions of a service again and again. Stop waits until all of them
// answer and have done so for a while, and returns the longest each did not.
func probe(t *testing.T, nc *nats.Conn, s cluster.Service) (stop func() []time.Duration) {
	t.Helper()
	const every, calmFor = 10 * time.Millisecond, 2500 * time.Millisecond
	n := topology.DefaultPartitioning().History // as many as there are shards
	gaps := make([]time.Duration, n)
	var probing sync.WaitGroup
	first, all := make(chan struct{}, n), t.Context()
	for p := range n {
		probing.Go(func() {
			var began, last time.Time
			for all.Err() == nil {
				if ask(all, nc, s, p) == nil {
					now := time.Now()
					if last.IsZero() {
						began = now
						first <- struct{}{}
					} else if gap := now.Sub(last); gap > gaps[p] {
						gaps[p], began = gap, now
					}
					last = now
					if time.Since(began) > calmFor {
						return
					}
				}
				if !last.IsZero() && time.Since(last) > within { // no one comes any more
					gaps[p] = time.Since(last)
					return
				}
				wait(all, every)
			}
		})
	}
	for range n {
		<-first
	}
	return func() []time.Duration {
		probing.Wait()
		for p := range gaps {
			gaps[p] = gaps[p].Round(time.Millisecond)
		}
		return gaps
	}
}

// ask asks who serves a partition, or a shard.
func ask(ctx context.Context, nc *nats.Conn, s cluster.Service, p int) error {
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	var err error
	switch s {
	case cluster.History:
		_, err = natsrpc.Call[rpcv1.DescribePartitionResponse](ctx, nc, topology.HistoryCall(p, "describe"), &rpcv1.DescribePartitionRequest{Domain: domain, Tasklist: tasklist})
	case cluster.Timer:
		_, err = natsrpc.Call[rpcv1.DescribeWaitingResponse](ctx, nc, topology.TimerCall(p, "describe"), &rpcv1.DescribeWaitingRequest{Domain: domain, Tasklist: tasklist})
	default:
		_, err = natsrpc.Call[rpcv1.DescribeShardResponse](ctx, nc, topology.MatchingCall(p, "describe"), &rpcv1.DescribeShardRequest{Domain: domain, Tasklist: tasklist})
	}
	return err
}
