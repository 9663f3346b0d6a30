package tracing_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// within bounds what must happen soon.
const within = 90 * time.Second

const (
	domain = "shop"
	list   = "orders"
)

func TestMain(m *testing.M) { natskit.VerifyTestMain(m) }

// collector is where spans go.
type collector interface {
	// env is what makes a process send them there.
	env() []string
	// trace returns the spans of one trace that have come.
	trace(id string) ([]signalkit.Span, error)
}

// sink is the collector inside the test.
type sink struct{ *signalkit.TraceSink }

func (s sink) env() []string { return s.Env() }

func (s sink) trace(id string) (found []signalkit.Span, err error) {
	for _, span := range s.Spans() {
		if span.TraceID == id {
			found = append(found, span)
		}
	}
	return found, nil
}

// world is a traced system, and a traced program that uses it.
type world struct {
	t         *testing.T
	collector collector
	tracer    trace.Tracer
	client    *yard.Client
	nc        *nats.Conn
}

// everywhere runs a test with each collector that there is. Tests do not run side
// by side: the settings of tracing are the process's environment.
func everywhere(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("sink", func(t *testing.T) { test(t, newWorld(t, sink{signalkit.RunTraceSink(t)})) })
	if url := os.Getenv(jaegerEnv); url != "" {
		t.Run("jaeger", func(t *testing.T) { test(t, newWorld(t, newJaeger(t, url))) })
	}
}

func newWorld(t *testing.T, c collector) *world {
	t.Helper()
	for _, setting := range append(c.env(), "OTEL_BSP_SCHEDULE_DELAY=50") {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := stack.Start(ctx, stack.Config{Tables: stack.TablesMemory})
	testkit.NoError(t, err)
	t.Cleanup(func() { closing(t, "stack", s.Close) })
	tracing, err := telemetry.NewTracing(ctx, "shop", "test", nil)
	testkit.NoError(t, err)
	t.Cleanup(func() { closing(t, "program's tracing", tracing.Shutdown) })
	client, err := yard.Connect(s.URL, domain, yard.WithTracerProvider(tracing.Provider()))
	testkit.NoError(t, err)
	t.Cleanup(client.Close)
	testkit.NoError(t, testkit.Err(client.Admin().PutDomain(ctx, yard.Domain{Name: domain})))
	nc, err := nats.Connect(s.URL)
	testkit.NoError(t, err)
	t.Cleanup(nc.Close)
	return &world{t: t, collector: c, tracer: tracing.Tracer(), client: client, nc: nc}
}

func closing(t *testing.T, what string, end func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := end(ctx); err != nil {
		t.Errorf("%s did not end well: %v", what, err)
	}
}

// soon is a context that ends where a healthy run has long been done.
func (w *world) soon() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	w.t.Cleanup(cancel)
	return ctx
}

// work runs a worker until the test ends.
func (w *world) work(handle func(context.Context, struct{}) (struct{}, error)) {
	w.t.Helper()
	worker := yard.NewWorker(w.client, list, yard.WithLogger(slog.New(slog.DiscardHandler)))
	yard.Handle(worker, "ship", handle)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		testkit.Check(w.t, <-done)
	})
}

// pollOnce takes a task, and leaves it.
func (w *world) pollOnce() {
	w.t.Helper()
	body := `{"tasklist":"` + list + `","max_tasks":1,"wait_ms":20000}`
	answer, err := w.nc.Request(topology.API(domain, "tasks.poll"), []byte(body), within)
	if err != nil || !strings.Contains(string(answer.Data), "task_id") {
		w.t.Fatalf("%v: %s", err, answer.Data)
	}
}

func nothing(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }

// spans waits until a trace has these spans, no more and no fewer, and returns them
// by name, in the order of their start. Only triggers may have been sent again: they
// are hints, and matching asks for them when it first hears of a domain.
func (w *world) spans(id trace.TraceID, names string, more ...string) map[string][]signalkit.Span {
	w.t.Helper()
	want := append(strings.Fields(names), more...)
	slices.Sort(want)
	var all []signalkit.Span
	testkit.Eventually(w.t, within, func() (err error) {
		if all, err = w.collector.trace(id.String()); err != nil {
			return err
		}
		var got []string
		for _, s := range all {
			if s.Name != "trigger" || count(got, "trigger") < count(want, "trigger") {
				got = append(got, s.Name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("trace %s has spans %v, want %v", id, got, want)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b signalkit.Span) int { return a.Start.Compare(b.Start) })
	byName := map[string][]signalkit.Span{}
	for _, s := range all {
		byName[s.Name] = append(byName[s.Name], s)
	}
	return byName
}

// came waits until a trace has a span of one of two names, and reports whether it is the first.
func (w *world) came(id trace.TraceID, first, second string) (is bool) {
	w.t.Helper()
	testkit.Eventually(w.t, within, func() error {
		all, err := w.collector.trace(id.String())
		if err != nil {
			return err
		}
		named := func(name string) bool {
			return slices.ContainsFunc(all, func(s signalkit.Span) bool { return s.Name == name })
		}
		if is = named(first); !is && !named(second) {
			return fmt.Errorf("trace %s has neither %s nor %s", id, first, second)
		}
		return nil
	})
	return is
}

func count(all []string, name string) (n int) {
	for _, s := range all {
		if s == name {
			n++
		}
	}
	return n
}

// task checks what holds for every span of a task: where it hangs, who sent it, what it is about.
func (w *world) task(byName map[string][]signalkit.Span, parent trace.SpanID, taskID string) {
	w.t.Helper()
	senders := map[string]string{
		"submit": "yard-frontend", "append": "yard-frontend", "start": "yard-frontend", "complete": "yard-frontend", "fail": "yard-frontend",
		"apply": "yard-history", "trigger": "yard-history", "wait": "yard-history",
		"delay": "yard-history", "order key": "yard-history", "backoff": "yard-history", "expired attempt": "yard-history",
		"match": "yard-matching", "grab": "yard-matching", "run": "shop",
	}
	testkit.MustEqual(w.t, "spans submit", len(byName["submit"]), 1)
	submit := byName["submit"][0]
	for _, name := range slices.Sorted(maps.Keys(senders)) {
		for _, s := range byName[name] {
			under := submit.SpanID
			if name == "submit" {
				under = parent.String()
			}
			equal(w.t, name+": parent", s.ParentID, under)
			equal(w.t, name+": service", s.Service, senders[name])
			equal(w.t, name+": domain", s.Attrs["yardmaster.domain"], domain)
			equal(w.t, name+": task", s.Attrs["yardmaster.task_id"], taskID)
			if s.Attrs["yardmaster.partition"] == "" {
				w.t.Errorf("%s does not tell its partition", name)
			}
			equal(w.t, name+": system", s.Attrs["messaging.system"], "yardmaster")
			equal(w.t, name+": message", s.Attrs["messaging.message.id"], taskID)
			if name != "complete" && name != "fail" { // an outcome names its task and nothing else
				equal(w.t, name+": tasklist", s.Attrs["yardmaster.tasklist"], list)
				equal(w.t, name+": destination", s.Attrs["messaging.destination.name"], list)
				equal(w.t, name+": type", s.Attrs["yardmaster.type"], "ship")
			}
			if s.Start.Before(submit.Start) {
				w.t.Errorf("%s begins %v before the submit, its parent", name, submit.Start.Sub(s.Start))
			}
			if s.End.Before(s.Start) {
				w.t.Errorf("%s ends %v before it starts", name, s.Start.Sub(s.End))
			}
		}
	}
}

func equal[V comparable](t *testing.T, what string, got, want V) {
	t.Helper()
	testkit.Equal(t, what, got, want)
}
