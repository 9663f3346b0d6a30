package bulk_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/bulk"
)

// The mails of a campaign are cancelled that have waited for an hour: first they are counted.
func ExampleCancel() {
	client, err := yard.Connect("nats://127.0.0.1:4222", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	o := bulk.Options{
		Filter:    yard.Filter{Tasklist: "mail", Headers: map[string]string{"campaign": "spring"}},
		OlderThan: time.Hour, Rate: 500, Preview: true,
	}
	for _, o.Preview = range []bool{true, false} {
		done, err := bulk.Cancel(context.Background(), client, "not wanted any more", o)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(done.Found, "tasks match,", done.Changed, "are cancelled")
	}
}
