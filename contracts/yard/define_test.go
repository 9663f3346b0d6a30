package yard_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

type email struct{ To string }

type receipt struct{ ID string }

var sendEmail = yard.Define[email, receipt]("email.send", "mail", yard.WithTask(func(t *yard.Task) { t.Priority = 2 }))

// A definition names type, tasklist, input and output once for who submits and who runs.
func TestADefinitionIsForBothSides(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		w := yard.NewWorker(s.client, sendEmail.Tasklist(), quiet())
		sendEmail.Handle(w, func(_ context.Context, in email) (receipt, error) { return receipt{ID: "<" + in.To + ">"}, nil })
		run(t, w)
		got, err := sendEmail.Run(soon(t), s.client, email{To: "ann"})
		if err != nil || got.ID != "<ann>" {
			t.Errorf("%v %v", got, err)
		}
		id, err := sendEmail.Submit(soon(t), s.client, email{To: "bob"}, yard.WithTask(func(t *yard.Task) { t.Priority = 5 }))
		checktest.NoError(t, err)
		if got, err := sendEmail.Wait(soon(t), s.client, id); err != nil || got.ID != "<bob>" {
			t.Errorf("%v %v", got, err)
		}
		s.engine.locked(func() {
			checktest.Equal(t, "its priority", s.engine.tasks[id].task.Priority, 5)
		})
		if task := sendEmail.Task(email{}); task.Priority != 2 || task.Type != sendEmail.Type() {
			t.Errorf("%+v", task)
		}
	})
}

// R51: who waits tells apart a task that is stored and goes on from one that is not stored.
func TestR51_ARunThatEndsFirstSaysWhatIsStored(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := s.client.Run(ctx, one)
		var going *yard.UnfinishedError
		if !errors.As(err, &going) || !errors.Is(err, yard.ErrUnfinished) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, yard.ErrUnavailable) {
			if !errors.Is(err, yard.ErrUnknown) { // the time was over before the submit was answered
				t.Fatalf("got %v", err)
			}
			return
		}
		s.engine.locked(func() {
			if s.engine.tasks[going.TaskID] == nil {
				t.Errorf("%v names no task", err)
			}
		})
		s.engine.locked(func() { s.engine.script = func(string, int, *nats.Msg) bool { return true } })
		ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := s.client.Wait(ctx, going.TaskID); errors.Is(err, yard.ErrUnfinished) || !errors.Is(err, yard.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an engine that says nothing knows no task: %v", err)
		}
	})
}

// TestAWaitOfAMillisecondPauses: an engine that answers at once is not asked again at once, however little time is left. In
// fake time that would go on forever.
func TestAWaitOfAMillisecondPauses(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		id, err := s.client.Submit(t.Context(), one)
		checktest.NoError(t, err)
		for left := time.Duration(0); left < 4*time.Millisecond; left += 250 * time.Microsecond {
			ctx, cancel := context.WithTimeout(t.Context(), left)
			if _, err := s.client.Wait(ctx, id); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with %v left: %v", left, err)
			}
			cancel()
		}
	})
}

type report struct{ Customer, Kind string }

var makeReport = yard.Define[report, receipt]("report.make", "reports", yard.WithTask(func(t *yard.Task) {
	t.Priority, t.Group, t.Headers = 4, "none", map[string]string{"team": "books"}
})).FromInput(func(in report, t *yard.Task) {
	t.Group, t.Headers["kind"] = in.Customer, in.Kind
	t.Payload = "what it sets is not the input"
})

// What follows from the input is set by the definition, for every way to submit, and the options of one submit have the last word.
func TestADefinitionTakesTheGroupFromTheInput(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		one, err := makeReport.Submit(soon(t), s.client, report{"acme", "tax"})
		checktest.NoError(t, err)
		two, err := makeReport.Submit(soon(t), s.client, report{"acme", "tax"}, yard.WithTask(func(t *yard.Task) { t.Group = "own" }))
		checktest.NoError(t, err)
		many, err := s.client.SubmitMany(soon(t), []yard.Task{makeReport.Task(report{"bolt", "pay"})})
		checktest.NoError(t, err)
		urgent := makeReport.FromInput(func(in report, t *yard.Task) { t.Priority, t.Group = 1, t.Group+"-urgent" })
		three, err := urgent.Submit(soon(t), s.client, report{"acme", "tax"})
		checktest.NoError(t, err)
		s.engine.locked(func() {
			for id, want := range map[string]string{
				one: `acme 4 tax books {"Customer":"acme","Kind":"tax"}`, two: `own 4 tax books {"Customer":"acme","Kind":"tax"}`,
				many[0]: `bolt 4 pay books {"Customer":"bolt","Kind":"pay"}`, three: `acme-urgent 1 tax books {"Customer":"acme","Kind":"tax"}`,
			} {
				w := s.engine.tasks[id].task
				if got := fmt.Sprintf("%s %d %s %s %s", w.Group, w.Priority, w.Headers["kind"], w.Headers["team"], w.Payload.GetData()); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			}
		})
	})
}

// Submits of several goroutines set fields of their own task only, though all begin with the headers of the definition.
func TestTasksOfADefinitionShareNoHeaders(t *testing.T) {
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			kind := fmt.Sprint(i)
			own := yard.WithTask(func(t *yard.Task) { t.Headers["own"] = kind })
			if task := makeReport.Task(report{"acme", kind}, own); task.Headers["kind"] != kind || task.Headers["own"] != kind {
				t.Errorf("the headers of %s are %v", kind, task.Headers)
			}
		})
	}
	all.Wait()
}
