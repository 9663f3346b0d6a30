package yard_test

import (
	"context"
	"fmt"
	"log"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

type Email struct{ To, Subject string }

type Receipt struct{ MessageID string }

// SendEmail is what both sides share: the type's name, its tasklist, its input and output.
var SendEmail = yard.Define[Email, Receipt]("email.send", "mail")

// A first typed task: a worker with one handler, and a caller that waits for its result.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	client, err := yard.Connect("nats://127.0.0.1:4222", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	worker := yard.NewWorker(client, SendEmail.Tasklist())
	SendEmail.Handle(worker, func(ctx context.Context, in Email) (Receipt, error) {
		return Receipt{MessageID: "<" + in.To + ">"}, nil
	})
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()

	receipt, err := SendEmail.Run(ctx, client, Email{To: "ann@example.com", Subject: "Hello"})
	fmt.Println(receipt.MessageID, err)

	stop()
	fmt.Println(<-done)
}
