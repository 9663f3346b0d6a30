package schedules_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/schedules"
)

// A report each night at half past two, in Berlin, but not on Christmas Eve. Its worker gets the day as {"day":"2026-11-30"}.
func Example() {
	client, err := yard.Connect("nats://127.0.0.1:4222", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	info, err := schedules.Of(client).Put(context.Background(), schedules.Schedule{
		Name: "nightly", Cron: []string{"30 2 * * *"}, TimeZone: "Europe/Berlin", ExcludeDates: []string{"12-24"},
		Task: yard.Task{Type: "report.build", Tasklist: "reports", Payload: map[string]string{"day": "{{run_date}}"}, FinishWithin: time.Hour},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, at := range info.Next {
		fmt.Println(at)
	}
}
