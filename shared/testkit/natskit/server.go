package natskit

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// readyWithin is how long a server may take to accept connections. It is
// generous because CI machines are shared; a healthy one needs milliseconds.
const readyWithin = 60 * time.Second

// VerifyTestMain is goleak's, for packages whose tests run servers. A server that is stopped while it opens a file leaves the goroutine that flushes
// the file (seen with nats-server 2.15.2).
func VerifyTestMain(m goleak.TestingM) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.(*msgBlock).flushLoop"))
}

// Server is one real nats-server with JetStream, inside the test process. Its data
// lives in the test's temporary folder and every write is synced, as in production.
type Server struct {
	// URL is where clients connect. It stays the same across Stop and Restart.
	URL string
	// Server is the running server, for tests that look inside it. Restart
	// replaces it.
	Server *server.Server

	opts server.Options
}

// Option changes the server's options before it starts.
type Option func(*server.Options)

// WithOptions lets a test change any option of the server, for example
// MaxPayload. The port, the folder and JetStream are set before it is called.
func WithOptions(change func(*server.Options)) Option {
	return change
}

// Run starts a server on a free loopback port and stops it when the test
// ends. It fails the test if the server does not come up.
func Run(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	n := &Server{opts: server.Options{
		ServerName: "testkit",
		Host:       "127.0.0.1",
		Port:       testkit.FreePort(tb),
		NoLog:      true,
		NoSigs:     true,
		JetStream:  true,
		// The folder is made before the cleanup below is registered, so it is
		// removed after the server has stopped writing to it.
		StoreDir:   tb.TempDir(),
		SyncAlways: true,
	}}
	for _, opt := range opts {
		opt(&n.opts)
	}
	n.start(tb)
	tb.Cleanup(n.Stop)
	return n
}

// Connect returns a connection that reconnects forever and quickly, so a test
// may take the server away and give it back, with further options if given. It is closed
// when tb ends.
func (n *Server) Connect(tb testing.TB, opts ...nats.Option) *nats.Conn {
	tb.Helper()
	nc, err := nats.Connect(n.URL, append([]nats.Option{
		nats.Name(tb.Name()),
		nats.Timeout(readyWithin),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(20 * time.Millisecond),
		nats.ReconnectJitter(time.Millisecond, time.Millisecond),
	}, opts...)...)
	if err != nil {
		tb.Fatalf("connect to the test's NATS: %v", err)
	}
	tb.Cleanup(nc.Close)
	return nc
}

// Stop takes the server away and waits until it is gone; its data stays. It may
// be called when the server is stopped already.
func (n *Server) Stop() {
	n.Server.Shutdown()
	n.Server.WaitForShutdown()
}

// Restart stops the server if it runs and starts it on the same port and data.
func (n *Server) Restart(tb testing.TB) {
	tb.Helper()
	n.Stop()
	n.start(tb)
}

func (n *Server) start(tb testing.TB) {
	tb.Helper()
	opts := n.opts // the server keeps and changes what it is given
	srv, err := server.NewServer(&opts)
	if err != nil {
		tb.Fatalf("make a NATS server: %v", err)
	}
	srv.Start()
	if !srv.ReadyForConnections(readyWithin) {
		srv.Shutdown()
		tb.Fatalf("the NATS server was not ready after %v", readyWithin)
	}
	n.Server = srv
	n.URL = srv.ClientURL()
}
