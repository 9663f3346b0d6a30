package telemetry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestHealth(t *testing.T) {
	m := newMetrics(t)
	m.Counter(things, "1").Add(1)
	h := telemetry.NewHealth("127.0.0.1:0", m)
	var up atomic.Bool
	h.AddCheck("config", func() error { return nil })
	h.AddCheck("nats", func() error {
		if !up.Load() {
			return errors.New("not connected")
		}
		return nil
	})
	stop := run(t, h)

	expectAnswer(t, h, "/livez", http.StatusOK, "ok\n")
	if body := answer(t, h, "/metrics", http.StatusOK); !strings.Contains(body, "\nyardmaster_test_things_total{partition=\"1\"} 1\n") {
		t.Error(body)
	}
	expectAnswer(t, h, "/readyz", http.StatusServiceUnavailable, `{
  "ready": false,
  "checks": [
    {
      "name": "config",
      "ok": true
    },
    {
      "name": "nats",
      "ok": false,
      "error": "not connected"
    }
  ]
}
`)
	up.Store(true)
	expectAnswer(t, h, "/readyz", http.StatusOK, `{
  "ready": true,
  "checks": [
    {
      "name": "config",
      "ok": true
    },
    {
      "name": "nats",
      "ok": true
    }
  ]
}
`)
	testkit.NoError(t, stop())
}

// TestWarningsLeaveReady: what would be no better elsewhere is reported, and takes nothing out of service.
func TestWarningsLeaveReady(t *testing.T) {
	h := telemetry.NewHealth("", nil)
	h.AddCheck("nats", func() error { return nil })
	h.AddWarning("storage", func() error { return errors.New("full") })
	got := h.Readiness()
	if !got.Ready || len(got.Checks) != 2 || got.Checks[1] != (telemetry.CheckResult{Name: "storage", Error: "full", Warning: true}) {
		t.Errorf("%+v", got)
	}
	h.AddCheck("redis", func() error { return errors.New("away") })
	if h.Readiness().Ready {
		t.Error("ready though a check fails")
	}
}

func TestHealthWithoutAddress(t *testing.T) {
	h := telemetry.NewHealth("", nil)
	stop := run(t, h)
	testkit.MustEqual(t, "listens on", h.Addr(), "")
	testkit.NoError(t, stop())
}

func TestHealthRefusesABadAddress(t *testing.T) {
	if err := telemetry.NewHealth("nowhere", nil).Run(t.Context()); err == nil {
		t.Fatal("no error")
	}
}

// run runs h until the returned function is called, which gives its error.
func run(t *testing.T, h *telemetry.Health) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	select {
	case <-h.Ready():
	case err := <-done:
		cancel()
		t.Fatalf("ended before it was ready: %v", err)
	}
	return func() error {
		cancel()
		return <-done
	}
}

func expectAnswer(t *testing.T, h *telemetry.Health, path string, status int, body string) {
	t.Helper()
	if got := answer(t, h, path, status); got != body {
		t.Fatalf("%s:\n%s\nwant\n%s", path, got, body)
	}
}

func answer(t *testing.T, h *telemetry.Health, path string, status int) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + h.Addr() + path)
	testkit.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	testkit.NoError(t, err)
	if resp.StatusCode != status {
		t.Fatalf("%s: %d, want %d\n%s", path, resp.StatusCode, status, got)
	}
	return string(got)
}
