package linear

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
)

// shortFor is how long the clients of the short form work.
const shortFor = 4 * time.Second

// TestEachTaskHasOneLife: in a system that nothing disturbs.
func TestEachTaskHasOneLife(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := stack.Start(ctx, stack.Config{Tables: stack.TablesMemory})
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
	connect := func() *nats.Conn {
		// An inbox for each request, so that tasks of a poll that was given up find no one, and come back.
		nc, err := nats.Connect(s.URL, nats.UseOldRequestStyle(), nats.Name(t.Name()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	nc := connect()
	admin, err := yard.NewAdmin(nc)
	if err != nil {
		t.Fatal(err)
	}
	own, err := yard.NewClient(nc, domain)
	if err != nil {
		t.Fatal(err)
	}
	define(t, admin, own)
	h := newHistory()
	r := start(t, h, connect)
	select {
	case <-time.After(shortFor):
	case <-t.Context().Done():
	}
	r.end()
	h.finish(t, &client{nc: nc, h: h, no: operators + workers})
	h.check(t, nil)
}
