package natshistory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/batches"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// keeping is a server with two partitions, and keepers of batches on it.
type keeping struct {
	t     *testing.T
	cfg   Config
	parts topology.Partitioning
}

func newKeeping(t *testing.T) *keeping {
	t.Helper()
	nc := natskit.Run(t).Connect(t)
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	k := &keeping{t: t, parts: topology.Partitioning{History: 2, Matching: 1}, cfg: Config{NATS: nc, JetStream: js, LogVersion: version1, Log: slog.New(slog.DiscardHandler)}}
	testkit.NoError(t, provision.Apply(t.Context(), js, k.parts, provision.Options{}))
	for p, counted := range []*rpcv1.CountBatchResponse{ // in the place of the owners
		{Tasks: 3, Complete: true, Ends: &logv1.BatchEnds{Completed: 1, Dead: 1, Expired: 1}},
		{Tasks: 2, Complete: true, Ends: &logv1.BatchEnds{Completed: 1, Cancelled: 1}},
	} {
		sub, err := natsrpc.Serve(nc, topology.HistoryCall(p, "batch"), nil, k.cfg.Log, func(context.Context, *rpcv1.CountBatchRequest) (natsrpc.Message, error) {
			return counted, nil
		})
		testkit.NoError(t, err)
		t.Cleanup(func() { testkit.Check(t, sub.Unsubscribe()) })
	}
	return k
}

func (k *keeping) of(p int) Config {
	cfg := k.cfg
	cfg.Partition = p
	return cfg
}

func (k *keeping) put(subject string, record interface{ MarshalVT() ([]byte, error) }) {
	k.t.Helper()
	data, err := record.MarshalVT()
	if err == nil {
		_, _, err = natslog.Append(k.t.Context(), k.cfg.NATS, natslog.Msg{Subject: subject, Data: data}.InPlace(time.Hour))
	}
	testkit.NoError(k.t, err)
}

// closed makes a batch that is closed, whose tasks in both partitions have ended.
func (k *keeping) closed(id string) (name batch.Name) {
	k.t.Helper()
	now := time.Now().UnixMilli()
	name = batch.Name{Domain: "shop", ID: id, Made: now}
	home := topology.BatchPartition(name.Domain, id, k.parts)
	k.put(topology.BatchHome(home, name.Domain, id), &logv1.BatchHome{
		BatchId: id, LogVersion: 1, CreatedAtMs: now, ClosedAtMs: now, ExpiresAtMs: now + time.Hour.Milliseconds(), KeepMs: time.Hour.Milliseconds(),
		Callback: &logv1.Record{Domain: name.Domain, Type: "callback", Tasklist: "mail", Priority: 3, Policy: &logv1.Policy{MaxAttempts: 1}},
	})
	return name
}

// keep runs a keeper of a partition until stop is called.
func (k *keeping) keep(p int, wrap func(s batches.Store, kill func()) batches.Store) (stop func()) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(k.t.Context())
	store := Batches{k.of(p)}
	deps := batches.Deps{Partition: p, Partitions: 2, Store: store, Hints: store.Hints, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	if wrap != nil {
		deps.Store = wrap(store, cancel)
	}
	ended := make(chan error, 1)
	go func() { ended <- batches.New(deps).Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			k.t.Errorf("the keeper: %v", err)
		}
	})
}

// over waits until a batch is over, and checks that it ended once, and right.
func (k *keeping) over(name batch.Name) {
	k.t.Helper()
	home := topology.BatchPartition(name.Domain, name.ID, k.parts)
	var was *batches.Loaded
	testkit.Eventually(k.t, time.Minute, func() (err error) {
		was, err = Batches{k.of(home)}.Load(k.t.Context(), name)
		if err == nil && was.Home.EndedAtMs == 0 {
			err = errors.New("it is not over")
		}
		return err
	})
	ends := was.Home.Ends
	testkit.Equal(k.t, fmt.Sprintf("%s is over with", name.ID), fmt.Sprint(was.Home.Expired, was.Home.Tasks, ends.Completed, ends.Dead, ends.Cancelled, ends.Expired), "false 5 2 1 1 1")
	var calls []ids.TaskID
	err := natslog.ReadAll(k.t.Context(), k.cfg.JetStream, natslog.ReadConfig{Stream: topology.HistoryStream(home)}, func(r natslog.Record) error {
		var b logv1.Batch
		if !topology.IsSubmit(home, r.Subject) || b.UnmarshalVT(r.Data) != nil {
			return nil
		}
		for _, task := range b.Tasks {
			for _, h := range task.Headers {
				if h.Name == "yard-batch-id" && h.Value == name.ID {
					calls = append(calls, ids.TaskID(task.Id))
				}
			}
		}
		return nil
	})
	if err != nil || len(calls) != 1 || string(calls[0][:]) != string(was.Home.CallbackTaskId) {
		k.t.Errorf("%s has the callbacks %v, and names %x: %v", name.ID, calls, was.Home.CallbackTaskId, err)
	}
}

// TestWhatIsNoBatchHoldsUpNoOther: a message that cannot be decoded is passed over, and the others of its partition end.
func TestWhatIsNoBatchHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "stores much, or waits for the server")
	k := newKeeping(t)
	for p := range 2 {
		for _, data := range [][]byte{{0xff}, nil} {
			if _, _, err := natslog.Append(t.Context(), k.cfg.NATS, natslog.Msg{Subject: topology.BatchHome(p, "shop", fmt.Sprint("bad", len(data))), Data: data}); err != nil {
				t.Fatal(err)
			}
		}
	}
	name := k.closed("good")
	home := topology.BatchPartition(name.Domain, name.ID, k.parts)
	stop := k.keep(home, nil)
	k.over(name)
	stop()
}

// TestANewerBatchStopsItsKeeper: it may have been made by rules that are not known here.
func TestANewerBatchStopsItsKeeper(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.put(topology.BatchHome(0, "shop", "new"), &logv1.BatchHome{BatchId: "new", LogVersion: 1000})
	store := Batches{k.of(0)}
	keeper := batches.New(batches.Deps{Partition: 0, Partitions: 2, Store: store, Now: time.Now, Log: k.cfg.Log})
	if err := keeper.Run(t.Context()); !errors.Is(err, partition.ErrUnreadable) {
		t.Errorf("it ended with %v", err)
	}
}

// cutOff is a store whose keeper is killed at one of its calls: before it is carried out, or after it, so that its answer is lost.
type cutOff struct {
	batches.Store
	kill func()
	of   batch.Name

	mu     sync.Mutex
	at     int
	before bool
	did    []string
}

var errKilled = errors.New("killed")

// call carries out a call, if the keeper lives on until then.
func (c *cutOff) call(name batch.Name, what string, do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name != c.of {
		return do()
	}
	if c.at < 0 {
		return errKilled
	}
	if c.at--; c.at >= 0 {
		c.did = append(c.did, what)
		return do()
	}
	defer c.kill()
	if !c.before {
		_ = do() // no one hears of it
	}
	return errKilled
}

func (c *cutOff) Load(ctx context.Context, n batch.Name) (was *batches.Loaded, err error) {
	return was, errors.Join(err, c.call(n, "load", func() error { was, err = c.Store.Load(ctx, n); return err }))
}

func (c *cutOff) Close(ctx context.Context, n batch.Name, p int) error {
	return c.call(n, "close", func() error { return c.Store.Close(ctx, n, p) })
}

func (c *cutOff) Count(ctx context.Context, n batch.Name, p int, counted bool) (tally batch.Tally, complete bool, err error) {
	err = c.call(n, "count", func() error { tally, complete, err = c.Store.Count(ctx, n, p, counted); return err })
	return tally, complete, err
}

func (c *cutOff) End(ctx context.Context, was *batches.Loaded, over *logv1.BatchHome, callback *logv1.Record) error {
	return c.call(c.of, "end", func() error { return c.Store.End(ctx, was, over, callback) })
}

func (c *cutOff) Forget(ctx context.Context, n batch.Name, p int) error {
	return c.call(n, "forget", func() error { return c.Store.Forget(ctx, n, p) })
}

// TestABatchEndsOnceWhereverItsKeeperIsKilled: at each call of its store, before or after that is carried out. The next keeper comes then, or is there already.
func TestABatchEndsOnceWhereverItsKeeperIsKilled(t *testing.T) {
	t.Parallel()
	for _, beside := range []bool{false, true} {
		t.Run(fmt.Sprintf("beside another %v", beside), func(t *testing.T) {
			t.Parallel()
			k := newKeeping(t)
			whole := ""
			for at := 0; ; at++ {
				killed := false
				for _, before := range []bool{true, false} {
					name := k.closed(fmt.Sprintf("b-%d-%v", at, before))
					home := topology.BatchPartition(name.Domain, name.ID, k.parts)
					var c *cutOff
					dead := make(chan struct{})
					stop := k.keep(home, func(s batches.Store, kill func()) batches.Store {
						c = &cutOff{Store: s, of: name, at: at, before: before, kill: sync.OnceFunc(func() { kill(); close(dead) })}
						return c
					})
					next := func() {}
					if beside {
						next = k.keep(home, nil)
					}
					if !beside {
						c.awaitEnd(t, dead)
						stop()
						next = k.keep(home, nil)
					}
					k.over(name)
					next()
					stop()
					c.mu.Lock()
					killed, whole = killed || c.at < 0, strings.Join(c.did, " ")
					c.mu.Unlock()
				}
				if !killed {
					t.Logf("it is over after %s", whole)
					break
				}
			}
			if !strings.Contains(whole, "end") && !beside {
				t.Errorf("the last keeper did %s", whole)
			}
		})
	}
}

// awaitEnd waits until its keeper is killed, or has forgotten the batch in each partition.
func (c *cutOff) awaitEnd(t *testing.T, dead <-chan struct{}) {
	t.Helper()
	testkit.Eventually(t, time.Minute, func() error {
		select {
		case <-dead:
			return nil
		default:
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if n := strings.Count(strings.Join(c.did, " "), "forget"); n < 2 {
			return fmt.Errorf("it did %v", c.did)
		}
		return nil
	})
}
