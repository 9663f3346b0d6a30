package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	for n, stored := range map[int]bool{natslog.PipelineMsgsMax: true, natslog.PipelineMsgsMax + 1: false} {
		for _, r := range natslog.AppendEach(t.Context(), nc, slices.Repeat([]natslog.Msg{{Subject: "log.c"}}, n)) {
			if stored != (r.Err == nil) || !stored && !errors.Is(r.Err, natslog.ErrNotStored) {
				t.Fatalf("of %d messages together: %v", n, r.Err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if out := natslog.AppendEach(ctx, nc, []natslog.Msg{{Subject: "log.a"}}); out[0].Err != nil && !errors.Is(out[0].Err, natslog.ErrOutcomeUnknown) {
		t.Errorf("given up: %v", out[0].Err)
	}
	stop(t, srv, nc)
	if out := natslog.AppendEach(t.Context(), nc, []natslog.Msg{{Subject: "log.a"}}); !errors.Is(out[0].Err, natslog.ErrNotStored) {
		t.Errorf("without a server: %v", out[0].Err)
	}
}

// What was sent when the connection breaks has an unknown outcome, and its caller learns of it at once.
func TestAppendEachEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	srv, js := logServer(t, nil)
	nc := js.Conn()
	sent := make(chan struct{})
	testkit.NoError(t, testkit.Err(nc.Subscribe("silent", func(*nats.Msg) { close(sent) })))
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	go func() {
		<-sent
		srv.Stop()
	}()
	out := natslog.AppendEach(ctx, nc, []natslog.Msg{{Subject: "silent"}})
	if !errors.Is(out[0].Err, natslog.ErrOutcomeUnknown) || ctx.Err() != nil {
		t.Errorf("%v; it was waited for: %v", out[0].Err, ctx.Err())
	}
}

// Each message has one outcome, its own, also where answers come twice, or name no message.
func TestAppendEachTakesOneAnswerForEachMessage(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, nil)
	nc := js.Conn()
	taken := make(chan struct{}, 4)
	strays := []string{"0", "2", "x", "-1"}
	round := 0
	if _, err := nc.Subscribe("odd.*", func(m *nats.Msg) {
		seq := 1
		if m.Subject == "odd.1" {
			<-taken // what comes without being read is bounded
			seq = 2
			testkit.Check(t, nc.Publish(strings.TrimSuffix(m.Reply, "1")+strays[round], []byte(`{"stream":"LOG","seq":9}`)))
		}
		testkit.Check(t, m.Respond(fmt.Appendf(nil, `{"stream":"LOG","seq":%d}`, seq)))
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for round = range strays {
		got := ""
		natslog.Pipeline(ctx, nc, []natslog.Msg{{Subject: "odd.0"}, {Subject: "odd.1"}}, func(i int, a natslog.Appended) {
			got += fmt.Sprint(i, ":", a.Seq, " ", a.Err, " ")
			taken <- struct{}{}
		})
		<-taken
		if want := "0:1 <nil> 1:2 <nil> "; got != want {
			t.Errorf("with an answer for %s: %s, want %s", strays[round], got, want)
		}
	}
}
