package yard_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

var one = yard.Task{Type: "x", Tasklist: "mail"}

// submits are the requests that the engine has heard.
func (s *stack) submits() (all []*yardv1.SubmitRequest) {
	s.engine.locked(func() {
		for _, msg := range s.engine.heard["tasks.submit"] {
			all = append(all, read[yardv1.SubmitRequest](s.engine, msg))
		}
	})
	return all
}

// refusing answers the submits one after the other with these errors, and then as ever. A nil error is no answer.
func (s *stack) refusing(errs ...error) {
	s.engine.script = func(endpoint string, call int, msg *nats.Msg) bool {
		return endpoint == "tasks.submit" && call < len(errs) && (errs[call] == nil || s.engine.refuse(msg, fault.From(errs[call])))
	}
}

// That no try was stored, nor will be, is as good as a refusal of the first.
func TestSubmitMakesANewRequestOfWhatIsNeverStored(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		const behind = 80 * time.Second // the clock that the first answer would have said, had it come
		s.refusing(fault.New(fault.Unknown, "who knows"), withNow(fault.At(fault.FailedPrecondition, "/request_id", "no try was stored"), time.Now().Add(behind)))
		checktest.NoError(t, checktest.Err(s.client.Submit(soon(t), one)))
		all := s.submits()
		if len(all) != 3 || all[2].RequestId == all[1].RequestId || all[2].Tries != 1 {
			t.Fatalf("got %v", all)
		}
		if id, err := ids.ParseRequestID(all[2].RequestId); err != nil || time.Until(id.Time()) < behind-time.Second {
			t.Errorf("the new id is made %v ahead, %v", time.Until(id.Time()), err)
		}
	})
}

func TestSubmitWaitsForAFrontend(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		server := newServer()
		client, err := yard.Connect("", "shop", yard.WithNATSOptions(nats.InProcessServer(server)))
		checktest.NoError(t, err)
		defer client.Close()
		eventually(t, func() error {
			short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			_, err := client.Submit(short, one)
			switch fault.CodeOf(err) {
			case fault.Unavailable:
				return nil
			case fault.Unknown: // the time was over in the middle of a try
				return err
			}
			t.Fatalf("without a frontend: %v", err)
			return nil
		})
		engine := newFake(t, server.connect(t))
		engine.script = func(_ string, call int, msg *nats.Msg) bool {
			return call < 2 && engine.refuse(msg, fault.New(fault.ResourceExhausted, "full").After(10*time.Millisecond))
		}
		submitted := make(chan error, 1)
		ctx := soon(t)
		go func() {
			_, err := client.Submit(ctx, one)
			submitted <- err
		}()
		engine.serve()
		checktest.Check(t, <-submitted)
	})
}

func TestSubmitManyReturnsWhatWasAccepted(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		s.engine.script = func(_ string, call int, msg *nats.Msg) bool {
			return call == 2 && s.engine.refuse(msg, fault.At(fault.InvalidArgument, "/tasks/7/type", "is missing"))
		}
		ids, err := s.client.SubmitMany(soon(t), numbered("x", 3500))
		if len(ids) != 2000 || fault.From(err).Path != "/tasks/2007/type" {
			t.Errorf("%d ids, %v", len(ids), err)
		}
	})
}

func TestOversizeTaskIsRefusedByTheClient(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		_, err := s.client.Submit(soon(t), yard.Task{Type: "x", Tasklist: "mail", Payload: strings.Repeat("x", 2<<20)})
		checktest.Code(t, "error", err, fault.InvalidArgument)
	})
}

func TestCallersContextEndsTheWait(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		ctx, cancel := context.WithCancel(context.Background())
		s.engine.script = func(endpoint string, _ int, _ *nats.Msg) bool {
			if endpoint == "tasks.get" {
				cancel()
				return true // never answered
			}
			return false
		}
		if _, err := s.client.Run(ctx, one); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// What is asked for when the time is over already is not sent, so it is certain that nothing is stored.
func TestAContextThatIsOverSendsNothing(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := s.client.SubmitMany(over, []yard.Task{one}); !errors.Is(err, yard.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if n := len(s.submits()); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestLostAnswerOfAReadIsAskedForAgain(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		id, err := s.client.Submit(soon(t), one)
		checktest.NoError(t, err)
		lost := make(chan struct{})
		s.engine.script = func(endpoint string, call int, _ *nats.Msg) bool {
			if endpoint == "tasks.get" && call == 0 {
				close(lost)
				return true
			}
			return false
		}
		got := make(chan error, 1)
		ctx := soon(t)
		go func() {
			_, err := s.client.Get(ctx, id)
			got <- err
		}()
		<-lost
		s.nats.start()
		checktest.Check(t, <-got)
	})
}

func TestRunBelievesInItsOwnTask(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		s.engine.script = func(endpoint string, call int, msg *nats.Msg) bool {
			return endpoint == "tasks.get" && call < 2 && s.engine.refuse(msg, fault.New(fault.NotFound, "not read yet"))
		}
		w := yard.NewWorker(s.client, "mail", quiet())
		yard.Handle(w, "x", func(context.Context, yard.Payload) (string, error) { return "done", nil })
		run(t, w)
		if got, err := yard.Run[string](soon(t), s.client, one); err != nil || got != "done" {
			t.Errorf("got %q, %v", got, err)
		}
		checktest.Code(t, "error", checktest.Err(s.client.Wait(soon(t), "nonsense")), fault.NotFound)
	})
}

func TestLowLevelLoop(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		checktest.NoError(t, checktest.Err(s.client.SubmitMany(soon(t), numbered("x", 250))))
		done := 0
		for done < 250 {
			tasks, err := s.client.Wire().Poll(soon(t), &yardv1.PollRequest{Tasklist: "mail", MaxTasks: 100, WaitMs: 1000})
			checktest.NoError(t, err)
			completions := make([]*yardv1.Completion, len(tasks))
			for i, task := range tasks {
				completions[i] = &yardv1.Completion{TaskId: task.TaskId, Token: task.Token}
			}
			verdicts, err := s.client.Wire().Complete(soon(t), completions)
			checktest.NoError(t, err)
			for _, v := range verdicts {
				if v.Code == "OK" {
					done++
				}
			}
		}
		if n := s.engine.requests("tasks.poll"); n != 3 {
			t.Errorf("%d polls", n)
		}
		tasks, err := s.client.Wire().Poll(soon(t), &yardv1.PollRequest{Tasklist: "mail", MaxTasks: 1, WaitMs: 10})
		if err != nil || len(tasks) != 0 {
			t.Errorf("an empty poll: %v, %v", tasks, err)
		}
	})
}

func TestTraceGoesWithTheTask(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		provider := &recorder{}
		s := newStack(t, yard.WithTracerProvider(provider))
		ctx, caller := provider.Tracer("test").Start(soon(t), "caller")
		checktest.NoError(t, checktest.Err(s.client.Submit(ctx, one)))
		var parent string
		s.engine.locked(func() {
			for _, task := range s.engine.tasks {
				parent = task.task.Traceparent
			}
		})
		if want := caller.SpanContext().TraceID().String(); !strings.Contains(parent, want) {
			t.Fatalf("traceparent %q does not name %s", parent, want)
		}
		inside := make(chan string, 1)
		w := yard.NewWorker(s.client, "mail", quiet())
		yard.Handle(w, "x", func(ctx context.Context, _ yard.Payload) (struct{}, error) {
			_, child := provider.Tracer("test").Start(ctx, "child")
			defer child.End()
			inside <- child.SpanContext().TraceID().String()
			return struct{}{}, yard.NonRetryable(errors.New("no route"))
		})
		stop := run(t, w)
		if got := <-inside; got != caller.SpanContext().TraceID().String() {
			t.Errorf("the handler's spans are in trace %s", got)
		}
		checktest.NoError(t, stop())
		runs := provider.spans("run")
		if len(runs) != 1 {
			t.Fatalf("%d spans of runs", len(runs))
		}
		if span := runs[0]; span.parent.SpanID() != caller.SpanContext().SpanID() || span.code != codes.Error || span.description != "no route" || span.kind != trace.SpanKindConsumer ||
			!slices.Contains(span.attributes, attribute.String("yardmaster.tasklist", "mail")) || !slices.Contains(span.attributes, attribute.Int("yardmaster.attempt", 1)) {
			t.Errorf("got the span %v %s of %v with %v", span.code, span.description, span.parent.SpanID(), span.attributes)
		}
	})
}
