package demo

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// to connects without a login.
func to(url string) func(string) (*nats.Conn, error) {
	return func(string) (*nats.Conn, error) { return natsrpc.Dial(natsrpc.ConnConfig{URL: url}, "demo") }
}

func TestDemoToldToStopStillProves(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "runs the demo for seconds")
	s := startStack(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &stopWriter{stop: stop}
	if err := Run(ctx, Options{Connect: to(s.URL), Out: out, Duration: time.Hour, Scale: 0.3}); err != nil {
		t.Fatalf("%v\n%s", err, out.text.String())
	}
	if !strings.Contains(out.text.String(), "ok     every accepted task has finished") {
		t.Errorf("no summary:\n%s", out.text.String())
	}
}

// stopWriter calls stop when the first line of progress tells of a finished task.
type stopWriter struct {
	text bytes.Buffer
	stop context.CancelFunc
}

func (w *stopWriter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("submitted")) && !bytes.Contains(p, []byte(" 0 finished")) {
		w.stop()
	}
	return w.text.Write(p)
}

func TestBadOptionsAreRefused(t *testing.T) {
	connect := to("nats://127.0.0.1:1")
	for name, opts := range map[string]Options{
		"nothing":       {},
		"no writer":     {Connect: connect},
		"scale":         {Connect: connect, Out: &bytes.Buffer{}, Scale: scaleMax + 1},
		"duration":      {Connect: connect, Out: &bytes.Buffer{}, Duration: -1},
		"no subscriber": {Connect: connect, Out: &bytes.Buffer{}},
		"no connection": {Out: &bytes.Buffer{}},
	} {
		if err := Run(t.Context(), opts); err == nil || errors.Is(err, ErrUnproven) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
