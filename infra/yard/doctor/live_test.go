package doctor_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/doctor"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// clinic is an engine that runs, and what looks at it.
type clinic struct {
	t      *testing.T
	stack  *stack.Stack
	client *yard.Client
	js     jetstream.JetStream
	redis  *redis.Client
	tables *doctor.Tables
}

func open(t *testing.T, withRedis bool) *clinic {
	t.Helper()
	services := stack.DefaultServices()
	services.History.Partition.PurgeEvery = time.Second // it moves all the time
	cfg := stack.Config{Sync: "10m", Tables: stack.TablesMemory, Partitioning: topology.Partitioning{History: 2, Matching: 2}, Services: &services}
	x := &clinic{t: t}
	if withRedis {
		r := testkit.RunRedis(t)
		cfg.Tables, cfg.Redis = stack.TablesRedis, "redis://"+r.Addr
		x.redis = redis.NewClient(&redis.Options{Addr: r.Addr, DisableIdentity: true})
		t.Cleanup(func() { _ = x.redis.Close() })
	}
	x.stack = start(t, cfg)
	x.client = client(t, x.stack)
	nc, err := x.stack.Connect("doctor")
	testkit.NoError(t, err)
	t.Cleanup(nc.Close)
	if x.js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	if withRedis {
		x.tables = doctor.NewTables(x.redis, nc)
	}
	testkit.NoError(t, testkit.Err(x.client.PutType(t.Context(), yard.TaskType{Name: "slim", MaxConcurrency: 7})))
	return x
}

func (x *clinic) examine(opts doctor.Options) *doctor.Report {
	x.t.Helper()
	report, err := doctor.Examine(x.t.Context(), x.js, x.tables, opts)
	if err != nil {
		x.t.Fatal(err)
	}
	return report
}

// batch makes one that ends while the next one begins.
func (x *clinic) batch(ctx context.Context, id string) error {
	b, err := x.client.NewBatch(ctx, id, yard.BatchOptions{Callback: &yard.Task{Type: "slim", Tasklist: list}})
	if err == nil {
		_, err = b.Add(ctx, []yard.Task{{Type: "slim", Tasklist: list}, {Type: "bad", Tasklist: list}, {Type: "late", Tasklist: list, Delay: 200 * time.Millisecond}})
	}
	if err == nil {
		_, err = b.Close(ctx)
	}
	return err
}

// load submits tasks of all kinds until stop is called, which returns how many.
func (x *clinic) load() (stop func() int64) {
	work(x.t, x.client)
	ctx, cancel := context.WithCancel(x.t.Context())
	var n atomic.Int64
	ended := make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			_, err := x.client.SubmitMany(ctx, []yard.Task{
				{Type: "slim", Tasklist: list},
				{Type: "slim", Tasklist: list, Priority: 1},
				{Type: "bad", Tasklist: list},
				{Type: "late", Tasklist: list, Delay: time.Duration(i%5) * 100 * time.Millisecond},
				{Type: "shaky", Tasklist: list, Retry: &yard.RetryPolicy{MaxAttempts: 4, InitialInterval: 50 * time.Millisecond}},
				{Type: "unheard", Tasklist: "other"},
			})
			if err == nil {
				_, err = x.client.SubmitEach(ctx, []yard.Task{
					{Type: "slim", Tasklist: list, Unique: &yard.Unique{Key: fmt.Sprint("k", i%3)}},
					{Type: "late", Tasklist: list, Delay: 200 * time.Millisecond, Unique: &yard.Unique{Key: fmt.Sprint("l", i)}},
				})
			}
			if err == nil && i%10 == 0 {
				err = x.batch(ctx, fmt.Sprint("batch", i))
			}
			if ctx.Err() != nil {
				ended <- nil
				return
			}
			if err != nil {
				ended <- err
				return
			}
			n.Add(8)
		}
	}()
	return func() int64 {
		cancel()
		if err := <-ended; err != nil {
			x.t.Errorf("the load: %v", err)
		}
		return n.Load()
	}
}

// TestNoFalseAlarmUnderLoad: tasks that move all the time are no findings, with and without Redis, in one pass and in many.
func TestNoFalseAlarmUnderLoad(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "runs a load for seconds")
	for _, withRedis := range []bool{false, true} {
		t.Run(fmt.Sprintf("redis %v", withRedis), func(t *testing.T) {
			t.Parallel()
			x := open(t, withRedis)
			stop := x.load()
			opts := doctor.Options{Wait: 300 * time.Millisecond}
			looks := 0
			for began := time.Now(); time.Since(began) < 8*time.Second; looks++ {
				if report := x.examine(opts); !report.Clean() {
					t.Errorf("it finds under load:\n%+v", report.Findings)
				}
				opts.TasksMax = 300 - opts.TasksMax // in many passes each second time
			}
			n := stop()
			report := x.examine(doctor.Options{Wait: 300 * time.Millisecond})
			if !report.Clean() || report.Scanned.Archived == 0 { // how many depends on the machine
				t.Errorf("after %d tasks it finds, in %+v:\n%+v", n, report.Scanned, report.Findings)
			}
			t.Logf("%d tasks, %d examinations: %+v, not checked: %q", n, looks, report.Scanned, report.Unchecked)
		})
	}
}

// TestSlotsThatRunAreNotLeaked: attempts of a limited type run while it looks.
func TestSlotsThatRunAreNotLeaked(t *testing.T) {
	t.Parallel()
	x := open(t, true)
	w := yard.NewWorker(x.client, list)
	began, end := make(chan struct{}, 5), make(chan struct{})
	yard.Handle(w, "slim", func(context.Context, string) (string, error) {
		began <- struct{}{}
		<-end
		return "", nil
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for range 5 {
		testkit.NoError(t, testkit.Err(x.client.Submit(t.Context(), yard.Task{Type: "slim", Tasklist: list, Payload: ""})))
	}
	for range 5 {
		select {
		case <-began:
		case <-time.After(within):
			t.Fatal("it does not run")
		}
	}
	report := x.examine(doctor.Options{Wait: time.Second})
	if !report.Clean() || report.Scanned.Limits == 0 {
		t.Errorf("it looks at %d limits and finds %+v", report.Scanned.Limits, report.Findings)
	}
	close(end)
	cancel()
	testkit.Check(t, <-ended)
}
