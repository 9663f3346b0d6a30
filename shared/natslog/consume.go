package natslog

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// consumeMsgs is pullMsgs for Consume: a request whose asker is lost takes messages until it expires, and they come again only when the server has waited for
// their acknowledgements.
const consumeMsgs = 256

// Consume hands out the messages of a consumer that its caller has made, until ctx ends and what has come is handed out; then it returns nil. Each is to
// be acknowledged, else it comes again. An error says why the consumer broke, as when its server is away: what was under way comes again to the next call.
func Consume(ctx context.Context, js jetstream.JetStream, consumer jetstream.Consumer, log *slog.Logger, handle func(*nats.Msg)) error {
	made := consumer.CachedInfo()
	c := newCursor(js, ReadConfig{Stream: made.Stream, Log: log}, false)
	c.msgs, c.acked = consumeMsgs, true
	defer c.detach()
	err := c.subscribe(made.Name)
	c.delivered = made.Delivered.Consumer
	for err == nil {
		if err = c.consume(ctx, handle); ctx.Err() != nil && err != nil {
			return nil
		}
	}
	return fmt.Errorf("consume %s: %w", made.Stream, err)
}

// consume hands out one message.
func (c *cursor) consume(ctx context.Context, handle func(*nats.Msg)) error {
	if !c.open {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.request(); err != nil {
			return err
		}
	}
	msg, err := c.wait(ctx)
	switch {
	case err != nil:
		return err
	case isControl(msg):
		return c.control(msg)
	}
	c.received(msg)
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	c.delivered = meta.Sequence.Consumer
	handle(msg)
	return nil
}

// detach forgets a consumer that is its maker's.
func (c *cursor) detach() {
	if c.sub != nil {
		_ = c.sub.Unsubscribe() // fails only where the connection is closed
	}
	c.sub = nil
	c.stop()
}
