package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

func TestMain(m *testing.M) { natskit.VerifyTestMain(m) }

const within = 60 * time.Second

type testSettings struct {
	Config
	Own
}

type Own struct {
	Speed int `koanf:"speed" usage:"how fast"`
}

func (Own) Validate() error { return nil }

func defaults() testSettings {
	d := testSettings{DefaultConfig(""), Own{3}}
	d.StopTimeout = 5 * time.Second
	return d
}

// fake is a service that is ready when asked to, and ends with its context.
type fake struct {
	env   Env
	ready chan struct{}
	ended chan struct{}
	fail  chan error
}

func newFake() *fake {
	return &fake{ready: make(chan struct{}), ended: make(chan struct{}), fail: make(chan error, 1)}
}

func (f *fake) Ready() <-chan struct{} { return f.ready }
func (f *fake) Check() error           { return nil }
func (f *fake) Warn() error            { return nil }

func (f *fake) Run(ctx context.Context) error {
	defer close(f.ended)
	select {
	case <-ctx.Done():
		return nil
	case err := <-f.fail:
		return err
	}
}

// logs is what a process wrote; it may still be writing.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logs) expect(t *testing.T, text string) {
	t.Helper()
	testkit.Eventually(t, within, func() error {
		if !strings.Contains(l.String(), text) {
			return fmt.Errorf("%q is not in the log:\n%s", text, l)
		}
		return nil
	})
}

// launch starts a process and returns its end.
func launch(t *testing.T, ctx context.Context, f *fake, out io.Writer, args ...string) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		done <- start(ctx, "history", defaults(), func(e Env, s testSettings) (Service, error) {
			f.env = e
			if s.Speed == 0 {
				return nil, errors.New("no speed")
			}
			return f, nil
		}, args, nil, io.Discard, out)
	}()
	return done
}

var addressInLog = regexp.MustCompile(`address=(\S+)`)

func readiness(t *testing.T, log *logs) telemetry.Readiness {
	t.Helper()
	log.expect(t, "address=")
	resp, err := http.Get("http://" + addressInLog.FindStringSubmatch(log.String())[1] + "/readyz")
	testkit.NoError(t, err)
	defer resp.Body.Close()
	var r telemetry.Readiness
	testkit.NoError(t, json.NewDecoder(resp.Body).Decode(&r))
	if r.Ready != (resp.StatusCode == http.StatusOK) {
		t.Errorf("status %d with %+v", resp.StatusCode, r)
	}
	return r
}

func TestLifeOfAProcess(t *testing.T) {
	srv := natskit.Run(t)
	srv.Stop()
	ctx, sigterm := context.WithCancel(t.Context())
	defer sigterm()
	var log logs
	f := newFake()
	done := launch(t, ctx, f, &log, "--nats.url", srv.URL, "--http", "127.0.0.1:0", "--node", "a-1")

	log.expect(t, "waiting for NATS") // and meanwhile it tells that it lives and is not ready
	if r := readiness(t, &log); r.Ready {
		t.Errorf("ready without NATS: %+v", r)
	}
	srv.Restart(t)
	log.expect(t, "cluster created")
	if r := readiness(t, &log); r.Ready {
		t.Errorf("ready before the service is: %+v", r)
	}
	close(f.ready)
	log.expect(t, "msg=ready")
	if r := readiness(t, &log); !r.Ready {
		t.Errorf("not ready: %+v", r)
	}
	if f.env.Node != "a-1" || f.env.Partitioning != topology.DefaultPartitioning() {
		t.Errorf("%+v", f.env)
	}

	nc := srv.Connect(t)
	answer, err := nc.Request(topology.Health("history"), nil, within)
	if err != nil || !strings.Contains(string(answer.Data), `"node":"a-1","version":"`+Version+`","ready":true`) {
		t.Errorf("%v %s", err, answer.Data)
	}
	// R1: health is reported in inboxes only.
	elsewhere, err := nc.SubscribeSync(topology.Event(0))
	if err == nil {
		err = nc.PublishRequest(topology.Health("history"), elsewhere.Subject, nil)
	}
	if err == nil {
		_, err = nc.Request(topology.Health("history"), nil, within)
	}
	if n, _, failed := elsewhere.Pending(); n != 0 || err != nil || failed != nil {
		t.Errorf("health was sent to %s: %v", elsewhere.Subject, err)
	}
	subject, err := micro.ControlSubject(micro.PingVerb, "yard-history", "")
	testkit.NoError(t, err)
	testkit.Check(t, testkit.Err(nc.Request(subject, nil, within)))

	sigterm()
	testkit.Check(t, <-done)
	select {
	case <-f.ended:
	default:
		t.Error("the process ended before its service")
	}
	log.expect(t, "clean=true")
}

func TestStopWhileWaitingForNATSIsClean(t *testing.T) {
	srv := natskit.Run(t)
	srv.Stop()
	ctx, sigterm := context.WithCancel(t.Context())
	var log logs
	done := launch(t, ctx, newFake(), &log, "--nats.url", srv.URL)
	log.expect(t, "waiting for NATS")
	sigterm()
	testkit.Check(t, <-done)
}

func TestAFailedServiceEndsItsProcess(t *testing.T) {
	srv := natskit.Run(t)
	f := newFake()
	close(f.ready)
	f.fail <- io.ErrUnexpectedEOF
	if err := <-launch(t, t.Context(), f, io.Discard, "--nats.url", srv.URL); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
	if err := <-launch(t, t.Context(), f, io.Discard, "--nats.url", srv.URL, "--speed", "0"); err == nil || err.Error() != "history: no speed" {
		t.Errorf("%v", err)
	}
}

func TestSettings(t *testing.T) {
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := start(t.Context(), "history", defaults(), func(Env, testSettings) (Service, error) {
			return nil, errors.New("started")
		}, args, nil, &out, io.Discard)
		return out.String(), err
	}
	_, err := run("--node", "a b", "--http", "nowhere", "--history-partitions=-1", "--provision.replicas=2", "--stop-timeout=0s", "--log.level=loud")
	for _, part := range []string{"6 problems", "--node", "--http", "--history-partitions", "--provision.replicas", "--stop-timeout", `log level "loud"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	if out, err := run("--print-config", "--speed=7"); err != nil || !strings.Contains(out, "speed: 7") || !strings.Contains(out, "stop_timeout: 5s") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run("--help"); err != nil || !strings.Contains(out, "YARD_HISTORY_SPEED") || !strings.Contains(out, "YARD_HISTORY_NATS__URL") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestClusterTakesWhatIsThere(t *testing.T) {
	nc := natskit.Run(t).Connect(t)
	log := slog.New(slog.DiscardHandler)
	cluster := func(want topology.Partitioning, create bool) (topology.Partitioning, error) {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return Cluster(ctx, nc, want, Provision{Enabled: create, Replicas: 1}, log)
	}
	two := topology.Partitioning{History: 2, Matching: 1}

	// One that may not create waits for one that does.
	waited := make(chan topology.Partitioning, 1)
	go func() {
		p, err := cluster(topology.Partitioning{}, false)
		testkit.Check(t, err)
		waited <- p
	}()
	if p, err := cluster(two, true); err != nil || p != two {
		t.Errorf("%+v %v", p, err)
	}
	if p := <-waited; p != two {
		t.Errorf("%+v", p)
	}
	for _, create := range []bool{true, false} {
		if p, err := cluster(topology.Partitioning{Matching: 1}, create); err != nil || p != two {
			t.Errorf("create %v: %+v %v", create, p, err)
		}
		if _, err := cluster(topology.Partitioning{History: 3}, create); err == nil || !strings.Contains(err.Error(), "created with 2 history partitions") {
			t.Errorf("create %v: %v", create, err)
		}
	}
}

func TestNodeNamesDiffer(t *testing.T) {
	a, b := NodeName(), NodeName()
	if a == b || ids.CheckName(a) != nil {
		t.Errorf("%q %q", a, b)
	}
}

// The partitioning is known before all of the cluster is there. Who may not create it waits for the rest.
func TestAClusterThatIsBeingCreatedIsWaitedFor(t *testing.T) {
	nc := natskit.Run(t).Connect(t)
	log := slog.New(slog.DiscardHandler)
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	config, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: topology.ConfigBucket})
	testkit.NoError(t, err)
	two := topology.Partitioning{History: 2, Matching: 1}
	value, err := json.Marshal(two)
	if err == nil {
		err = catalog.CreateVersion(t.Context(), config, logversion.Newest())
	}
	if err == nil {
		_, err = config.Put(t.Context(), topology.ClusterKey, value)
	}
	testkit.NoError(t, err)
	soon, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
	defer cancel()
	if p, err := Cluster(soon, nc, topology.Partitioning{}, Provision{Replicas: 1}, log); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("half a cluster: %v %v", p, err)
	}
	for _, create := range []bool{true, false} {
		if p, err := Cluster(t.Context(), nc, topology.Partitioning{}, Provision{Enabled: create, Replicas: 1}, log); err != nil || p != two {
			t.Errorf("%v %v", p, err)
		}
	}
}
