package yardtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/yardtest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

type order struct{ ID int }

var (
	ship  = yard.Define[order, string]("order.ship", "orders")
	thank = yard.Define[order, string]("order.thank", "mail")
)

// shop is the program under test: it ships an order, and then has its buyer thanked.
func shop(c *yard.Client) *yard.Worker {
	w := yard.NewWorker(c, ship.Tasklist())
	ship.Handle(w, func(ctx context.Context, o order) (string, error) {
		_, err := thank.Submit(ctx, c, o)
		return fmt.Sprintf("parcel %d", o.ID), err
	})
	return w
}

// A program's test: its workers run until nothing is left for them, and then the test looks at what it submitted.
func TestExample(t *testing.T) {
	ctx, e := bounded(t), yardtest.New(t)
	id, err := ship.Submit(ctx, e.Client, order{ID: 7})
	testkit.NoError(t, err)

	// The mail is another program's work: here somebody takes it and does nothing.
	mail := yard.NewWorker(e.Client, thank.Tasklist())
	mail.HandleRest(func(context.Context, *yard.Attempt) (yard.Payload, error) { return yard.Payload{}, nil })
	testkit.NoError(t, e.RunToIdle(ctx, shop(e.Client), mail))

	if parcel, err := ship.Wait(ctx, e.Client, id); err != nil || parcel != "parcel 7" {
		t.Errorf("shipped as %q, %v", parcel, err)
	}
	if thanks := yardtest.SubmittedOf(t, e, thank); len(thanks) != 1 || thanks[0].Input.ID != 7 {
		t.Errorf("buyers thanked: %+v", thanks)
	}
}
