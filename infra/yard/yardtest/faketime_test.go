package yardtest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/yardtest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// delayed makes the tasks of submit run later.
func delayed(by time.Duration) func(*yard.Task) { return func(t *yard.Task) { t.Delay = by } }

// A delay of ten minutes passes in a second, and the task runs when it is due, by the engine's clock and the test's.
func TestFakeTimeJumpsToWhatIsDue(t *testing.T) {
	yardtest.FakeTime(t, func(t *testing.T, e *yardtest.Engine) {
		began, ran := time.Now(), time.Time{}
		id := submit(t, e.Client, "ann", delayed(10*time.Minute))
		w := worker(e.Client, sendEmail.Tasklist())
		sendEmail.Handle(w, func(context.Context, email) (string, error) {
			ran = time.Now()
			return "sent", nil
		})
		testkit.NoError(t, e.RunToEnd(t.Context(), w))
		if late := ran.Sub(began) - 10*time.Minute; late < 0 || late > time.Second {
			t.Errorf("it ran %v late", late)
		}
		task, err := e.Client.Get(t.Context(), id)
		if err != nil || task.FinishedAt.Sub(task.CreatedAt) < 10*time.Minute {
			t.Errorf("%v, %v", task, err)
		}
	})
}

// What waits for time does so in order: a retry, a silent worker, an expiry.
func TestFakeTimeOfRetriesLeasesAndExpiry(t *testing.T) {
	yardtest.FakeTime(t, func(t *testing.T, e *yardtest.Engine) {
		submit(t, e.Client, "ann", func(t *yard.Task) {
			t.Retry = &yard.RetryPolicy{InitialInterval: time.Minute, Backoff: 1, MaxAttempts: 3}
		})
		var at []time.Time
		w := worker(e.Client, sendEmail.Tasklist())
		sendEmail.Handle(w, func(context.Context, email) (string, error) {
			at = append(at, time.Now())
			return "", errors.New("no")
		})
		testkit.NoError(t, e.RunToEnd(t.Context(), w))
		if len(at) != 3 || at[1].Sub(at[0]) < 50*time.Second || at[2].Sub(at[1]) < 50*time.Second {
			t.Errorf("attempts at %v", at)
		}

		expires := submit(t, e.Client, "bob", func(t *yard.Task) { t.StartWithin = 2 * time.Minute })
		time.Sleep(time.Minute)
		if task, err := e.Client.Get(t.Context(), expires); err != nil || task.State.Finished() {
			t.Errorf("before its time: %v, %v", task.State, err)
		}
		time.Sleep(2 * time.Minute)
		if _, err := e.Client.Wait(t.Context(), expires); !errors.Is(err, yard.ErrExpired) {
			t.Errorf("after its time: %v", err)
		}
	})
}

// A worker that vanishes is noticed when its signs of life stay away, and a restart keeps what was stored.
func TestFakeTimeOfCrashes(t *testing.T) {
	yardtest.FakeTime(t, func(t *testing.T, e *yardtest.Engine) {
		id := submit(t, e.Client, "ann", func(t *yard.Task) { t.HeartbeatTimeout = time.Minute })
		doomed := e.Connect(t)
		began := make(chan struct{})
		crashes := worker(doomed, sendEmail.Tasklist())
		sendEmail.Handle(crashes, func(ctx context.Context, _ email) (string, error) {
			close(began)
			<-ctx.Done()
			return "", ctx.Err()
		})
		ctx, kill := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- crashes.Run(ctx) }()
		<-began
		doomed.Close()
		kill()
		if err := <-ended; err == nil {
			t.Error("a crash is no clean end")
		}
		e.Restart(t)
		w := worker(e.Client, sendEmail.Tasklist())
		sendEmail.Handle(w, func(context.Context, email) (string, error) { return "sent", nil })
		testkit.NoError(t, e.RunToEnd(t.Context(), w))
		task, err := e.Client.Get(t.Context(), id)
		lost := slices.IndexFunc(task.Events, func(e yard.Event) bool { return e.Kind == "lost" })
		if err != nil || task.Grants != 2 || task.Failures != 0 || lost < 0 {
			t.Fatalf("%v, %v", task, err)
		}
		const silent, grace = 6 * time.Second, 10 * time.Second // two signs of life, and a while in which workers connect to an engine that has started
		if after := task.Events[lost].At.Sub(task.CreatedAt); after < silent || after > silent+grace {
			t.Errorf("%v, %v", task, err)
		}
	})
}
