package natslog_test

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// What is acknowledged does not come again, what is put off does. The one who consumes ends with its context, or with its consumer.
func TestConsume(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, nil)
	fill(t, js.Conn(), 3, 10, "log.a")
	stream, err := js.Stream(t.Context(), stream)
	testkit.NoError(t, err)
	find := func() jetstream.Consumer {
		t.Helper()
		consumer, err := stream.CreateOrUpdateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "one", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1})
		testkit.NoError(t, err)
		return consumer
	}
	ctx, stop := context.WithCancel(t.Context())
	var came []uint64
	consume := func(handle func(*nats.Msg)) error {
		return natslog.Consume(ctx, js, find(), nil, func(m *nats.Msg) {
			meta, err := m.Metadata()
			testkit.NoError(t, err)
			came = append(came, meta.Sequence.Stream)
			handle(m)
		})
	}
	ended := consume(func(m *nats.Msg) {
		switch len(came) {
		case 2:
			testkit.NoError(t, m.Nak())
		case 4:
			testkit.NoError(t, m.Ack())
			testkit.NoError(t, stream.DeleteConsumer(t.Context(), "one"))
		default:
			testkit.NoError(t, m.Ack())
		}
	})
	if ended == nil {
		t.Error("it ended without an error, and its consumer is gone")
	}
	testkit.Equal(t, "came", came, []uint64{1, 2, 3, 2})
	came = nil
	ended = consume(func(m *nats.Msg) {
		testkit.NoError(t, m.Ack())
		if len(came) == 3 {
			stop()
		}
	})
	testkit.NoError(t, ended)
	testkit.Equal(t, "came to the next consumer", came, []uint64{1, 2, 3})
}
