package clocks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
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
	// within bounds what happens soon in a healthy run.
	within = 120 * time.Second
	// skew is how far clocks are off. late is what tells a time that was kept from one that was missed by
	// skew, on a machine of any speed.
	skew, late = time.Minute, 40 * time.Second
	// apart is how much what two nodes hold to be the server's time may differ, on a machine of any speed.
	apart = 250 * time.Millisecond

	domain, lists, each = "clocks", 8, 6
	slots               = 2
	wait                = 1500 * time.Millisecond
)

// binaries are built once for all tests.
var binaries cluster.Binaries

func TestMain(m *testing.M) {
	testkit.SideBySide(2)
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
	if binaries, err = buildSkewed(); err != nil {
		return 1, err
	}
	defer func() { _ = binaries.Remove() }() // a temporary folder
	if code = m.Run(); code == 0 {
		err = goleak.Find()
	}
	return code, err
}

// world is a cluster in which the first node of each service has the wrong time.
type world struct {
	*cluster.Cluster
	t      *testing.T
	client *yard.Client
	nc     *nats.Conn
	ctx    context.Context
	// began is when the test began to hand in tasks.
	began time.Time

	running, most atomic.Int64
	mu            sync.Mutex
	tries         map[string]int
}

// TestR44_ClocksAMinuteOffDoNoHarm: of two nodes of each service one is a minute ahead or behind.
func TestR44_ClocksAMinuteOffDoNoHarm(t *testing.T) {
	for name, ahead := range map[string]map[cluster.Service]time.Duration{
		"frontend and matching ahead": {cluster.Frontend: skew, cluster.Matching: skew, cluster.History: -skew, cluster.Timer: -skew},
		"history and timer ahead":     {cluster.Frontend: -skew, cluster.Matching: -skew, cluster.History: skew, cluster.Timer: skew},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ahead, cluster.WithFlags("--clock.skew-max", "0"))
			w.reported(ahead)
			w.work()
			w.lostAttempt()
			w.questions()
			w.Check()
		})
	}
}

// TestR44_ANodeWithAClockTooFarOffIsNotLetIn: it waits and says why; the others do its work.
func TestR44_ANodeWithAClockTooFarOffIsNotLetIn(t *testing.T) {
	t.Parallel()
	ahead := map[cluster.Service]time.Duration{}
	for i, s := range cluster.Services() {
		ahead[s] = []time.Duration{skew, -skew}[i%2]
	}
	w := newWorld(t, ahead)
	for _, s := range cluster.Services() {
		w.AwaitLog(s, 0, "more than the 10s of clock.skew_max: set the clock that is wrong (NTP)", within)
		if err := w.Ready(s, 0); err == nil {
			t.Errorf("%s-0 is ready", s)
		}
		testkit.Check(t, w.Alive(s, 0))
		if strings.Contains(w.Log(s, 0), "level=INFO msg=ready") {
			t.Errorf("%s-0 was let in", s)
		}
	}
	out, err := w.Yard(binaries, sealed.Operator(), "status") // fails unless each service has a node that is ready
	if n := strings.Count(out, "clock.skew_max"); err != nil || n != len(ahead) {
		t.Errorf("status tells of %d nodes, %v:\n%s", n, err, out)
	}
	w.work()
	w.Check()
}

func newWorld(t *testing.T, ahead map[cluster.Service]time.Duration, opts ...cluster.Option) *world {
	t.Helper()
	opts = append(opts, skewed(func(s cluster.Service, i int) time.Duration {
		if i == 0 {
			return ahead[s]
		}
		return 0
	}))
	w := &world{t: t, Cluster: cluster.New(t, binaries, 2, opts...), tries: map[string]int{}}
	w.StartNATS()
	w.StartServices()
	for _, s := range cluster.Services() {
		w.AwaitProcess(s, w.Instances(s)-1)
	}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	w.client = w.Client(domain)
	w.nc = w.Conn(domain)
	testkit.NoError(t, testkit.Err(w.Admin().PutDomain(w.ctx, yard.Domain{Name: domain})))
	testkit.Eventually(t, within, func() error { // until the frontend that is asked knows the domain, which the other one stored
		_, err := w.client.PutType(w.ctx, yard.TaskType{Name: "limited", MaxConcurrency: slots})
		return err
	})
	return w
}

var skewMetric = regexp.MustCompile(`(?m)^` + signals.ClockSkew.Prometheus() + ` (\S+)$`)

// reported checks that the skew is reported: by the log of the node, once, as a number, and by yard status.
func (w *world) reported(ahead map[cluster.Service]time.Duration) {
	w.t.Helper()
	w.AwaitReady()
	out, err := w.Yard(binaries, sealed.Operator(), "status")
	if err != nil {
		w.t.Fatalf("status: %v\n%s", err, out)
	}
	for _, s := range cluster.Services() {
		for i := range w.Instances(s) {
			want, warnings := time.Duration(0), 0
			if i == 0 {
				want, warnings = ahead[s], 1
			}
			page, err := w.Metrics(s, i)
			testkit.NoError(w.t, err)
			got := 0.0
			if m := skewMetric.FindStringSubmatch(page); m != nil {
				got, err = strconv.ParseFloat(m[1], 64)
			}
			if off := time.Duration(got*float64(time.Second)) - want; err != nil || off.Abs() > time.Second {
				w.t.Errorf("%s-%d says %v s of skew, %v; want %v", s, i, got, err, want)
			}
			testkit.Equal(w.t, fmt.Sprintf("%s-%d warned", s, i), strings.Count(w.Log(s, i), "this node's clock is off"), warnings)
			if shown := shownSkew(out, fmt.Sprintf("%s-%d", s, i)); (shown - want).Abs() > time.Second {
				w.t.Errorf("%s-%d is %v off; status says\n%s", s, i, want, out)
			}
		}
	}
}

// shownSkew is what yard status says of a node that is ready, an hour if nothing.
func shownSkew(status, node string) time.Duration {
	row := regexp.MustCompile(node + ` +true +([+-]\S+)`).FindStringSubmatch(status)
	if row == nil {
		return time.Hour
	}
	d, err := time.ParseDuration(row[1])
	if err != nil {
		return time.Hour
	}
	return d
}

// work hands in tasks of each kind, one per request, so that all frontends and partitions get some, and runs them.
func (w *world) work() {
	w.t.Helper()
	for l := range lists {
		w.runWorker(fmt.Sprint("list-", l))
	}
	w.began = time.Now()
	kinds := map[string]yard.Task{
		"delayed": {Type: "plain", Delay: wait},
		"timed":   {Type: "plain"},
		"limited": {Type: "limited"},
		"flaky":   {Type: "flaky", Retry: &yard.RetryPolicy{InitialInterval: 300 * time.Millisecond}},
	}
	all := map[string]string{} // the kind of each task
	for i := range lists * each {
		for kind, task := range kinds {
			task.Tasklist, task.Payload = fmt.Sprint("list-", i%lists), kind
			if kind == "timed" {
				task.RunAt = time.Now().Add(wait)
			}
			id, err := w.client.Submit(w.ctx, task)
			if err != nil {
				w.t.Fatalf("submit a %s task: %v", kind, err)
			}
			all[id] = kind
		}
	}
	for id, kind := range all {
		if _, err := w.client.Wait(w.ctx, id); err != nil {
			w.t.Fatalf("a %s task, %s: %v", kind, id, err)
		}
		w.keptTime(id, kind)
	}
	if n := w.most.Load(); n > slots {
		w.t.Errorf("%d limited tasks ran at once, the limit is %d", n, slots)
	}
}

func (w *world) runWorker(list string) {
	worker := yard.NewWorker(w.client, list, yard.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	yard.Handle(worker, "plain", func(context.Context, string) (string, error) { return "", nil })
	yard.Handle(worker, "limited", func(ctx context.Context, _ string) (string, error) {
		n := w.running.Add(1)
		defer w.running.Add(-1)
		for most := w.most.Load(); n > most && !w.most.CompareAndSwap(most, n); most = w.most.Load() {
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
		return "", ctx.Err()
	})
	worker.HandleFunc("flaky", func(_ context.Context, a *yard.Attempt) (yard.Payload, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.tries[a.TaskID]++; w.tries[a.TaskID] == 1 {
			return yard.Payload{}, errors.New("the first time it fails")
		}
		return yard.Payload{}, nil
	})
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("worker of %s: %v", list, err)
		}
	})
}

// keptTime compares what the log wrote down of a finished task with when it was due.
func (w *world) keptTime(id, kind string) {
	w.t.Helper()
	task, err := w.client.Wire().Get(w.ctx, id)
	testkit.NoError(w.t, err)
	created, due := time.UnixMilli(task.CreatedAtMs), time.UnixMilli(task.CreatedAtMs)
	if d := created.Sub(w.began); d < -time.Second || d > late {
		w.t.Errorf("%s was created %v after the test began", id, d)
	}
	if (kind == "delayed" || kind == "timed") && task.DueAtMs > 0 {
		due = time.UnixMilli(task.DueAtMs)
	}
	// The client's clock dates the request, the frontend's the delay.
	if d := due.Sub(created); kind == "delayed" && (d-wait).Abs() > late || kind == "timed" && d > wait+time.Second {
		w.t.Errorf("%s, %s, is due %v after it was created", id, kind, d)
	}
	for _, e := range task.Events {
		at := time.UnixMilli(e.AtMs)
		switch e.Kind {
		case yardv1.TaskEventKind_TASK_EVENT_KIND_STARTED:
			if d := at.Sub(due); d < -apart || d > late {
				w.t.Errorf("%s, %s, was started %v after it was due", id, kind, d)
			}
		case yardv1.TaskEventKind_TASK_EVENT_KIND_FAILED:
			due = time.UnixMilli(e.DueAtMs)
			if d := due.Sub(at); d < 100*time.Millisecond || d > late {
				w.t.Errorf("%s failed, and is due again after %v", id, d)
			}
		}
	}
}

// lease is how long a lost attempt may run.
const lease = 1500 * time.Millisecond

// lostAttempt takes tasks of each list, says nothing more, and waits until others get them.
func (w *world) lostAttempt() {
	w.t.Helper()
	taken := map[string]bool{}
	for l := range lists {
		list := fmt.Sprint("lost-", l)
		for range 2 {
			_, err := w.client.Submit(w.ctx, yard.Task{Type: "plain", Tasklist: list, Payload: "", StartToClose: lease})
			testkit.NoError(w.t, err)
		}
		testkit.Eventually(w.t, within, func() error {
			for _, id := range w.poll(list) {
				taken[id] = true
			}
			if len(taken) < 2*(l+1) {
				return fmt.Errorf("%d tasks of %s taken", len(taken), list)
			}
			return nil
		})
	}
	for l := range lists {
		w.runWorker(fmt.Sprint("lost-", l))
	}
	for id := range taken {
		if _, err := w.client.Wait(w.ctx, id); err != nil {
			w.t.Fatalf("a lost task, %s: %v", id, err)
		}
		task, err := w.client.Wire().Get(w.ctx, id)
		testkit.NoError(w.t, err)
		var started time.Time
		for _, e := range task.Events {
			switch at := time.UnixMilli(e.AtMs); e.Kind {
			case yardv1.TaskEventKind_TASK_EVENT_KIND_STARTED:
				started = at
			case yardv1.TaskEventKind_TASK_EVENT_KIND_TIMED_OUT:
				if d := at.Sub(started); d < lease-apart || d > late {
					w.t.Errorf("%s timed out %v after it was started", id, d)
				}
			}
		}
	}
}

// poll takes what is there, and tells no one.
func (w *world) poll(list string) (taken []string) {
	w.t.Helper()
	body, err := (&yardv1.PollRequest{Tasklist: list, MaxTasks: 10, WaitMs: 500}).MarshalVT()
	testkit.NoError(w.t, err)
	msg := &nats.Msg{Subject: topology.API(domain, "tasks.poll"), Data: body, Header: nats.Header{
		codec.HeaderContentType: {string(codec.Protobuf)},
	}}
	answer, err := w.nc.RequestMsgWithContext(w.ctx, msg)
	resp := &yardv1.PollResponse{}
	if err != nil || answer.Header.Get(fault.HeaderCode) != "" || resp.UnmarshalVT(answer.Data) != nil {
		return nil // asked again
	}
	for _, p := range resp.Tasks {
		if p.TimeoutMs <= 0 || p.TimeoutMs > lease.Milliseconds() {
			w.t.Errorf("of %s %d ms are left of %v", p.TaskId, p.TimeoutMs, lease)
		}
		taken = append(taken, p.TaskId)
	}
	return taken
}

// questions asks every frontend, owner and shard, many times, for what must not time out.
func (w *world) questions() {
	w.t.Helper()
	for l := range lists {
		for range 5 {
			ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
			_, err := w.client.Wire().DescribeTasklist(ctx, fmt.Sprint("list-", l))
			cancel()
			if err != nil {
				w.t.Fatalf("describe list-%d: %v", l, err)
			}
		}
	}
}
