package timers_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/timers"
)

// How many tasks are due in each hour of the next day, and which ones are due within five minutes.
func Example() {
	client, err := yard.Connect("nats://127.0.0.1:4222", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	ahead, err := timers.Count(ctx, client, timers.Query{Within: 24 * time.Hour, Span: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range ahead.Spans {
		fmt.Println(s.Start, s.Tasks)
	}
	for task, err := range client.Tasks(ctx, yard.Filter{DueWithin: 5 * time.Minute}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(task.DueAt, task.ID)
	}
}
