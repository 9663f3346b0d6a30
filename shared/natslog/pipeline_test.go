package natslog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestAppendEach(t *testing.T) {
	t.Parallel()
	srv, js := logServer(t, nil)
	nc := js.Conn()
	out := natslog.AppendEach(t.Context(), nc, []natslog.Msg{
		{Subject: "log.a", Header: expect("log.a", "0"), Data: []byte("1"), MsgID: "id"},
		{Subject: "log.a", Header: expect("log.a", "0")}, // refused: it has one by now
		{Subject: "log.a", Data: []byte("1"), MsgID: "id"},
		{Subject: "elsewhere"},
		{Subject: "log.b", Data: make([]byte, 2<<20)},
		{Subject: "log.b"},
	})
	for i, want := range []struct {
		seq       uint64
		duplicate bool
		err       error
	}{
		{1, false, nil},
		{0, false, natslog.ErrWrongLast},
		{1, true, nil},
		{0, false, nats.ErrNoResponders},
		{0, false, nats.ErrMaxPayload},
		{2, false, nil},
	} {
		got := out[i]
		if got.Seq != want.seq || got.Duplicate != want.duplicate || !errors.Is(got.Err, want.err) {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
		if got.Err != nil && !errors.Is(got.Err, natslog.ErrNotStored) {
			t.Errorf("%d: %v says nothing about the outcome", i, got.Err)
		}
	}
	if out := natslog.AppendEach(t.Context(), nc, nil); len(out) != 0 {
		t.Errorf("nothing: %v", out)
	}
	for _, r := range natslog.AppendEach(t.Context(), nc, make([]natslog.Msg, natslog.PipelineMsgsMax+1)) {
		if !errors.Is(r.Err, natslog.ErrNotStored) {
			t.Fatalf("too many: %v", r.Err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if out := natslog.AppendEach(ctx, nc, []natslog.Msg{{Subject: "log.a"}}); out[0].Err != nil && !errors.Is(out[0].Err, natslog.ErrOutcomeUnknown) {
		t.Errorf("given up: %v", out[0].Err)
	}
	srv.Stop()
	testkit.Eventually(t, soon, func() error {
		if nc.IsConnected() {
			return errors.New("connected")
		}
		return nil
	})
	if out := natslog.AppendEach(t.Context(), nc, []natslog.Msg{{Subject: "log.a"}}); !errors.Is(out[0].Err, natslog.ErrNotStored) {
		t.Errorf("without a server: %v", out[0].Err)
	}
}
