package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// anonymous is the login where there are no users.
func anonymous(string) natsrpc.ConnConfig { return natsrpc.ConnConfig{} }

// play runs a short demo on the in-memory engine and returns what it reports.
func play(t *testing.T, honest bool) (report, error) {
	t.Helper()
	server := natskit.Run(t)
	openEngine(t, server.Connect(t), honest)
	var out bytes.Buffer
	err := Run(t.Context(), Options{
		Connect: ConnectURL(server.URL, anonymous), Out: &out, JSON: true, Duration: 1500 * time.Millisecond, Scale: 0.3, Seed: 3,
		lookUpStall: 2 * time.Second,
	})
	var r report
	if jsonErr := json.Unmarshal(out.Bytes(), &r); jsonErr != nil {
		t.Fatalf("%v (%v)\n%s", jsonErr, err, out.Bytes())
	}
	return r, err
}

func TestDemoProvesAnHonestEngine(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "runs the demo for seconds")
	r, err := play(t, true)
	if err != nil || !r.OK {
		t.Fatalf("%v\n%+v", err, r)
	}
	all := r.total()
	if all.Accepted < 30 || all.finished() != all.Accepted || r.Bank.Paid == 0 || len(r.Waits) != 5 {
		t.Errorf("too little happened: %+v, %d paid, waits %+v", all, r.Bank.Paid, r.Waits)
	}
}

func TestDemoSeesThroughADishonestEngine(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "runs the demo for seconds")
	r, err := play(t, false)
	if !errors.Is(err, ErrUnproven) || r.OK {
		t.Fatalf("the demo believes it: %v\n%+v", err, r)
	}
	failed := 0
	for _, claim := range r.Checks {
		if !claim.OK {
			failed++
		}
	}
	// Tenants had work, and the bank is honest; all else is not.
	if failed != len(r.Checks)-2 {
		t.Errorf("%d claims failed: %+v", failed, r.Checks)
	}
}

func TestDemoToldToStopStillProves(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "runs the demo for seconds")
	server := natskit.Run(t)
	openEngine(t, server.Connect(t), true)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &stopWriter{stop: stop}
	if err := Run(ctx, Options{Connect: ConnectURL(server.URL, anonymous), Out: out, Duration: time.Hour, Scale: 0.3}); err != nil {
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
	connect := ConnectURL("nats://127.0.0.1:1", anonymous)
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
