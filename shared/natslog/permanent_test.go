package natslog_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// TestPermanentErrors: what the server will never take, each asked of a real one.
// R19.
func TestPermanentErrors(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000; c.AllowMsgTTL = false })
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "PLAIN", Subjects: []string{"plain.>"}})
	must(t, err)
	nc := js.Conn()
	one := func(m natslog.Msg) error {
		_, _, err := natslog.Append(t.Context(), nc, m)
		return err
	}
	many := func(n int, m natslog.Msg) error {
		_, err := natslog.AppendAtomic(t.Context(), nc, slices.Repeat([]natslog.Msg{m}, n))
		return err
	}
	for name, err := range map[string]error{
		"larger than the server takes": one(natslog.Msg{Subject: "log.a", Data: make([]byte, 2<<20)}),
		"larger than the stream takes": one(natslog.Msg{Subject: "log.a", Data: make([]byte, 2000)}),
		"bad subject":                  one(natslog.Msg{Subject: "log a"}),
		"no subject":                   one(natslog.Msg{}),
		"header too large":             one(natslog.Msg{Subject: "plain.a", Header: nats.Header{"a": {strings.Repeat("b", 70_000)}}}),
		"another stream's":             one(natslog.Msg{Subject: "log.a", Header: nats.Header{"Nats-Expected-Stream": {"OTHER"}}}),
		"no TTLs here":                 one(natslog.Msg{Subject: "log.a", Header: nats.Header{"Nats-TTL": {"1s"}}}),
		"no batches here":              many(2, natslog.Msg{Subject: "plain.a"}),
		"batch of too many":            many(natslog.BatchMsgsMax+1, natslog.Msg{Subject: "log.a"}),
		"batch of too large ones":      many(2, natslog.Msg{Subject: "log.a", Data: make([]byte, 2000)}),
	} {
		if !natslog.Permanent(err) || !errors.Is(err, natslog.ErrNotStored) {
			t.Errorf("%s: %v", name, err)
		}
		settings := []string{"another stream's", "no TTLs here", "no batches here", "batch of too many"}
		if natslog.BadMessage(err) == slices.Contains(settings, name) {
			t.Errorf("%s: it is taken for the message's fault: %v; %v", name, natslog.BadMessage(err), err)
		}
	}
}

// TestABadMessageAmongOthers: the server says no more than that the batch lacks one.
func TestABadMessageAmongOthers(t *testing.T) {
	_, js := logServer(t, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 })
	large, small := natslog.Msg{Subject: "log.a", Data: make([]byte, 2000)}, natslog.Msg{Subject: "log.a"}
	for what, c := range map[string]struct {
		msgs       []natslog.Msg
		incomplete bool
	}{
		"first":  {[]natslog.Msg{large, small, small}, true},
		"middle": {[]natslog.Msg{small, large, small}, true},
		"last":   {[]natslog.Msg{small, small, large}, false},
	} {
		_, err := natslog.AppendAtomic(t.Context(), js.Conn(), c.msgs)
		if errors.Is(err, natslog.ErrIncomplete) != c.incomplete || natslog.BadMessage(err) == c.incomplete || !errors.Is(err, natslog.ErrNotStored) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if last, err := natslog.LastSeq(t.Context(), js, stream); err != nil || last != 0 {
		t.Errorf("%d messages are stored: %v", last, err)
	}
}

// TestPassingErrors: what may be taken later, and what is no failure.
func TestPassingErrors(t *testing.T) {
	t.Parallel()
	srv, js := logServer(t, func(c *jetstream.StreamConfig) { c.MaxMsgs = 1 })
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "BYTES", Subjects: []string{"bytes.>"}, MaxBytes: 200, Discard: jetstream.DiscardNew,
	})
	must(t, err)
	nc := js.Conn()
	_, err = nc.Subscribe("mute.>", func(*nats.Msg) {})
	must(t, err)
	must(t, nc.Flush())
	one := func(ctx context.Context, m natslog.Msg) error {
		_, _, err := natslog.Append(ctx, nc, m)
		return err
	}
	must(t, one(t.Context(), natslog.Msg{Subject: "log.a"}))
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	cases := map[string]error{
		"none":             nil,
		"no responders":    one(t.Context(), natslog.Msg{Subject: "nowhere"}),
		"no answer":        one(short, natslog.Msg{Subject: "mute.a"}),
		"full of messages": one(t.Context(), natslog.Msg{Subject: "log.a"}),
		"full of bytes":    one(t.Context(), natslog.Msg{Subject: "bytes.a", Data: make([]byte, 300)}),
		"wrong last":       one(t.Context(), natslog.Msg{Subject: "bytes.a", Header: expect("bytes.a", "7")}),
	}
	stop(t, srv, nc)
	cases["not connected"] = one(t.Context(), natslog.Msg{Subject: "log.a"})
	for name, err := range cases {
		if natslog.Permanent(err) || natslog.BadMessage(err) || (err == nil) != (name == "none") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
