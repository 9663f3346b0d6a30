// Package natsserver runs a nats-server with JetStream inside this process.
//
// Owns: the server's options, its data directory, which one process uses at a
// time, and the way of its log into ours. Never does: create streams; that is
// provisioning.
//
// On failure: a directory in use, a port taken, or a store that cannot be read is
// an error of Start that says so. A full disk later makes JetStream refuse
// appends, which submitters hear.
package natsserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/filelock"
)

// Sync says when what is stored goes to disk.
type Sync string

// SyncAlways syncs before every answer: what is accepted survives a power cut.
const SyncAlways Sync = "always"

// readyWithin bounds a start. Reading a store back takes seconds per million
// messages.
const readyWithin = 2 * time.Minute

// MaxPayloadDefault is NATS's own limit of one message, bytes.
const MaxPayloadDefault = 1 << 20

// Config of a server. The zero value of a field is its default.
type Config struct {
	// DataDir holds the streams. Required. It is made if it is not there.
	DataDir string
	// Host is the address to listen on. Default 127.0.0.1: reachable from this
	// machine only, since there is no authentication.
	Host string
	// Port for clients. Default 0 = a free one.
	Port int
	// NoSocket: no one can connect but who has the Server, see InProcessConn.
	NoSocket bool
	// Sync is SyncAlways (the default) or a duration such as 2m: how long accepted
	// tasks may exist in memory only. A killed process loses nothing either way; a
	// power cut loses that much.
	Sync Sync
	// Auth is a configuration file with accounts, users and TLS, as package auth renders it.
	// Default: none, and everybody may do everything.
	Auth string
	// MaxPayload is the size limit of one message, bytes. Default 1 MiB.
	MaxPayload int
	// Log hears the server's warnings and errors. Default: none.
	Log *slog.Logger
}

// Server is a running server.
type Server struct {
	// Server is the embedded server itself, for in-process connections.
	*server.Server
	lock *os.File
	cfg  Config
	// own is the user that is this process itself; nil where there are no users.
	own *ownUser
}

// Interval returns how often to sync; 0 means always.
func (s Sync) Interval() (time.Duration, error) {
	if s == "" || s == SyncAlways {
		return 0, nil
	}
	d, err := time.ParseDuration(string(s))
	if err != nil || d <= 0 {
		return 0, fmt.Errorf(`sync %q: want "always" or a duration such as 2m`, s)
	}
	return d, nil
}

// Start starts a server and returns when clients can connect.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	opts, err := cfg.options()
	if err != nil {
		return nil, err
	}
	lock, err := claim(ctx, cfg.DataDir)
	if err != nil {
		return nil, err
	}
	s := &Server{lock: lock, cfg: cfg}
	if cfg.Auth != "" {
		if s.own, err = newOwnUser(); err == nil {
			err = s.own.join(opts)
		}
		if err != nil {
			return nil, errors.Join(err, lock.Close())
		}
	}
	if s.Server, err = server.NewServer(opts); err != nil {
		return nil, errors.Join(fmt.Errorf("nats-server: %w", err), lock.Close())
	}
	logger := &bridge{log: cfg.Log, fatal: make(chan string, 1)}
	if logger.log == nil {
		logger.log = slog.New(slog.DiscardHandler)
	}
	s.SetLogger(logger, false, false)
	s.Server.Start()
	if err := s.await(ctx, logger); err != nil {
		s.Stop()
		return nil, err
	}
	if cfg.NoSocket {
		s.quiet()
	}
	return s, nil
}

// quiet has the server look after itself less often: it forgets every second what it has logged a moment ago, and reads its own use of memory every ten
// seconds. Neither is of use here, and a week of fake time has 600,000 seconds. The server has no options for that.
func (s *Server) quiet() {
	all := reflect.ValueOf(s.Server).Elem()
	if forgets := hidden[chan time.Duration](all, "rateLimitLoggingCh"); forgets != nil {
		*forgets <- seldom
	}
	system := all.FieldByName("sys")
	mu := hidden[sync.RWMutex](all, "mu")
	if mu == nil || system.Kind() != reflect.Pointer || system.IsNil() {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	if every := hidden[time.Duration](system.Elem(), "statsz"); every != nil {
		*every = seldom
	}
}

// seldom is how often a server that is quiet looks after itself.
const seldom = 365 * 24 * time.Hour

// hidden is a field that its package does not export; nil = another version of the package has none of this type.
func hidden[T any](of reflect.Value, name string) *T {
	field := of.FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[T]() {
		return nil
	}
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Interface().(*T)
}

// await returns when the server takes connections and JetStream is up.
func (s *Server) await(ctx context.Context, logger *bridge) error {
	deadline := time.Now().Add(readyWithin)
	for {
		if s.ReadyForConnections(10 * time.Millisecond) {
			if !s.JetStreamEnabled() {
				return errors.New("nats-server: JetStream did not start")
			}
			return nil
		}
		select {
		case why := <-logger.fatal:
			return fmt.Errorf("nats-server: %s", why)
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("nats-server was not ready within %v", readyWithin)
		}
	}
}

// Reload reads Config.Auth again: users that are new can connect from then on, those that
// are gone lose their connections, and the others keep theirs.
func (s *Server) Reload() error {
	opts, err := s.cfg.options()
	if err != nil {
		return err
	}
	if s.own != nil {
		if err := s.own.join(opts); err != nil {
			return err
		}
	}
	if addr, ok := s.Addr().(*net.TCPAddr); ok {
		opts.Port = addr.Port
	}
	if err := s.ReloadOptions(opts); err != nil {
		return fmt.Errorf("nats-server: %w", err)
	}
	return nil
}

// Stop ends the server and waits until everything is on disk.
func (s *Server) Stop() {
	s.Shutdown()
	s.WaitForShutdown()
	_ = s.lock.Close() // closing releases the lock, whatever it returns
}

func (c Config) options() (*server.Options, error) {
	if c.DataDir == "" {
		return nil, errors.New("nats-server: a data directory is required")
	}
	interval, err := c.Sync.Interval()
	if err != nil {
		return nil, err
	}
	opts := &server.Options{}
	if c.Auth != "" {
		if opts, err = server.ProcessConfigFile(c.Auth); err != nil {
			return nil, fmt.Errorf("nats-server: %w", err)
		}
	}
	opts.ServerName, opts.Host, opts.Port, opts.DontListen = "yard", c.Host, c.Port, c.NoSocket
	opts.JetStream, opts.StoreDir = true, c.DataDir
	opts.SyncAlways, opts.SyncInterval = interval == 0, interval
	opts.MaxPayload, opts.NoSigs = int32(c.MaxPayload), true
	if c.NoSocket {
		opts.PingInterval = 24 * time.Hour // a client in this process need not be asked whether it lives
	}
	opts.Host = cmp.Or(opts.Host, "127.0.0.1")
	opts.Port = cmp.Or(opts.Port, server.RANDOM_PORT)
	opts.MaxPayload = cmp.Or(opts.MaxPayload, MaxPayloadDefault)
	return opts, nil
}

// claim makes the directory and takes it for this process: two servers on one
// store destroy it.
func claim(ctx context.Context, dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	f, err := filelock.Take(ctx, filepath.Join(dir, "lock"), filelock.ChildStarts)
	if errors.Is(err, filelock.ErrLocked) {
		return nil, fmt.Errorf("data directory %s is in use by another process: %w", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return f, nil
}
