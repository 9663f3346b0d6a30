package yardtest_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/yardtest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

const within = 90 * time.Second

func TestMain(m *testing.M) { natskit.VerifyTestMain(m) }

type email struct{ To string }

var (
	sendEmail = yard.Define[email, string]("email.send", "mail")
	audit     = yard.Define[email, string]("audit.write", "audit")
)

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	return ctx
}

func worker(c *yard.Client, tasklist string) *yard.Worker {
	return yard.NewWorker(c, tasklist, yard.WithLogger(slog.New(slog.DiscardHandler)))
}

func submit(t *testing.T, c *yard.Client, to string, opts ...func(*yard.Task)) string {
	t.Helper()
	var options []yard.TaskOption
	for _, o := range opts {
		options = append(options, yard.WithTask(o))
	}
	id, err := sendEmail.Submit(bounded(t), c, email{to}, options...)
	testkit.NoError(t, err)
	return id
}

// What was stored is listed at once, in order, of each priority and delayed, and by type with its input; another domain
// has none of it.
func TestSubmittedTasksAreSeenAtOnce(t *testing.T) {
	e := yardtest.New(t)
	if got := e.Submitted(t); len(got) != 0 {
		t.Fatalf("a fresh domain has %d tasks", len(got))
	}
	names := []string{"a", "b", "c", "d", "e", "late"}
	for i, name := range names {
		submit(t, e.Client, name, func(task *yard.Task) {
			if task.Priority = i + 1; name == "late" {
				task.Priority, task.Delay = 0, time.Hour
			}
		})
		if got := yardtest.SubmittedOf(t, e, sendEmail); len(got) != i+1 || got[i].Input.To != name {
			t.Fatalf("after %q was submitted: %d tasks, %+v", name, len(got), got)
		}
	}
	testkit.NoError(t, testkit.Err(audit.Submit(bounded(t), e.Client, email{"x"})))
	if got := e.Submitted(t); len(got) != len(names)+1 || got[len(names)].Type != audit.Type() {
		t.Errorf("%d tasks", len(got))
	}
	other := e.Fresh(t)
	if got := other.Submitted(t); len(got) != 0 || other.Domain() == e.Domain() {
		t.Errorf("another domain, %s, has %d tasks", other.Domain(), len(got))
	}
}

// All that is due is run, what handlers submit too, more than one page of it; what is delayed stays.
func TestRunToIdleLeavesOnlyWhatIsNotDue(t *testing.T) {
	e := yardtest.New(t)
	const n = 150
	for range n {
		submit(t, e.Client, "ann")
	}
	late := submit(t, e.Client, "late", func(task *yard.Task) { task.Delay = time.Hour })
	var mails, audits atomic.Int32
	mail, clerk := worker(e.Client, "mail"), worker(e.Client, "audit")
	sendEmail.Handle(mail, func(ctx context.Context, in email) (string, error) {
		mails.Add(1)
		return audit.Submit(ctx, e.Client, in)
	})
	audit.Handle(clerk, func(context.Context, email) (string, error) { audits.Add(1); return "", nil })
	testkit.NoError(t, e.RunToIdle(bounded(t), mail, clerk))
	if mails.Load() != n || audits.Load() != n {
		t.Errorf("%d and %d attempts, want %d of each", mails.Load(), audits.Load(), n)
	}
	if task, err := e.Client.Get(bounded(t), late); err != nil || task.State != yard.StateWaiting {
		t.Errorf("the delayed task: %v, %v", task, err)
	}
	testkit.Equal(t, "tasks are listed", len(e.Submitted(t)), 2*n+1)
}

// Backoff and delays are waited for, up to the dead letters.
func TestRunToEndWaitsForBackoffAndDelays(t *testing.T) {
	e := yardtest.New(t)
	retry := &yard.RetryPolicy{MaxAttempts: 3, InitialInterval: 20 * time.Millisecond}
	id := submit(t, e.Client, "ann", func(task *yard.Task) { task.Retry, task.Delay = retry, 50*time.Millisecond })
	w := worker(e.Client, "mail")
	sendEmail.Handle(w, func(context.Context, email) (string, error) { return "", errors.New("no such mailbox") })
	testkit.NoError(t, e.RunToEnd(bounded(t), w))
	if task, err := e.Client.Get(bounded(t), id); err != nil || task.State != yard.StateDead || task.Failures != 3 {
		t.Errorf("the task: %v, %v", task, err)
	}
}

// A run that cannot come to an end says what is left; one whose worker is wrong ends at once.
func TestARunThatDoesNotEndSaysWhatIsLeft(t *testing.T) {
	e := yardtest.New(t)
	submit(t, e.Client, "ann")
	ctx, cancel := context.WithCancel(bounded(t))
	w := worker(e.Client, "audit")
	audit.Handle(w, func(context.Context, email) (string, error) { cancel(); return "", nil })
	testkit.NoError(t, testkit.Err(audit.Submit(ctx, e.Client, email{"x"})))
	if err := e.RunToIdle(ctx, w); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "ready email.send on mail") {
		t.Errorf("the error is %v", err)
	}
	if err := e.RunToIdle(bounded(t), worker(e.Client, "audit")); !errors.Is(err, yard.ErrInvalidArgument) {
		t.Errorf("of a worker without handlers: %v", err)
	}
}

// A worker that crashes in the middle of an attempt reports nothing; the task is run again elsewhere.
func TestAWorkerVanishesInMidAttempt(t *testing.T) {
	e := yardtest.New(t)
	id := submit(t, e.Client, "ann", func(task *yard.Task) { task.HeartbeatTimeout = 300 * time.Millisecond })
	doomed := e.Connect(t)
	crashing := worker(doomed, "mail")
	sendEmail.Handle(crashing, func(context.Context, email) (string, error) { doomed.Close(); return "first", nil })
	if err := crashing.Run(bounded(t)); err == nil {
		t.Error("the worker whose connection is gone ended without an error")
	}
	w := worker(e.Client, "mail")
	sendEmail.Handle(w, func(context.Context, email) (string, error) { return "second", nil })
	testkit.NoError(t, e.RunToIdle(bounded(t), w))
	got, err := sendEmail.Wait(bounded(t), e.Client, id)
	if err != nil || got != "second" {
		t.Errorf("the result is %q, %v", got, err)
	}
	task, err := e.Client.Get(bounded(t), id)
	testkit.NoError(t, err)
	lost := func(event yard.Event) bool { return event.Kind == "lost" && event.Grant == 1 }
	if task.Failures != 0 || !slices.ContainsFunc(task.Events, lost) {
		t.Errorf("the first attempt was not lost: %v", task)
	}
}

// An engine that restarts has all it had, and its clients go on.
func TestAnEngineRestartsWithWhatItHad(t *testing.T) {
	testkit.Slow(t, "restarts a system of its own")
	e := yardtest.New(t)
	done, open := submit(t, e.Client, "ann"), ""
	w := worker(e.Client, "mail")
	sendEmail.Handle(w, func(context.Context, email) (string, error) { return "sent", nil })
	testkit.NoError(t, e.RunToIdle(bounded(t), w))
	open = submit(t, e.Client, "bob")
	before := e.URL()
	e.Restart(t)
	if e.URL() == before {
		t.Error("it is at the same address: is it another engine?")
	}
	again := worker(e.Client, "mail")
	sendEmail.Handle(again, func(context.Context, email) (string, error) { return "sent later", nil })
	testkit.NoError(t, e.RunToIdle(bounded(t), again))
	for id, want := range map[string]string{done: "sent", open: "sent later"} {
		if got, err := sendEmail.Wait(bounded(t), e.Client, id); err != nil || got != want {
			t.Errorf("the result is %q, %v, want %q", got, err, want)
		}
	}
}
