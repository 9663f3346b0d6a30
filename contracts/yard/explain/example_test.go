package explain_test

import (
	"context"
	"fmt"
	"log"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/explain"
)

// All reasons why a task waits, and until when.
func Example() {
	client, err := yard.Connect("nats://127.0.0.1:4222", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	why, err := explain.Task(context.Background(), client, "06dabzyw00004emhrks7qr2x30")
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range why.Reasons {
		fmt.Println(r.Code, r.Text, r.Until)
	}
}
