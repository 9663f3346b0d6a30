package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/access"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/assets"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/pages"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/sampler"
)

// Limits of the server. A stream sets its own deadlines for writing.
const (
	readTimeout  = 10 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 2 * time.Minute
	drainTimeout = 2 * time.Second
	headerBytes  = 16 << 10
	bodyBytes    = 64 << 10
)

// Console is a console that listens.
type Console struct {
	cfg      Config
	way      login.Way
	files    *assets.Files
	listener net.Listener
}

// Listen checks the configuration and opens the port. Run serves it, and closes it.
func Listen(cfg Config) (*Console, error) {
	cfg.Listen = cmp.Or(cfg.Listen, ListenDefault)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.NATS.Connect == nil {
		return nil, errors.New("the console needs a login to NATS")
	}
	way, err := cfg.way()
	if err != nil {
		return nil, err
	}
	files, err := assets.New()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	return &Console{cfg: cfg, way: way, files: files, listener: listener}, nil
}

// URL is where a browser on this machine finds it.
func (c *Console) URL() string { return "http://" + c.listener.Addr().String() }

// Run serves until ctx ends, and then ends all streams.
func (c *Console) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	engine := access.New(c.cfg.NATS)
	defer engine.Close()
	handler, err := c.handler(ctx, engine)
	if err != nil {
		return errors.Join(err, c.listener.Close())
	}
	server := &http.Server{
		Handler: handler, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(c.cfg.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(c.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("console: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		return server.Close()
	}
	return nil
}

// handler is all pages, and what protects them.
func (c *Console) handler(ctx context.Context, engine *access.Access) (http.Handler, error) {
	all, err := pages.Of(pages.Deps{Access: engine, Sampler: sampler.New(ctx), Assets: c.files, Log: c.cfg.Log})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+assets.Prefix, c.files)
	mux.Handle("/", all.Handler(c.way))
	if routed, ok := c.way.(login.Routed); ok {
		for pattern, page := range routed.Routes() {
			mux.Handle(pattern, page)
		}
	}
	_, open := c.way.(login.Open)
	return protect(mux, open), nil
}
