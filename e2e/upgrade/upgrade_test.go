package upgrade

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// within bounds what happens soon in a healthy run.
const within = 120 * time.Second

const domain, tasklist = "upgraded", "work"

// nextVersion is what the newer binaries read and write.
var nextVersion = logversion.Newest() + 1

// older and newer are built once for all tests.
var older, newer cluster.Binaries

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if testkit.Quick() {
		return m.Run(), nil // its tests skip themselves
	}
	if older, err = cluster.Build(); err != nil {
		return 1, err
	}
	defer func() { _ = older.Remove() }() // a temporary folder
	if newer, err = cluster.Build(fmt.Sprintf("-ldflags=-s -w -X github.com/yardmaster-io/yardmaster/contracts/logversion.newest=%d", nextVersion)); err != nil {
		return 1, err
	}
	defer func() { _ = newer.Remove() }()
	if code = m.Run(); code == 0 {
		err = goleak.Find()
	}
	return code, err
}

// rollout is a cluster on its way from the older binaries to the newer ones.
type rollout struct {
	*cluster.Cluster
	t      *testing.T
	client *yard.Client
	// old and new are the numbers of the processes, by service.
	old, new map[cluster.Service]int
	rounds   int
}

// startOld starts a cluster of the older binaries, with a worker at work.
func startOld(t *testing.T) *rollout {
	t.Helper()
	r := &rollout{
		Cluster: cluster.Start(t, older, 1), t: t,
		old: map[cluster.Service]int{}, new: map[cluster.Service]int{},
	}
	for _, s := range cluster.Services() {
		r.old[s] = 0
	}
	r.client = r.Client(domain)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	testkit.NoError(t, testkit.Err(r.Admin().PutDomain(ctx, yard.Domain{Name: domain})))
	w := yard.NewWorker(r.Client(domain), tasklist, yard.WithLogger(slog.New(slog.DiscardHandler)))
	yard.Handle(w, "echo", func(_ context.Context, text string) (string, error) { return text, nil })
	working, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(working) }()
	t.Cleanup(func() {
		stop()
		testkit.Check(t, <-ended)
	})
	return r
}

// join starts one process of each service of the newer binaries.
func (r *rollout) join() {
	r.t.Helper()
	for _, s := range cluster.Services() {
		r.new[s] = r.Add(newer, s)
		r.Restart(s, r.new[s])
		r.AwaitProcess(s, r.new[s])
	}
}

// leave ends the old process of a service, if it still runs.
func (r *rollout) leave(s cluster.Service) {
	r.t.Helper()
	if i, ok := r.old[s]; ok {
		r.Term(s, i)
		delete(r.old, s)
	}
}

// flows runs tasks to their end, some at once and some after a delay in the timer.
func (r *rollout) flows(when string) {
	r.t.Helper()
	r.rounds++
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	var all sync.WaitGroup
	for i := range 20 {
		task := yard.Task{Type: "echo", Tasklist: tasklist, Payload: fmt.Sprintf("%d-%d", r.rounds, i)}
		if i%4 == 0 {
			task.Delay = 1500 * time.Millisecond
		}
		all.Go(func() {
			got, err := yard.Run[string](ctx, r.client, task)
			if err != nil || got != task.Payload {
				r.t.Errorf("%s: task %v gave %q: %v", when, task.Payload, got, err)
			}
		})
	}
	all.Wait()
	r.Check()
	if r.t.Failed() {
		r.t.FailNow()
	}
}

// finalize runs `yard upgrade finalize`.
func (r *rollout) finalize(args ...string) (out string, err error) {
	return r.Yard(newer, sealed.Operator(), append([]string{"upgrade", "finalize"}, args...)...)
}

// jetStream connects to the cluster's streams.
func (r *rollout) jetStream() (js jetstream.JetStream, partitions int) {
	r.t.Helper()
	js, err := jetstream.New(r.Inside())
	testkit.NoError(r.t, err)
	n, err := provision.Partitioning(r.t.Context(), js)
	testkit.NoError(r.t, err)
	return js, n.History
}

// written counts the batches of the history logs by the log version they carry.
func (r *rollout) written() map[uint32]int {
	r.t.Helper()
	js, partitions := r.jetStream()
	found := map[uint32]int{}
	for p := range partitions {
		err := natslog.ReadAll(r.t.Context(), js, natslog.ReadConfig{Stream: topology.HistoryStream(p)}, func(m natslog.Record) error {
			switch m.Subject {
			case topology.Fired(p):
				var c logv1.Cursor
				err := c.UnmarshalVT(m.Data)
				found[c.LogVersion]++
				return err
			case topology.Event(p):
				var b logv1.Turn
				err := b.UnmarshalVT(m.Data)
				found[b.LogVersion]++
				return err
			}
			var b logv1.Batch
			err := b.UnmarshalVT(m.Data)
			found[b.LogVersion]++
			return err
		})
		testkit.NoError(r.t, err)
	}
	return found
}

// TestI13ARollingUpgrade: programs of two versions serve one cluster; its version is
// raised when the last old one has left, and an old one that comes back refuses to
// start and takes no partition. R21.
func TestI13ARollingUpgrade(t *testing.T) {
	t.Parallel()
	r := startOld(t)
	r.flows("old alone")
	r.join()
	r.flows("side by side")
	if n := r.written()[nextVersion]; n > 0 {
		t.Errorf("%d batches of the next version were written while old programs ran", n)
	}
	for _, args := range [][]string{nil, {"--yes"}} {
		out, err := r.finalize(args...)
		if err == nil || !strings.Contains(out, fmt.Sprint("history history-0 reads ", nextVersion-1)) {
			t.Errorf("finalize with old members: %v\n%s", err, out)
		}
	}
	for _, s := range cluster.Services() {
		r.leave(s)
	}
	r.flows("new alone")
	if n := r.written()[nextVersion]; n > 0 {
		t.Errorf("%d batches of the next version were written before it was in force", n)
	}

	if out, err := r.finalize(); err != nil || !strings.Contains(out, fmt.Sprint("would write log version ", nextVersion)) {
		t.Errorf("finalize without --yes: %v\n%s", err, out)
	}
	if out, err := r.finalize("--yes"); err != nil || !strings.Contains(out, fmt.Sprintf("writes log version %d now", nextVersion)) {
		t.Fatalf("finalize: %v\n%s", err, out)
	}
	r.flows("finalized")
	if n := r.written()[nextVersion]; n == 0 {
		t.Error("nothing of the next version was written after it came into force")
	}

	for _, s := range cluster.Services() {
		before := strings.Count(r.Log(s, 0), "partition acquired")
		r.Restart(s, 0)
		r.AwaitRefusal(s, 0)
		log := r.Log(s, 0)
		if !strings.Contains(log, fmt.Sprintf("log version %d is not known to this program, which reads up to %d: run a newer version of it", nextVersion, nextVersion-1)) {
			t.Errorf("%s does not say why it ended:\n%s", s, log)
		}
		if n := strings.Count(log, "partition acquired"); n != before {
			t.Errorf("%s took %d partitions that it cannot read", s, n-before)
		}
	}
	r.flows("an old one came back")
}
