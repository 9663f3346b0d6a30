package scenario_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/services/frontend"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// hasty has numbers of partitions set within seconds, at rates that any machine brings about.
func hasty() *stack.Services {
	all := stack.DefaultServices()
	scale := &all.Frontend.Gateway.Scale
	scale.Every, scale.TasksPerSecond, scale.UpAfter, scale.DownAfter = 100*time.Millisecond, 20, time.Second, 3*time.Second
	return &all
}

// scaling are the kinds of stacks with a hasty scaler, each with a domain whose tasklist has one partition, and may have four.
func scaling(t *testing.T, scenario func(t *testing.T, w *world)) {
	t.Helper()
	eachKind(t, func(t *testing.T, tables stack.Tables) {
		w := enter(t, own(t, stack.Config{Partitioning: topology.Partitioning{History: 2, Matching: 4}, Tables: tables, Services: hasty()}))
		testkit.NoError(t, testkit.Err(w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, PartitionsMax: 4})))
		scenario(t, w)
	})
}

// load is tasks that are handed in, and what ran of them.
type load struct {
	*world
	book *spreadBook
}

func (w *world) load() *load {
	return &load{w, &spreadBook{from: map[string]time.Time{}, to: map[string]time.Time{}, runs: map[string]int{}}}
}

// until hands in so many tasks, again and again, until the tasklist has at least so many partitions, or at most.
func (l *load) until(tasks int, pause time.Duration, enough func(partitions int) bool) {
	l.t.Helper()
	every := time.NewTicker(pause)
	defer every.Stop()
	for end := time.Now().Add(within); ; <-every.C {
		all := many(tasks, &yardv1.NewTask{Type: "x"})
		l.book.submitted(time.Now(), l.submit(all...))
		n, err := l.now()
		switch {
		case err == nil && enough(n):
			return
		case time.Now().After(end):
			l.t.Fatalf("%d partitions, %v", n, err)
		}
	}
}

// now is over how many partitions the tasklist is spread.
func (w *world) now() (int, error) {
	d, err := w.client.DescribeTasklist(w.soon(), list)
	if err != nil {
		return 0, err
	}
	if d.PartitionsLeast != 1 || d.PartitionsMax != 4 {
		return 0, fmt.Errorf("described as %+v", d)
	}
	return max(1, d.Partitions), nil
}

// workers runs so many until the test ends.
func (l *load) workers(n int) {
	for range n {
		l.t.Cleanup(l.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "x", func(ctx context.Context, _ struct{}) (struct{}, error) {
				l.book.ran(yard.Info(ctx).TaskID)
				return struct{}{}, nil
			})
		}, yard.WithConcurrency(1)))
	}
}

// TestABurstSpreadsATasklist (burst_adaptive of Cadence's simulation): a tasklist begins with one partition and gets more under load; each task
// runs once.
func TestABurstSpreadsATasklist(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	scaling(t, func(t *testing.T, w *world) {
		l := w.load()
		if n, err := l.now(); err != nil || n != 1 {
			t.Fatalf("begins with %d partitions, %v", n, err)
		}
		l.workers(8)
		l.until(20, 50*time.Millisecond, func(n int) bool { return n == 4 })
		set, err := w.client.GetTasklist(w.soon(), list)
		if err != nil || set.PartitionsNow < 2 || set.PartitionsMax != 4 || set.Partitions != 0 {
			t.Errorf("got %+v, %v", set, err)
		}
		l.until(20, 50*time.Millisecond, func(int) bool { return true }) // also those that are spread
		w.eventually(l.book.complete)
	})
}

// TestARateThatFluctuates (fluctuating_adaptive): more partitions under load, and fewer after it, while tasks wait in those that are no more.
// They drain once there are workers: nothing is lost, nothing runs twice.
func TestARateThatFluctuates(t *testing.T) {
	testkit.Slow(t, "floods the system for half a minute and more")
	scaling(t, func(t *testing.T, w *world) {
		l := w.load()
		l.until(20, 50*time.Millisecond, func(n int) bool { return n == 4 })
		l.until(20, time.Second, func(int) bool { return true })
		l.until(1, 500*time.Millisecond, func(n int) bool { return n == 1 })
		l.workers(4)
		w.eventually(l.book.complete)
		w.described(list, func(d yard.TasklistInfo) bool { return d.Ready+d.Running <= 0 })
		l.until(20, 50*time.Millisecond, func(n int) bool { return n > 1 }) // and up again
		w.eventually(l.book.complete)
	})
}

// second runs a frontend beside that of the stack until the test ends.
func (w *world) second() {
	w.t.Helper()
	nc, err := sealed.Connect(w.stack, permissions.User{Role: permissions.Frontend}, nats.Name("second"))
	testkit.NoError(w.t, err)
	env := process.Env{NATS: nc, Partitioning: topology.Partitioning{History: 2, Matching: 4}, Node: "second"}
	service, err := frontend.New(frontend.Deps{Env: env, Config: hasty().Frontend})
	testkit.NoError(w.t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		testkit.Check(w.t, <-ended)
		nc.Close()
	})
	select {
	case <-service.Ready():
	case err := <-ended:
		w.t.Fatalf("the second frontend did not start: %v", err)
	}
}

// TestTwoFrontendsScaleAsOne: both see the same rates, and write one record, whose number goes up under load, and down after it. It goes
// with the settings.
func TestTwoFrontendsScaleAsOne(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	scaling(t, func(t *testing.T, w *world) {
		w.second()
		kv, err := w.inside().KeyValue(w.soon(), topology.ConfigBucket)
		testkit.NoError(t, err)
		watch, err := kv.Watch(context.Background(), catalog.Scales.Keys())
		testkit.NoError(t, err)
		defer func() { _ = watch.Stop() }()
		l := w.load()
		l.workers(8)
		l.until(20, 50*time.Millisecond, func(n int) bool { return n == 4 })
		l.until(1, 500*time.Millisecond, func(n int) bool { return n == 1 })
		w.eventually(l.book.complete)
		testkit.NoError(t, testkit.Err(w.client.DeleteTasklist(w.soon(), list, 0)))
		var numbers []int
		for e := range watch.Updates() {
			if e == nil {
				continue
			}
			equal(t, "key", e.Key(), catalog.Scales.Key(w.domain, list))
			if e.Operation() != jetstream.KeyValuePut {
				break
			}
			var s rpcv1.TasklistScale
			testkit.NoError(t, codec.Unmarshal(codec.JSON, e.Value(), &s))
			numbers = append(numbers, int(s.Partitions))
		}
		// Where the machine is too slow for the load the number goes down meanwhile, and up again while the rest of the tasks is done, but no one
		// writes what the other has written.
		most := slices.Index(numbers, 4)
		if again := slices.Compact(slices.Clone(numbers)); len(again) < len(numbers) || slices.Max(numbers) != 4 || !slices.Contains(numbers[most+1:], 1) {
			t.Errorf("stored one after the other: %v", numbers)
		}
	})
}
