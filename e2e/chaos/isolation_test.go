package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// isolationRate is how many tasks are submitted per second, one by one.
	isolationRate = 200
	// isolationLasts is how long each phase is, in the short form and in the long one.
	isolationShort, isolationLong = 3 * time.Second, 15 * time.Second
	// unreadable is a log version that no one knows.
	unreadable = 1 << 20
)

// TestI14_R31_APartitionThatNobodyServes: all nodes give a history partition up, since its log holds what
// none of them can read. Tasks of the others reach their workers as before: it prints how soon.
func TestI14_R31_APartitionThatNobodyServes(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, binaries, instances)
	lasts := isolationShort
	if settingsOf(t).long {
		lasts = isolationLong
	}
	m := startMeter(t, c, domain)
	m.phase("all partitions are served", lasts, -1)
	const dead = 1
	nc := c.Inside()
	poison, err := (&logv1.Turn{LogVersion: unreadable}).MarshalVT()
	testkit.NoError(t, err)
	testkit.NoError(t, nc.Publish(topology.Event(dead), poison))
	ask, err := (&logv1.EventBatch{}).MarshalVT() // an owner that appends nothing does not notice
	testkit.NoError(t, err)
	testkit.Eventually(t, within, func() error {
		if err := nc.Publish(topology.EventRequests(dead), ask); err != nil {
			return err
		}
		_, err := nc.Request(topology.HistoryCall(dead, "describe"), nil, time.Second)
		if !errors.Is(err, nats.ErrNoResponders) {
			return fmt.Errorf("partition %d has an owner: %v", dead, err)
		}
		return nil
	})
	m.phase("one is served by no one", lasts, dead)
}

// TestI14_R8_ARedisNodeThatIsAway: one of three nodes hangs. Domains whose tables are on the others do not
// notice: it prints how soon their tasks begin, and those of a domain whose tables are away.
func TestI14_R8_ARedisNodeThatIsAway(t *testing.T) {
	longOnly(t)
	c := cluster.Start(t, binaries, instances, cluster.WithRedisNodes(3))
	nodeOf := func(name string) int { return c.Redis.Slot(t, "{"+name+"}") * len(c.RedisNodes) / 16384 }
	names := make([]string, len(c.RedisNodes))
	for n := 0; slices.Contains(names, ""); n++ {
		name := fmt.Sprint("tenant-", n)
		names[nodeOf(name)] = name
	}
	here, away := startMeter(t, c, names[0]), startMeter(t, c, names[1])
	both := func(name string) {
		var all sync.WaitGroup
		all.Go(func() { here.phase(name+", others", isolationLong, -1) })
		all.Go(func() { away.phase(name+", its own", isolationLong, -1) })
		all.Wait()
	}
	both("all nodes are there")
	c.RedisNodes[1].Pause(t)
	both("one node hangs")
	c.RedisNodes[1].Resume(t)
	both("it is back")
}

// meter submits tasks one by one and notes how soon each begins.
type meter struct {
	t      *testing.T
	client *yard.Client

	mu   sync.Mutex
	sent map[string]time.Time
	took map[string]time.Duration
}

func startMeter(t *testing.T, c *cluster.Cluster, name string) *meter {
	t.Helper()
	m := &meter{t: t, client: c.Client(name), sent: map[string]time.Time{}, took: map[string]time.Duration{}}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	testkit.NoError(t, testkit.Err(c.Admin().PutDomain(ctx, yard.Domain{Name: name})))
	testkit.Eventually(t, within, func() error {
		_, err := m.client.PutType(ctx, yard.TaskType{Name: string(quick)})
		return err
	})
	w := yard.NewWorker(c.Client(name), tasklist, yard.WithConcurrency(100), yard.WithPollWait(2*time.Second))
	yard.Handle(w, string(quick), func(_ context.Context, key string) (string, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.took[key] = time.Since(m.sent[key])
		return "", nil
	})
	working, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(working) }) // a partition that no node serves confirms no outcome
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return m
}

// submit submits one task and returns its partition.
func (m *meter) submit(key string) int {
	m.mu.Lock()
	m.sent[key] = time.Now()
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), submitTimeout)
	defer cancel()
	id, err := m.client.Submit(ctx, yard.Task{Type: string(quick), Tasklist: tasklist, Payload: key})
	if err != nil {
		m.t.Errorf("submit: %v", err)
		return -1
	}
	task, err := ids.ParseTaskID(id)
	testkit.Check(m.t, err)
	return task.Partition()
}

// phase submits for some time and prints how soon the tasks began, but for those of one partition.
func (m *meter) phase(name string, lasts time.Duration, without int) {
	m.t.Helper()
	var keys []string
	var mu sync.Mutex
	var all sync.WaitGroup
	began := time.Now()
	for n := 0; time.Since(began) < lasts; n++ {
		wait(context.Background(), time.Until(began.Add(time.Duration(n)*time.Second/isolationRate)))
		all.Go(func() {
			key := fmt.Sprintf("%s-%d", name, n)
			if at := m.submit(key); at >= 0 && at != without {
				mu.Lock()
				defer mu.Unlock()
				keys = append(keys, key)
			}
		})
	}
	all.Wait()
	ran := func() (took []time.Duration) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, key := range keys {
			if d, ok := m.took[key]; ok {
				took = append(took, d)
			}
		}
		return took
	}
	testkit.Eventually(m.t, within, func() error {
		if got := len(ran()); got < len(keys) {
			return fmt.Errorf("%s: %d of %d tasks of the other partitions began", name, got, len(keys))
		}
		return nil
	})
	took := ran()
	slices.Sort(took)
	at := func(q float64) time.Duration {
		return took[min(len(took)-1, int(q*float64(len(took))))].Round(100 * time.Microsecond)
	}
	m.t.Logf("%-28s %5d tasks begun, p50 %v, p99 %v, max %v", name, len(took), at(0.5), at(0.99), took[len(took)-1].Round(100*time.Microsecond))
}
