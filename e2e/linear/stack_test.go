package linear

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// shortCalls is how many calls the short form has at least, fewCalls in a quick run.
const shortCalls, fewCalls = 400, 100

// TestEachTaskHasOneLife: in a system that nothing disturbs.
func TestEachTaskHasOneLife(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := stack.Start(ctx, stack.Config{Tables: stack.TablesMemory})
	testkit.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		testkit.Check(t, s.Close(ctx))
	})
	connect := func() *nats.Conn {
		// An inbox for each request, so that tasks of a poll that was given up find no one, and come back.
		nc, err := nats.Connect(s.URL, nats.UseOldRequestStyle(), nats.Name(t.Name()))
		testkit.NoError(t, err)
		t.Cleanup(nc.Close)
		return nc
	}
	nc := connect()
	admin, err := yard.NewAdmin(nc)
	testkit.NoError(t, err)
	own, err := yard.NewClient(nc, domain)
	testkit.NoError(t, err)
	define(t, admin, own)
	h := newHistory()
	r := start(t, h, connect)
	calls := testkit.Rounds(t, shortCalls, fewCalls)
	testkit.Eventually(t, within, func() error {
		if n := h.len(); n < calls {
			return fmt.Errorf("%d calls of %d", n, calls)
		}
		return nil
	})
	r.end()
	h.finish(t, &client{nc: nc, h: h, no: operators + workers})
	h.check(t, nil)
}
