package yard_test

import (
	"context"
	"fmt"
	"log"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

type Email struct{ To, Subject string }

type Receipt struct{ MessageID string }

// A first typed task: a worker with one handler, and a caller that waits for its result.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	client, err := yard.Connect("nats://127.0.0.1:4222", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	worker := yard.NewWorker(client, "mail")
	yard.Handle(worker, "email.send", func(ctx context.Context, in Email) (Receipt, error) {
		return Receipt{MessageID: "<" + in.To + ">"}, nil
	})
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()

	task := yard.Task{Type: "email.send", Tasklist: "mail", Payload: Email{To: "ann@example.com", Subject: "Hello"}}
	receipt, err := yard.Run[Receipt](ctx, client, task)
	fmt.Println(receipt.MessageID, err)

	stop()
	fmt.Println(<-done)
}
