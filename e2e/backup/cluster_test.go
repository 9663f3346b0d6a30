package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// soonDue is a delay that ends after the restore, or else before: the task runs once in either case.
const soonDue = 40 * time.Second

// Who copies, and who restores.
var (
	inspector   = permissions.User{Role: permissions.Inspector}
	provisioner = permissions.User{Role: permissions.Provisioner}
)

// tasks are the ids of the tasks of a cluster, by what they are for.
type tasks map[string][]string

// all are all of them.
func (s tasks) all() []string { return slices.Concat(slices.Collect(maps.Values(s))...) }

// fill has a cluster with tasks in every state, and with keys and a batch.
func fill(t *testing.T, c *cluster.Cluster) tasks {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	testkit.NoError(t, testkit.Err(c.Admin().PutDomain(ctx, yard.Domain{Name: domain})))
	client, all := c.Client(domain), tasks{}
	submit := func(what string, n int, task yard.Task) {
		t.Helper()
		task.Tasklist, task.Type, task.Payload = tasklist, what, what
		ids, err := client.SubmitMany(ctx, slices.Repeat([]yard.Task{task}, n))
		testkit.NoError(t, err)
		all[what] = ids
	}
	submit("finished", 20, yard.Task{})
	submit("dead", 5, yard.Task{})
	stop := (&runner{}).start(client, "finished", "dead")
	ended(t, client, all["finished"], yard.StateCompleted)
	ended(t, client, all["dead"], yard.StateDead)
	testkit.NoError(t, stop())
	submit("running", 5, yard.Task{HeartbeatTimeout: 5 * time.Second})
	for got := 0; got < 5; {
		grants, err := client.Wire().Poll(ctx, &yardv1.PollRequest{Tasklist: tasklist, MaxTasks: 5, WaitMs: 5000, Worker: "lost"})
		testkit.NoError(t, err)
		got += len(grants)
	}
	submit("ready", 100, yard.Task{})
	submit("soon", 20, yard.Task{Delay: soonDue})
	submit("later", 20, yard.Task{Delay: time.Hour})
	submit("unique", 1, yard.Task{Unique: &yard.Unique{Key: "bill-7", Reject: true}})
	submit("unique-later", 1, yard.Task{Delay: time.Hour, Unique: &yard.Unique{Key: "bill-8", Reject: true}})
	submit("ordered", 10, yard.Task{OrderKey: "account-1"})
	batch, err := client.NewBatch(ctx, "import", yard.BatchOptions{})
	testkit.NoError(t, err)
	all["batch"], err = batch.Add(ctx, slices.Repeat([]yard.Task{{Tasklist: tasklist, Type: "batch"}}, 10))
	testkit.NoError(t, err)
	testkit.NoError(t, testkit.Err(batch.Close(ctx)))
	for _, id := range slices.Concat(all["later"], all["unique-later"]) {
		inState(t, client, id, yard.StateWaiting)
	}
	return all
}

// inState waits until a task is in a state.
func inState(t *testing.T, client *yard.Client, id string, want yard.State) {
	t.Helper()
	testkit.Eventually(t, within, func() error {
		info, err := client.Get(t.Context(), id)
		if err == nil && info.State != want {
			err = fmt.Errorf("%s is %s", id, info.State)
		}
		return err
	})
}

// ended waits until tasks have ended in a state.
func ended(t *testing.T, client *yard.Client, ids []string, want yard.State) {
	t.Helper()
	for _, id := range ids {
		inState(t, client, id, want)
	}
}

// runner runs tasks, and notes what ran.
type runner struct {
	mu  sync.Mutex
	ran []string
}

// start starts a worker for these types of tasks until stop is called. Those of the type dead fail for good.
func (r *runner) start(client *yard.Client, types ...string) (stop func() error) {
	w := yard.NewWorker(client, tasklist)
	for _, name := range types {
		w.HandleFunc(name, func(_ context.Context, a *yard.Attempt) (yard.Payload, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ran = append(r.ran, a.TaskID)
			if a.Type == "dead" {
				return yard.Payload{}, yard.NonRetryable(errors.New("never"))
			}
			return yard.Payload{}, nil
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	return func() error {
		cancel()
		return <-over
	}
}

// infos are the tasks as the engine shows them.
func infos(t *testing.T, client *yard.Client, ids []string) map[string]*yard.TaskInfo {
	t.Helper()
	all := map[string]*yard.TaskInfo{}
	for _, id := range ids {
		info, err := client.Get(t.Context(), id)
		testkit.NoError(t, err)
		all[id] = info
	}
	return all
}

// refuses runs a command that is refused, and says why.
func refuses(t *testing.T, out string, err error, why ...string) {
	t.Helper()
	for _, text := range why {
		if err == nil || !strings.Contains(out, text) {
			t.Errorf("%v\n%s\nwant %q", err, out, text)
		}
	}
}

// TestI1_ABackupOfAClusterAtRest runs what infra/docs/operations.md says: a sealed cluster on three nodes of NATS is stopped, copied,
// and restored to three others.
// Every task is known there, and goes on; what had finished does not run again. L19.
func TestI1_ABackupOfAClusterAtRest(t *testing.T) {
	long(t)
	bin, err := cluster.Build()
	testkit.NoError(t, err)
	t.Cleanup(func() { testkit.Check(t, bin.Remove()) })
	dir := filepath.Join(t.TempDir(), "backup")
	from := cluster.Start(t, bin, 1, cluster.WithNATSNodes(3), cluster.WithSealed(), cluster.WithFlagsOf(cluster.History, "--partition.snapshot-every", "1s"))
	all := fill(t, from)
	client := from.Client(domain)
	snapshotted(t, from)
	before := infos(t, client, all.all())
	for _, s := range []cluster.Service{cluster.Frontend, cluster.Matching, cluster.History} {
		from.Term(s, 0)
	}
	out, err := from.Yard(bin, inspector, "backup", "create", dir)
	refuses(t, out, err, "not at rest", "timer timer-0")
	from.Term(cluster.Timer, 0)
	began := time.Now()
	out, err = from.Yard(bin, inspector, "backup", "create", dir)
	if err != nil {
		t.Fatalf("create: %v\n%s", err, out)
	}
	t.Logf("create took %v:\n%s", time.Since(began), out)
	out, err = from.Yard(bin, provisioner, "backup", "restore", dir, "--replicas", "3")
	refuses(t, out, err, "these exist", topology.TimerStream(0))
	from.KillNATS()

	to := cluster.New(t, bin, 1, cluster.WithNATSNodes(3), cluster.WithSealed())
	to.StartNATS()
	began = time.Now()
	if out, err = to.Yard(bin, provisioner, "backup", "restore", dir, "--replicas", "3"); err != nil {
		t.Fatalf("restore: %v\n%s", err, out)
	}
	t.Logf("restore took %v:\n%s", time.Since(began), out)
	to.AwaitReplicas()
	to.StartServices()
	to.AwaitReady()
	client = to.Client(domain)
	for id, info := range infos(t, client, all.all()) {
		if fixed := !slices.Contains(slices.Concat(all["running"], all["soon"]), id); fixed && !reflect.DeepEqual(info, before[id]) {
			t.Errorf("it was %+v, and is %+v", before[id], info)
		}
	}
	goesOn(t, client, all)
	to.CheckAll()
}

// snapshotted waits until a partition has saved its state.
func snapshotted(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	js, err := jetstream.New(c.Inside())
	testkit.NoError(t, err)
	testkit.Eventually(t, within, func() error {
		for p := range topology.DefaultPartitioning().History {
			stream, err := js.Stream(t.Context(), topology.SnapshotStream(p))
			if err == nil && stream.CachedInfo().State.Msgs > 0 {
				return nil
			}
		}
		return errors.New("there is no snapshot")
	})
}

// goesOn runs all that is due or gets due, and checks that nothing else runs.
func goesOn(t *testing.T, client *yard.Client, all tasks) {
	t.Helper()
	for what, key := range map[string]string{"unique": "bill-7", "unique-later": "bill-8"} {
		_, err := client.Submit(t.Context(), yard.Task{Tasklist: tasklist, Type: what, Unique: &yard.Unique{Key: key, Reject: true}})
		testkit.Code(t, "a second task of a unique key", err, fault.AlreadyExists)
	}
	due := slices.Concat(all["running"], all["ready"], all["soon"], all["unique"], all["ordered"], all["batch"])
	r := &runner{}
	stop := r.start(client, slices.Collect(maps.Keys(all))...)
	ended(t, client, due, yard.StateCompleted)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	info, err := client.Batch("import").Wait(ctx)
	testkit.NoError(t, err)
	testkit.Equal(t, "the batch", info.State, yard.BatchCompleted)
	// What is submitted now is behind all of that.
	fresh, err := client.Submit(t.Context(), yard.Task{Tasklist: tasklist, Type: "unique", Unique: &yard.Unique{Key: "bill-7", Reject: true}})
	testkit.NoError(t, err)
	ended(t, client, []string{fresh}, yard.StateCompleted)
	testkit.NoError(t, stop())
	ended(t, client, slices.Concat(all["later"], all["unique-later"]), yard.StateWaiting)
	testkit.Equal(t, "what ran", slices.Sorted(slices.Values(r.ran)), slices.Sorted(slices.Values(append(due, fresh))))
	ordered := slices.DeleteFunc(slices.Clone(r.ran), func(id string) bool { return !slices.Contains(all["ordered"], id) })
	testkit.Equal(t, "the order of a key", ordered, all["ordered"])
}
