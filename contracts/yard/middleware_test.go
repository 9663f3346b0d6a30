package yard_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// Every way to submit goes through the middleware, once, the first one outermost; what it changes is what is sent.
func TestSubmitMiddlewareOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var order []string
		mark := func(name string) yard.SubmitMiddleware {
			return func(next yard.SubmitFunc) yard.SubmitFunc {
				return func(ctx context.Context, tasks []yard.Task) ([]string, error) {
					order = append(order, name)
					tasks = slices.Clone(tasks)
					for i := range tasks {
						tasks[i].Type += name
					}
					return next(ctx, tasks)
				}
			}
		}
		s := newStack(t, yard.WithSubmitMiddleware(mark("a"), mark("b")), yard.WithSubmitMiddleware(mark("c")))
		if id, err := s.client.Submit(soon(t), one); err != nil || id == "" {
			t.Fatal(id, err)
		}
		given := []yard.Task{one, one, one}
		if ids, err := s.client.SubmitMany(soon(t), given); err != nil || len(ids) != 3 || given[0].Type != "x" {
			t.Fatal(ids, err, given)
		}
		if ids, err := s.client.SubmitMany(soon(t), nil); err != nil || len(ids) != 0 {
			t.Fatal(ids, err)
		}
		checktest.Equal(t, "the order", strings.Join(order, ""), "abcabcabc")
		s.engine.locked(func() {
			for _, task := range s.engine.tasks {
				if task.task.Type != "xabc" {
					t.Errorf("%s was sent", task.task.Type)
				}
			}
			if len(s.engine.tasks) != 4 {
				t.Errorf("%d tasks were sent", len(s.engine.tasks))
			}
		})
	})
}

// A middleware may refuse, and then nothing is sent; one that answers less than the caller needs is reported.
func TestSubmitMiddlewareMayRefuse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		no := errors.New("not today")
		s := newStack(t, yard.WithSubmitMiddleware(func(next yard.SubmitFunc) yard.SubmitFunc {
			return func(_ context.Context, tasks []yard.Task) ([]string, error) {
				if tasks[0].Priority == 5 {
					return nil, no
				}
				return nil, nil
			}
		}))
		if _, err := s.client.Submit(soon(t), yard.Task{Type: "x", Tasklist: "mail", Priority: 5}); !errors.Is(err, no) {
			t.Errorf("got %v", err)
		}
		if _, err := s.client.Submit(soon(t), one); fault.CodeOf(err) != fault.Internal {
			t.Errorf("got %v", err)
		}
		if n := s.engine.requests("tasks.submit"); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

// The span of a submit lies between the caller's and those of the task, and says what failed.
func TestTraceSubmits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		provider := &recorder{}
		s := newStack(t, yard.WithSubmitMiddleware(yard.TraceSubmits(provider)))
		ctx, caller := provider.Tracer("test").Start(soon(t), "caller")
		id, err := s.client.Submit(ctx, one)
		checktest.NoError(t, err)
		if _, err := s.client.SubmitMany(ctx, []yard.Task{one, one}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.client.Submit(ctx, yard.Task{Type: "x", Tasklist: "mail", Payload: func() {}}); err == nil {
			t.Fatal("a function is no payload")
		}
		spans := provider.spans("submit")
		if len(spans) != 3 {
			t.Fatalf("%d spans", len(spans))
		}
		for i, want := range []attribute.KeyValue{
			attribute.String("messaging.message.id", id), attribute.Int("messaging.batch.message_count", 2), attribute.String("yardmaster.type", "x"),
		} {
			span := spans[i]
			if span.kind != trace.SpanKindProducer || span.parent.SpanID() != caller.SpanContext().SpanID() ||
				!slices.Contains(span.attributes, want) || (span.code == codes.Error) != (i == 2) || (span.description != "") != (i == 2) {
				t.Errorf("span %d is of %v: %v, %v %s", i, span.parent.SpanID(), span.attributes, span.code, span.description)
			}
		}
		s.engine.locked(func() {
			parent := read[yardv1.SubmitRequest](s.engine, s.engine.heard["tasks.submit"][0]).Tasks[0].Traceparent
			many := s.engine.heard["tasks.submit"][1].Header["traceparent"]
			if !strings.Contains(parent, spans[0].SpanContext().SpanID().String()) || len(many) != 1 || !strings.Contains(many[0], spans[1].SpanContext().SpanID().String()) {
				t.Errorf("the tasks continue %q and %q", parent, many)
			}
		})
	})
}

// Submits and attempts are logged, with what failed as a warning.
func TestLogMiddleware(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		s := newStack(t, yard.WithSubmitMiddleware(yard.LogSubmits(log)))
		id, err := s.client.Submit(soon(t), one)
		checktest.NoError(t, err)
		if _, err := s.client.SubmitMany(soon(t), []yard.Task{one, {Type: "x", Tasklist: "mail", Payload: func() {}}}); err == nil {
			t.Fatal("a function is no payload")
		}
		lines := strings.Split(out.String(), "\n")
		for i, want := range [][]string{
			{"level=DEBUG", "msg=submitted", "tasks=1", "type=x", "tasklist=mail", "task_id=" + id, "duration="},
			{"level=WARN", `msg="a submit failed"`, "tasks=2", "error="},
		} {
			for _, part := range want {
				if !strings.Contains(lines[i], part) {
					t.Errorf("line %d is %s, without %s", i, lines[i], part)
				}
			}
		}
	})
}
