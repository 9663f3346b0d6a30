package yard

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// BenchmarkWorker is what a worker itself costs per task: poll answer to finished
// outcome, without a connection and with a handler that does nothing.
func BenchmarkWorker(b *testing.B) {
	client := &Client{domain: "shop", providers: noop.NewTracerProvider()}
	w := NewWorker(client, "list", WithConcurrency(1000), WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	done := make(chan struct{})
	left := b.N
	w.HandleFunc("x", func(context.Context, *Attempt) (Payload, error) { return Payload{}, nil })
	e := newFakeEngine()
	e.script = func(_ string, _ int, ids []string) ([]*yardv1.Verdict, error) {
		if left -= len(ids); left == 0 {
			close(done)
		}
		return nil, nil
	}
	e.push(granted("x", b.N)...)
	ctx, stop := context.WithCancel(b.Context())
	b.ReportAllocs()
	b.ResetTimer()
	ended := make(chan error, 1)
	go func() { ended <- newSession(w, e).run(ctx) }()
	<-done
	stop()
	checktest.Check(b, <-ended)
}

// BenchmarkGather is what making a request of 1000 tasks costs, per task.
func BenchmarkGather(b *testing.B) {
	tasks := make([]Task, requestTasksMax)
	for i := range tasks {
		tasks[i] = Task{Type: "email.send", Tasklist: "mail", Payload: []byte("two hundred bytes or so")}
	}
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(tasks) {
		req, err := gather(tasks, requestBytesMax)
		if err != nil || len(req.Tasks) != len(tasks) {
			b.Fatal(err)
		}
		if _, err := req.MarshalVT(); err != nil {
			b.Fatal(err)
		}
	}
}
