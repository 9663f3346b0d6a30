package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of the health server: its readers are probes and scrapers, which are
// small and quick.
const (
	healthReadTimeout  = 5 * time.Second
	healthWriteTimeout = 10 * time.Second
	healthDrainTimeout = time.Second
	healthHeaderBytes  = 16 << 10
)

// Health serves, over HTTP:
//
//   - /livez: 200 while the process runs. It never depends on anything outside, or
//     an outage of NATS would make the platform restart every service.
//   - /readyz: 200 if every check passes, else 503; both with the list of checks
//     and why each one that fails does so. A problem that would be no better at
//     another process is a warning: it is in the list, and the answer stays 200.
//   - /metrics: the numbers as Prometheus text.
//
// It is a part for lifecycle.Group: add it first, so that it answers while the
// others start and stop.
type Health struct {
	address string
	metrics *Metrics
	ready   chan struct{}

	mu     sync.Mutex
	checks []check
	addr   string
}

type check struct {
	name    string
	run     func() error
	warning bool
}

// CheckResult is one line of the /readyz answer.
type CheckResult struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	// Warning: it is not OK, and the process is ready all the same.
	Warning bool `json:"warning,omitempty"`
}

// Readiness is the /readyz answer.
type Readiness struct {
	Ready  bool          `json:"ready"`
	Checks []CheckResult `json:"checks"`
}

// NewHealth returns a health server for an address such as ":8080". An empty
// address means not to listen; Run then only waits for its end. Metrics may be
// nil.
func NewHealth(address string, metrics *Metrics) *Health {
	return &Health{address: address, metrics: metrics, ready: make(chan struct{})}
}

// AddCheck adds a condition of being ready. The function must be quick, since a
// probe waits for it, and safe for concurrent use: it looks at a value the process
// already has, it does not go and ask a server.
//
// It decides whether requests, or a roll-out, go on at this process: so it fails where
// another process may do better, as with a connection that is broken here. A problem that is the
// same everywhere is for AddWarning, or all processes would be taken out together.
func (h *Health) AddCheck(name string, run func() error) { h.add(check{name: name, run: run}) }

// AddWarning adds what people are to know of and readiness does not depend on. The
// function is as for AddCheck.
func (h *Health) AddWarning(name string, run func() error) {
	h.add(check{name: name, run: run, warning: true})
}

func (h *Health) add(c check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(h.checks, c)
}

// Readiness runs all checks, in the order they were added.
func (h *Health) Readiness() Readiness {
	h.mu.Lock()
	checks := h.checks[:len(h.checks):len(h.checks)]
	h.mu.Unlock()
	answer := Readiness{Ready: true, Checks: make([]CheckResult, 0, len(checks))}
	for _, c := range checks {
		result := CheckResult{Name: c.name, OK: true}
		if err := c.run(); err != nil {
			result.OK, result.Error, result.Warning = false, err.Error(), c.warning
			answer.Ready = answer.Ready && c.warning
		}
		answer.Checks = append(answer.Checks, result)
	}
	return answer
}

// Ready is closed once the server listens, or at once if it has no address.
func (h *Health) Ready() <-chan struct{} { return h.ready }

// Addr returns the address it listens on, which matters if the port was 0. It is
// empty before Ready, and without an address.
func (h *Health) Addr() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.addr
}

// Run serves until ctx is cancelled. It runs once.
func (h *Health) Run(ctx context.Context) error {
	if h.address == "" {
		close(h.ready)
		<-ctx.Done()
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", h.address)
	if err != nil {
		return fmt.Errorf("health server: %w", err)
	}
	h.mu.Lock()
	h.addr = listener.Addr().String()
	h.mu.Unlock()
	close(h.ready)

	srv := &http.Server{
		Handler:        h.handler(),
		ReadTimeout:    healthReadTimeout,
		WriteTimeout:   healthWriteTimeout,
		MaxHeaderBytes: healthHeaderBytes,
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("health server: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthDrainTimeout)
	defer cancel()
	var cut error
	if srv.Shutdown(drain) != nil {
		// A probe that still reads is cut off: no one's work depends on it.
		cut = srv.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("health server: %w", err)
	}
	return cut
}

func (h *Health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		h.answerReadiness(w)
	})
	mux.Handle("GET /metrics", h.metrics.Handler())
	return mux
}

func (h *Health) answerReadiness(w http.ResponseWriter) {
	answer := h.Readiness()
	body, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	status := http.StatusOK
	if !answer.Ready {
		status = http.StatusServiceUnavailable
	}
	write(w, status, "application/json", append(body, '\n'))
}

// write sends a body. An error means that the reader has gone, which is its own
// affair.
func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
