package yard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// A client's middleware sees every submit, and may change it: here the tasks of a tenant's trial are less urgent.
func ExampleSubmitMiddleware() {
	trial := func(next yard.SubmitFunc) yard.SubmitFunc {
		return func(ctx context.Context, tasks []yard.Task) ([]string, error) {
			tasks = slices.Clone(tasks) // they are the caller's
			for i := range tasks {
				tasks[i].Priority = 5
			}
			return next(ctx, tasks)
		}
	}
	// Of several the first is the outermost: the log and the span tell how long all of it took.
	client, err := yard.Connect("nats://127.0.0.1:4222", "shop",
		yard.WithSubmitMiddleware(yard.LogSubmits(slog.Default()), yard.TraceSubmits(nil), trial))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
}

// What LogAttempts logs. A worker takes it by WithMiddleware.
func ExampleLogAttempts() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "duration" {
			return slog.Attr{} // differ from run to run
		}
		return a
	}}))
	send := func(_ context.Context, a *yard.Attempt) (yard.Payload, error) {
		if a.Number == 1 {
			return yard.Payload{}, errors.New("mailbox full")
		}
		return yard.NewPayload("sent")
	}
	logged := yard.LogAttempts(log)(send)
	for number := 1; number <= 2; number++ {
		_, _ = logged(context.Background(), &yard.Attempt{TaskID: "06dabzyw00004emhrks7qr2x30", Type: "email.send", Number: number})
	}
	// Output:
	// level=WARN msg="an attempt failed" type=email.send task_id=06dabzyw00004emhrks7qr2x30 attempt=1 error="mailbox full"
	// level=INFO msg="an attempt is done" type=email.send task_id=06dabzyw00004emhrks7qr2x30 attempt=2
}
