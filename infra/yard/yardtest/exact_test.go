package yardtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/yardtest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// runs has a worker run until stop is called.
func runs(t *testing.T, w *yard.Worker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A worker that vanishes after an hour of an attempt, having been idle for an hour before, is missed as soon as in real time: its last sign of life is up to 3 s old, and two more are
// waited for.
func TestFakeTimeMissesAWorkerInTime(t *testing.T) {
	yardtest.FakeTime(t, func(t *testing.T, e *yardtest.Engine) {
		doomed, began := e.Connect(t), make(chan struct{})
		crashes := worker(doomed, sendEmail.Tasklist())
		sendEmail.Handle(crashes, func(ctx context.Context, _ email) (string, error) {
			close(began)
			<-ctx.Done()
			return "", ctx.Err()
		})
		ctx, kill := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- crashes.Run(ctx) }()
		<-time.After(time.Hour)
		submit(t, e.Client, "ann", func(t *yard.Task) { t.StartToClose = 24 * time.Hour })
		<-began
		again := make(chan time.Time, 2)
		w := worker(e.Client, sendEmail.Tasklist())
		sendEmail.Handle(w, func(context.Context, email) (string, error) {
			again <- time.Now()
			return "sent", nil
		})
		defer runs(t, w)()
		<-time.After(time.Hour)
		crashed := time.Now()
		doomed.Close()
		kill()
		t.Log("the killed worker returned:", <-ended)
		if after := (<-again).Sub(crashed); after < 3*time.Second || after > 7*time.Second {
			t.Errorf("the task ran again %v after the crash", after)
		}
	})
}

// A pause ends when it is to end.
func TestFakeTimeOfAPause(t *testing.T) {
	yardtest.FakeTime(t, func(t *testing.T, e *yardtest.Engine) {
		ran := make(chan time.Time, 1)
		w := worker(e.Client, sendEmail.Tasklist())
		sendEmail.Handle(w, func(context.Context, email) (string, error) {
			ran <- time.Now()
			return "sent", nil
		})
		defer runs(t, w)()
		pause, err := e.Client.Pause(t.Context(), yard.OfTasklist(sendEmail.Tasklist()), yard.PauseOptions{For: time.Hour})
		testkit.NoError(t, err)
		<-time.After(time.Second)
		submit(t, e.Client, "ann")
		if late := (<-ran).Sub(pause.Until); late < 0 || late > time.Second {
			t.Errorf("the task ran %v after the end of the pause", late)
		}
	})
}
