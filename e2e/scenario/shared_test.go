package scenario_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// onePartition is a stack of its own with one partition and a window of so many tasks, for so many domains.
func onePartition(t *testing.T, window, domains int) *stack.Stack {
	t.Helper()
	services := stack.DefaultServices()
	services.History.Partition.WindowTasks = window
	cfg := stack.Config{Tables: stack.TablesMemory, Services: &services, Partitioning: topology.Partitioning{History: 1, Matching: 1}}
	return ownOf(t, cfg, domains)
}

// reported waits for a report of load.
func (w *world) reported() {
	w.t.Helper()
	came := make(chan *rpcv1.HistoryLoad, 1)
	sub, err := w.inside().Conn().Subscribe(topology.HintLoad, func(m *nats.Msg) {
		load := &rpcv1.HistoryLoad{}
		if load.UnmarshalVT(m.Data) != nil {
			load = nil
		}
		select {
		case came <- load:
		default:
		}
	})
	testkit.NoError(w.t, err)
	defer func() { _ = sub.Unsubscribe() }() // fails where the connection is closed
	select {
	case load := <-came:
		if load.GetSharedTasks() == 0 || load.GetSharedBytes() == 0 {
			w.t.Fatalf("an idle partition reports %v", load)
		}
	case <-w.soon().Done():
		w.t.Fatal("no report of load")
	}
}

// side runs n times f beside each other, and again until it returns false.
func side(n int, f func() bool) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for f() {
			}
		})
	}
	all.Wait()
}

// filed counts the submits of the log by subject.
func (w *world) filed() map[string]int {
	w.t.Helper()
	found := map[string]int{}
	testkit.NoError(w.t, natslog.ReadAll(w.soon(), w.inside(), natslog.ReadConfig{Stream: topology.HistoryStream(0)}, func(r natslog.Record) error {
		if topology.IsSubmit(0, r.Subject) {
			found[r.Subject]++
		}
		return nil
	}))
	return found
}

// TestI7_ABacklogOfSmallSubmitsLetsUrgentOnesBy: tenants that share messages hand in many times the
// window, of low priority and without a worker. History holds its windows and no more, an urgent task is
// handed out at once, and all of them come once there are workers.
func TestI7_ABacklogOfSmallSubmitsLetsUrgentOnesBy(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "floods the system")
	const window, each, requests = 500, 5, 800
	s := onePartition(t, window, 2)
	tenants := []*world{enter(t, s), enter(t, s)}
	tenants[0].reported()

	request := many(each, &yardv1.NewTask{Type: "x", Priority: 5, Payload: jsonPayload(`"later"`)})
	var mu sync.Mutex
	left := requests
	side(16, func() bool {
		mu.Lock()
		left--
		n := left
		mu.Unlock()
		if n >= 0 {
			testkit.Check(t, testkit.Err(tenants[n%2].handIn(&yardv1.SubmitRequest{Tasklist: list, Tasks: request})))
		}
		return n > 0
	})
	loaded := meters(t, s)[signals.TasksLoaded.Prometheus()]
	// Messages are read whole. Beside each of the two lanes one tenant that lags may hold a window, and the other half.
	if most := int64(2*(window+window+window/2) + 2*16*each); loaded > most {
		t.Errorf("%d tasks are in memory, at most %d may be", loaded, most)
	}
	for _, w := range tenants {
		urgent := w.submitOne(&yardv1.NewTask{Type: "urgent", Priority: 1})
		equal(t, "the urgent one", w.takeOne("urgent").TaskId, urgent)
	}
	filed := tenants[0].filed()
	apart := 0 // by priority, or by tenant once that is reported to lag
	for subject, n := range filed {
		if lane, ok := topology.LaneOf(0, subject); ok && lane == 5 {
			apart += n
		}
	}
	if filed[topology.SubmitShared(0, ids.LaneFirst)] == 0 || apart == 0 {
		t.Errorf("not both ways of filing were in use: %v", filed)
	}
	var draining sync.WaitGroup
	for _, w := range tenants { // at once: they share the windows
		draining.Go(func() { drain(w, map[string]bool{}, requests/2*each) })
	}
	draining.Wait()
}

// tenants makes n domains more.
func (w *world) tenants(n int) chan *world {
	entered, all := make(chan *world, n), make(chan *world, n)
	for range n {
		entered <- join(w.t, w.stack, shared.domain(w.t, w.stack))
	}
	close(entered)
	side(8, func() bool {
		one, ok := <-entered
		if !ok {
			return false
		}
		if _, err := w.admin.PutDomain(w.soon(), yard.Domain{Name: one.domain}); err != nil {
			w.t.Error(err)
			return false
		}
		all <- one
		return true
	})
	close(all)
	return all
}

// floods hands in requests of many tasks, so many at a time, until the returned func is called.
func (w *world) floods(beside, many int) (stop func()) {
	request := make([]yard.Task, many)
	for i := range request {
		request[i] = yard.Task{Type: "flood", Tasklist: list, Payload: strings.Repeat("f", 100)}
	}
	ctx, cancel := context.WithCancel(w.soon())
	var flooding sync.WaitGroup
	flooding.Go(func() {
		side(beside, func() bool {
			_, err := w.client.SubmitMany(ctx, request)
			return err == nil || ctx.Err() == nil // what is refused is handed in again
		})
	})
	return func() {
		cancel()
		flooding.Wait()
	}
}

// TestI11_AFloodDelaysNoSmallTenant: beside a domain that always has many requests waiting at the log, and
// many times the window behind it, hundreds of others hand in a task each. None of these waits for the
// flood's requests to be stored, and all are handed out while the flood's tasks lie on disk.
func TestI11_AFloodDelaysNoSmallTenant(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "floods the system for half a minute and more")
	const window, tenants, floods, many = 4000, 300, 32, 1000
	s := onePartition(t, window, 1+tenants)
	w := enter(t, s)
	small := w.tenants(tenants)
	if t.Failed() {
		return
	}
	defer w.floods(floods, many)()
	w.meter(signals.TasksAccepted, 2*window)

	stored := func() int64 { return meters(t, s)[signals.TasksAccepted.Prometheus()] }
	var mu sync.Mutex
	var passed []int64 // how many requests of the flood were stored during a submit
	side(8, func() bool {
		one, ok := <-small
		if !ok {
			return false
		}
		before := stored()
		id, err := one.client.Submit(w.soon(), yard.Task{Type: "small", Tasklist: list})
		if err != nil {
			t.Errorf("submit of %s: %v", one.domain, err)
			return false
		}
		meanwhile := (stored() - before) / many
		mu.Lock()
		passed = append(passed, meanwhile)
		mu.Unlock()
		polled := one.takeOne("small")
		equal(t, "the task that comes", polled.TaskId, id)
		equal(t, "complete", one.complete(polled), "OK")
		return true
	})
	if len(passed) != tenants {
		t.Fatalf("%d of %d tenants were served", len(passed), tenants)
	}
	slices.Sort(passed)
	t.Logf("requests of the flood that were stored during a submit: median %d, most %d", passed[tenants/2], passed[tenants-1])
	if median := passed[tenants/2]; median > floods/2 { // a submit goes with the next flush, and each has a few of the flood's
		t.Errorf("half of the submits waited for %d requests of the flood, of which %d are under way", median, floods)
	}
}
