package events_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/events"
)

// Dead letters and late mails are printed as they come. An operator has turned the events of the domain on.
func Example() {
	client, err := yard.Connect("nats://127.0.0.1:4222", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	all, err := events.Listen(context.Background(), client, events.Filter{Kinds: []events.Kind{events.Dead, events.Late}, Tasklist: "mail"})
	if err != nil {
		log.Fatal(err)
	}
	defer all.Close()
	for e, err := range all.Events(context.Background()) {
		switch {
		case errors.Is(err, events.ErrMissed):
			log.Print(err) // look with client.List
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(e.Kind, e.TaskID, e.Type, e.ErrorType)
		}
	}
}
