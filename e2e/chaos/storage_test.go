package chaos_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// logBytes is what each log may take while it is full.
	logBytes = 4 << 20
	// heldTasks are running meanwhile.
	heldTasks = 20
	// fillTasks go in one request, each of fillBytes.
	fillTasks, fillBytes = 50, 4 << 10
)

// TestI1_R43_FullStorage fills the log: submits are refused at once and say why, what runs can be
// heartbeaten, completed and failed, readiness warns, and all goes on by itself when there
// is room. Nothing that was accepted is lost, nothing that was refused is there.
func TestI1_R43_FullStorage(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "disturbs a cluster of processes")
	c := cluster.Start(t, binaries, instances)
	s := &storageRun{t: t, cluster: c, client: c.Client(domain), accepted: map[string]bool{}, done: map[string]bool{}}
	define(t, c, s.client, yard.TaskType{Name: plainType, StartToClose: 10 * time.Minute})
	testkit.NoError(t, s.submit(heldTasks))
	held := s.poll(heldTasks)

	s.limitLogs(logBytes)
	s.fill()
	s.awaitSaid(true)
	if out, err := c.Yard(binaries, sealed.Operator(), "status"); err != nil || !strings.Contains(out, "storage is full") {
		t.Errorf("yard status: %v\n%s", err, out)
	} else {
		t.Logf("yard status:\n%s", out)
	}
	s.refused()

	began := time.Now()
	s.heartbeat(held)
	s.complete(held[:heldTasks/2])
	s.fail(held[heldTasks/2:])
	t.Logf("%d tasks that ran were heartbeaten, completed and failed within %v", len(held), time.Since(began).Round(time.Millisecond))

	s.limitLogs(64 * logBytes)
	testkit.Eventually(t, within, func() error { return s.submit(1) })
	s.awaitSaid(false)
	for len(s.done) < len(s.accepted) {
		s.complete(s.poll(pollTasks))
	}
	if !maps.Equal(s.done, s.accepted) {
		t.Errorf("%d tasks were accepted, %d others or less were completed", len(s.accepted), len(s.done))
	}
	c.CheckAll()
}

type storageRun struct {
	t       *testing.T
	cluster *cluster.Cluster
	client  *yard.Client
	// accepted and done are ids of tasks.
	accepted, done map[string]bool
}

// limitLogs is the operator's hand: it bounds each log, and the frontends' balance with it.
func (s *storageRun) limitLogs(bytes int64) {
	s.t.Helper()
	js, err := jetstream.New(s.cluster.Inside())
	testkit.NoError(s.t, err)
	for p := range topology.DefaultPartitioning().History {
		stream, err := js.Stream(s.t.Context(), topology.HistoryStream(p))
		if err == nil {
			cfg := stream.CachedInfo().Config
			cfg.MaxBytes = bytes
			_, err = js.UpdateStream(s.t.Context(), cfg)
		}
		testkit.NoError(s.t, err)
	}
}

// refused submits without the SDK, which repeats what is refused, and logs after how long the
// refusals came.
func (s *storageRun) refused() {
	s.t.Helper()
	nc := s.cluster.Conn(domain)
	var took []time.Duration
	for range 20 {
		began := time.Now()
		answer, err := nc.Request(topology.API(domain, "tasks.submit"), []byte(`{"tasks":[{"type":"plain","tasklist":"work"}]}`), within)
		testkit.NoError(s.t, err)
		took = append(took, time.Since(began))
		if code := answer.Header.Get(micro.ErrorCodeHeader) + answer.Header.Get(micro.ErrorHeader) + string(answer.Data); !strings.Contains(code, string(fault.ResourceExhausted)) || !strings.Contains(code, "storage is full") {
			s.t.Fatalf("a submit into the full log: %v %s", answer.Header, answer.Data)
		}
	}
	s.t.Logf("refused within %v", slices.Max(took).Round(10*time.Microsecond))
}

// submitTry bounds one submit: the SDK repeats what is refused.
const submitTry = 2 * time.Second

func (s *storageRun) submit(n int) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), submitTry)
	defer cancel()
	all := make([]yard.Task, n)
	for i := range all {
		all[i] = yard.Task{Type: plainType, Tasklist: tasklist, Payload: string(bytes.Repeat([]byte("x"), fillBytes))}
	}
	ids, err := s.client.SubmitMany(ctx, all)
	for _, id := range ids {
		s.accepted[id] = true
	}
	return err
}

// fill submits until a request is refused.
func (s *storageRun) fill() {
	s.t.Helper()
	testkit.Eventually(s.t, within, func() error {
		for range 10 {
			switch err := s.submit(fillTasks); fault.CodeOf(err) {
			case fault.ResourceExhausted:
				s.t.Logf("after %d tasks: %v", len(s.accepted), err)
				return nil
			case "":
			default:
				s.t.Fatalf("while the log fills: %v", err)
			}
		}
		return errors.New("there is room")
	})
}

// awaitSaid waits until some process of each kind says of the storage what is so. None is unready
// for it.
func (s *storageRun) awaitSaid(full bool) {
	s.t.Helper()
	for _, service := range []cluster.Service{cluster.Frontend, cluster.History} {
		testkit.Eventually(s.t, within, func() error {
			said := false
			for i := range s.cluster.Instances(service) {
				text, err := s.cluster.Readiness(service, i)
				if err != nil {
					return err
				}
				said = said || strings.Contains(text, "storage is full")
			}
			if said != full {
				return fmt.Errorf("%s: says that the storage is full: %t", service, said)
			}
			return nil
		})
	}
	testkit.Eventually(s.t, within, func() error {
		metric := false
		for i := range s.cluster.Instances(cluster.History) {
			page, err := s.cluster.Metrics(cluster.History, i)
			if err != nil {
				return err
			}
			for line := range strings.Lines(page) {
				metric = metric || strings.HasPrefix(line, signals.StorageFull.Prometheus()+"{") && strings.HasSuffix(line, " 1\n")
			}
		}
		if metric != full {
			return fmt.Errorf("the metric of a full storage is %t", metric)
		}
		return nil
	})
}

// poll takes up to n tasks; it waits for n if they are the first ones.
func (s *storageRun) poll(n int) (all []*yardv1.PolledTask) {
	s.t.Helper()
	testkit.Eventually(s.t, within, func() error {
		ctx, cancel := context.WithTimeout(s.t.Context(), outcomeTry)
		defer cancel()
		got, err := s.client.Wire().Poll(ctx, &yardv1.PollRequest{Tasklist: tasklist, MaxTasks: int32(n - len(all)), WaitMs: pollWait.Milliseconds(), Worker: "w"})
		all = append(all, got...)
		if err == nil && (len(all) == 0 || n == heldTasks && len(all) < n) {
			err = fmt.Errorf("%d tasks came", len(all))
		}
		return err
	})
	return all
}

// each sends outcomes until every one has its verdict, which is OK.
func (s *storageRun) each(what string, all []*yardv1.PolledTask, send func(context.Context) ([]*yardv1.Verdict, error)) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	verdicts, err := send(ctx)
	if err != nil || len(verdicts) != len(all) {
		s.t.Fatalf("%s: %v", what, err)
	}
	if i := slices.IndexFunc(verdicts, func(v *yardv1.Verdict) bool { return v.Code != "OK" }); i >= 0 {
		s.t.Fatalf("%s: %v", what, verdicts[i])
	}
}

func (s *storageRun) heartbeat(all []*yardv1.PolledTask) {
	s.t.Helper()
	s.each("heartbeat", all, func(ctx context.Context) ([]*yardv1.Verdict, error) {
		beats := make([]*yardv1.Beat, len(all))
		for i, task := range all {
			beats[i] = &yardv1.Beat{TaskId: task.TaskId, Token: task.Token}
		}
		return s.client.Wire().Heartbeat(ctx, beats)
	})
}

func (s *storageRun) complete(all []*yardv1.PolledTask) {
	s.t.Helper()
	s.each("complete", all, func(ctx context.Context) ([]*yardv1.Verdict, error) {
		completions := make([]*yardv1.Completion, len(all))
		for i, task := range all {
			completions[i] = &yardv1.Completion{TaskId: task.TaskId, Token: task.Token}
			if s.done[task.TaskId] {
				s.t.Errorf("%s runs twice", task.TaskId)
			}
			s.done[task.TaskId] = true
		}
		return s.client.Wire().Complete(ctx, completions)
	})
}

// fail lets tasks be tried again.
func (s *storageRun) fail(all []*yardv1.PolledTask) {
	s.t.Helper()
	s.each("fail", all, func(ctx context.Context) ([]*yardv1.Verdict, error) {
		failures := make([]*yardv1.Failure, len(all))
		for i, task := range all {
			failures[i] = &yardv1.Failure{TaskId: task.TaskId, Token: task.Token, Message: "on purpose"}
		}
		return s.client.Wire().Fail(ctx, failures)
	})
}
