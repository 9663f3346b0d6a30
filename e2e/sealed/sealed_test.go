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
	if err := sealed.Render(dir, topology.Partitioning{}, []string{"shop"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := stack.Start(ctx, stack.Config{Auth: dir, Tables: stack.TablesMemory, Log: log.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := log.Refused(); err != nil {
		t.Error(err)
	}
	shop, err := sealed.Connect(s, sealed.Admin("shop"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	if err := sealed.Render(dir, topology.Partitioning{}, []string{"shop", "bank"}); err != nil {
		t.Fatal(err)
	}
	if _, err := sealed.Connect(s, sealed.Admin("bank")); err == nil {
		t.Error("a user is known before the reload")
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	bank, err := sealed.Connect(s, sealed.Admin("bank"))
	if err != nil {
		t.Fatal(err)
	}
	defer bank.Close()
	if !shop.IsConnected() || shop.Stats().Reconnects != 0 {
		t.Error("the other user lost its connection")
	}
	if err := shop.Publish(topology.Event(0), nil); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, within, func() error {
		if log.Refused() == nil {
			return fmt.Errorf("a refusal was not seen")
		}
		return nil
	})
}
