package sealed_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const within = 60 * time.Second

// What the scenarios rely on: a refusal of the server is seen, and users that are added later can connect.
func TestRefusalsAreSeenAndUsersAdded(t *testing.T) {
	dir, log := t.TempDir(), new(sealed.Log)
	testkit.NoError(t, sealed.Render(dir, topology.Partitioning{}, []string{"shop"}))
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := stack.Start(ctx, stack.Config{Auth: dir, Tables: stack.TablesMemory, Log: log.Logger()})
	testkit.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		testkit.Check(t, s.Close(ctx))
	})
	testkit.Check(t, log.Refused())
	shop, err := sealed.Connect(s, sealed.Admin("shop"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	testkit.NoError(t, err)
	defer shop.Close()
	testkit.NoError(t, sealed.Render(dir, topology.Partitioning{}, []string{"shop", "bank"}))
	if _, err := sealed.Connect(s, sealed.Admin("bank")); err == nil {
		t.Error("a user is known before the reload")
	}
	testkit.NoError(t, s.Reload())
	bank, err := sealed.Connect(s, sealed.Admin("bank"))
	testkit.NoError(t, err)
	defer bank.Close()
	if !shop.IsConnected() || shop.Stats().Reconnects != 0 {
		t.Error("the other user lost its connection")
	}
	testkit.NoError(t, shop.Publish(topology.Event(0), nil))
	testkit.Eventually(t, within, func() error {
		if log.Refused() == nil {
			return fmt.Errorf("a refusal was not seen")
		}
		return nil
	})
}
