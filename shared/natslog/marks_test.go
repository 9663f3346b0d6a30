package natslog_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

func TestMarksTakeThePlaceOfMessages(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, func(c *jetstream.StreamConfig) { c.AllowRollup = true })
	nc, ctx := js.Conn(), t.Context()
	var all []natslog.Place
	for i := range 20 {
		subject := fmt.Sprintf("log.a.%d", i)
		seq, _, err := natslog.Append(ctx, nc, natslog.Msg{Subject: subject, Data: []byte("x")})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, natslog.Place{subject, seq})
	}
	var m natslog.Marks
	wrong := append(append([]natslog.Place{}, all[:5]...), natslog.Place{all[5].Subject, all[5].Seq - 1})
	if err := m.Put(ctx, nc, wrong, nil); !errors.Is(err, natslog.ErrWrongLast) {
		t.Fatalf("one that is not the last of its subject: %v", err)
	}
	if err := m.Put(ctx, nc, all[:12], map[string]int{"log.said": 12}); err != nil {
		t.Fatal(err)
	}
	for i, p := range all {
		r, err := natslog.LastForSubject(ctx, js, stream, p.Subject)
		if err != nil || r == nil || r.IsMark() != (i < 12) {
			t.Errorf("message %d is %+v: %v", i, r, err)
		}
		if old, err := natslog.Get(ctx, js, stream, p.Seq); err != nil || (old == nil) != (i < 12) {
			t.Errorf("at its place lies %+v: %v", old, err)
		}
	}
	said, err := natslog.LastForSubject(ctx, js, stream, "log.said")
	if err != nil || said == nil || string(said.Data) != "12" || said.Header.Get(jetstream.MsgTTLHeader) == "" || said.Header.Get(jetstream.MsgRollup) != "" {
		t.Errorf("said is %+v: %v", said, err)
	}
	if err := m.Put(ctx, nc, all[:12], nil); !errors.Is(err, natslog.ErrWrongLast) {
		t.Errorf("what was marked is marked again: %v", err)
	}
}
