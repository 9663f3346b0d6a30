package yard_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

var sendEmail = yard.Define[email, receipt]("email.send", "mail", yard.WithTask(func(t *yard.Task) { t.Priority = 2 }))

// A definition names type, tasklist, input and output once for who submits and who runs.
func TestADefinitionIsForBothSides(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		w := yard.NewWorker(s.client, sendEmail.Tasklist(), quiet())
		sendEmail.Handle(w, func(_ context.Context, in email) (receipt, error) { return receipt{ID: "<" + in.To + ">"}, nil })
		run(t, w)
		got, err := sendEmail.Run(soon(t), s.client, email{To: "ann"})
		if err != nil || got.ID != "<ann>" {
			t.Errorf("%v %v", got, err)
		}
		id, err := sendEmail.Submit(soon(t), s.client, email{To: "bob"}, yard.WithTask(func(t *yard.Task) { t.Priority = 5 }))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := sendEmail.Wait(soon(t), s.client, id); err != nil || got.ID != "<bob>" {
			t.Errorf("%v %v", got, err)
		}
		s.engine.locked(func() {
			if p := s.engine.tasks[id].task.Priority; p != 5 {
				t.Errorf("its priority is %d", p)
			}
		})
		if task := sendEmail.Task(email{}); task.Priority != 2 || task.Type != sendEmail.Type() {
			t.Errorf("%+v", task)
		}
	})
}

// R51: who waits tells apart a task that is stored and goes on from one that is not stored.
func TestR51_ARunThatEndsFirstSaysWhatIsStored(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
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
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		id, err := s.client.Submit(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		for left := time.Duration(0); left < 4*time.Millisecond; left += 250 * time.Microsecond {
			ctx, cancel := context.WithTimeout(t.Context(), left)
			if _, err := s.client.Wait(ctx, id); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with %v left: %v", left, err)
			}
			cancel()
		}
	})
}
