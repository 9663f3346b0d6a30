package yard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// Errors say what follows: a retry by the policy, a retry at a given time, or the dead letters.
func ExampleRetryAfter() {
	var w *yard.Worker // of NewWorker
	yard.Handle(w, "invoice.fetch", func(ctx context.Context, url string) (yard.Payload, error) {
		resp, err := http.Get(url)
		if err != nil {
			return yard.Payload{}, err // by the retry policy
		}
		defer resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusTooManyRequests:
			return yard.Payload{}, yard.RetryAfter(errors.New("too many requests"), time.Minute)
		case http.StatusNotFound:
			return yard.Payload{}, yard.NonRetryable(errors.New("no such invoice"))
		}
		return yard.NewPayload(resp.Header)
	})
}

// All handlers of a worker classify errors alike: what the partner refuses is not tried again, and when it is busy the next
// attempt waits longer each time. Other errors follow the retry policy.
func ExampleWithClassifier() {
	var refused, busy error // of the partner's client
	var c *yard.Client      // of NewClient or Connect
	yard.NewWorker(c, "payouts", yard.WithClassifier(
		yard.NonRetryableErrors(refused),
		func(a *yard.Attempt, err error) error {
			if errors.Is(err, busy) {
				return yard.RetryAfter(err, time.Duration(a.Failures+1)*time.Minute)
			}
			return err
		}))
}

// The group and the priority of a payout follow from its input, so no caller has to name them.
func ExampleDefinition_FromInput() {
	type payout struct {
		Partner string
		Cents   int
	}
	send := yard.Define[payout, struct{}]("payout.send", "payouts").FromInput(func(in payout, t *yard.Task) {
		t.Group = in.Partner
		if in.Cents > 100_000 {
			t.Priority = 1
		}
	})
	task := send.Task(payout{Partner: "acme", Cents: 250_000})
	fmt.Println(task.Type, task.Group, task.Priority)
	// Output: payout.send acme 1
}

// A long handler watches its context and tells how far it is. The worker sends
// the heartbeats.
func ExampleProgress() {
	var w *yard.Worker // of NewWorker
	yard.Handle(w, "video.encode", func(ctx context.Context, frames int) (struct{}, error) {
		for i := range frames {
			if ctx.Err() != nil {
				return struct{}{}, context.Cause(ctx) // cancelled, lost, stopping, or too late
			}
			if err := yard.Progress(ctx, map[string]int{"frame": i}); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
}

// Middleware sees every attempt of a worker.
func ExampleMiddleware() {
	timed := func(next yard.HandlerFunc) yard.HandlerFunc {
		return func(ctx context.Context, a *yard.Attempt) (yard.Payload, error) {
			began := time.Now()
			result, err := next(ctx, a)
			slog.Info("ran", "type", a.Type, "attempt", a.Number, "took", time.Since(began), "error", err)
			return result, err
		}
	}
	var c *yard.Client // of NewClient or Connect
	yard.NewWorker(c, "mail", yard.WithConcurrency(50), yard.WithMiddleware(timed))
}

// Any number of tasks: requests of up to 1000, each whole in itself.
func ExampleClient_SubmitMany() {
	var c *yard.Client // of NewClient or Connect
	tasks := make([]yard.Task, 25_000)
	for i := range tasks {
		tasks[i] = yard.Task{Type: "email.send", Tasklist: "mail", Payload: Email{To: fmt.Sprint(i)}, Priority: 5}
	}
	ids, err := c.SubmitMany(context.Background(), tasks)
	if errors.Is(err, &fault.Error{Code: fault.ResourceExhausted}) {
		fmt.Println("left to submit:", len(tasks[len(ids):]))
	}
}

// One worker for several tasklists: they share its slots in equal parts.
func ExampleWithTasklists() {
	var c *yard.Client // of NewClient or Connect
	w := yard.NewWorker(c, "mail", yard.WithTasklists("invoices", "reports"), yard.WithConcurrency(50))
	yard.Handle(w, "email.send", func(ctx context.Context, in Email) (struct{}, error) {
		fmt.Println("from", yard.Info(ctx).Tasklist, "to", in.To)
		return struct{}{}, nil
	})
}

// One worker for tasklists of different weight: while all have work, four tasks of six are of mail.
func ExampleWithWeights() {
	var c *yard.Client // of NewClient or Connect
	w := yard.NewWorker(c, "mail", yard.WithWeights(map[string]int{"mail": 4, "invoices": 1, "reports": 1}))
	yard.Handle(w, "email.send", func(ctx context.Context, in Email) (struct{}, error) {
		fmt.Println("from", yard.Info(ctx).Tasklist, "to", in.To)
		return struct{}{}, nil
	})
}

// While a partner's API is down, none of its tasks starts; they are kept, and start when the type is resumed, at the
// latest after an hour.
func ExampleClient_Pause() {
	ctx := context.Background()
	var c *yard.Client // of NewClient or Connect
	p, err := c.Pause(ctx, yard.OfType("payout.send"), yard.PauseOptions{Reason: "the partner's API is down", By: "ann", For: time.Hour})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println("paused until", p.Until)
	if _, err := c.Resume(ctx, yard.OfType("payout.send")); err != nil {
		fmt.Println(err)
	}
}

// Which workers ask for the tasks of a tasklist, and are all of them of the new version?
func ExampleClient_TasklistPollers() {
	ctx := context.Background()
	var c *yard.Client // of NewClient or Connect
	pollers, err := c.TasklistPollers(ctx, "mail")
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range pollers.All {
		fmt.Println(p.Worker, p.Version, "polled", p.SeenAgo, "ago;", p.WaitingPolls, "polls wait")
	}
}

// A limit is full: who has its slots, and who waits for one?
func ExampleClient_TopLimits() {
	ctx := context.Background()
	var c *yard.Client // of NewClient or Connect
	top, err := c.TopLimits(ctx, yard.TopOptions{Limits: 1, Each: 5})
	if err != nil {
		fmt.Println(err)
	}
	for _, l := range top.Limits {
		fmt.Println(l.Ref, "was full for", l.SaturationPercent, "% of the last", l.Observed)
		for _, h := range l.Holders {
			fmt.Println(h.TaskID, "of", h.Type, "runs on", h.Worker, "since", h.HeldFor)
		}
		for _, w := range l.Waiters {
			fmt.Println(w.Tasks, "tasks wait in", w.Tasklist, "for", w.WaitingFor)
		}
	}
}

// What a partner's API takes is shared by two types: together they never run more than 30 attempts at once, and
// payouts no more than 15 of these.
func ExampleClient_PutLimit() {
	ctx := context.Background()
	var c *yard.Client // of NewClient or Connect
	if _, err := c.PutLimit(ctx, yard.Limit{Name: "partner-acme", MaxConcurrency: 30}); err != nil {
		fmt.Println(err)
	}
	for _, t := range []yard.TaskType{
		{Name: "payout.send", MaxConcurrency: 15, Limits: []string{"partner-acme"}},
		{Name: "report.fetch", Limits: []string{"partner-acme"}},
	} {
		if _, err := c.PutType(ctx, t); err != nil {
			fmt.Println(err)
		}
	}
}
