package operate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/operate"
)

// The attempts that run for too long, and the end of the first one.
func Example() {
	ctx := context.Background()
	client, err := yard.Connect("nats://127.0.0.1:4222", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	stuck, err := operate.Stuck(ctx, client, operate.StuckQuery{Tasklist: "mail"})
	if err != nil || len(stuck.Tasks) == 0 {
		log.Fatal(err)
	}
	t := stuck.Tasks[0]
	fmt.Println(t.TaskID, t.Worker, t.RunningFor)
	err = operate.End(ctx, client, operate.Ending{State: yard.StateDead, Reason: "the relay hangs", By: "ann"}, t.TaskID)
	if err != nil {
		log.Fatal(err)
	}
}
