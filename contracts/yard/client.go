package yard

import (
	"errors"
	neturl "net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// timeoutDefault bounds calls whose context has no deadline.
const timeoutDefault = 10 * time.Second

// How a connection of Connect behaves: a broken one is noticed within seconds
// and tried again forever.
const (
	dialTimeout     = 2 * time.Second
	reconnectWait   = 100 * time.Millisecond
	reconnectJitter = 200 * time.Millisecond
	pingInterval    = time.Second
)

// Client submits and queries tasks of one domain. It is safe for concurrent use.
type Client struct {
	transport
	domain    string
	ownsConn  bool
	providers trace.TracerProvider
	givenUp   *givenUp
	together  *together
	// clock is what the server's clock is ahead of ours, ns, if it has reported it.
	clock atomic.Int64
	// wrapped is submits through the middleware; nil if there is none.
	wrapped SubmitFunc
	submits []SubmitMiddleware
}

type clientConfig struct {
	timeout   time.Duration
	providers trace.TracerProvider
	nats      []nats.Option
	submits   []SubmitMiddleware
}

// ClientOption changes a client's defaults.
type ClientOption func(*clientConfig)

// WithTimeout bounds every request whose context has no deadline. Default 10 s.
// It does not bound Run and Wait: they wait until their context ends.
func WithTimeout(d time.Duration) ClientOption {
	return func(c *clientConfig) { c.timeout = d }
}

// WithTracerProvider makes workers of this client record a span `run` per task.
// Default: OpenTelemetry's global provider, which records nothing until the
// program sets one.
func WithTracerProvider(p trace.TracerProvider) ClientOption {
	return func(c *clientConfig) { c.providers = p }
}

// WithNATSOptions adds options, such as credentials, to the connection that
// Connect makes. NewClient ignores it.
func WithNATSOptions(opts ...nats.Option) ClientOption {
	return func(c *clientConfig) { c.nats = append(c.nats, opts...) }
}

func newClientConfig(opts []ClientOption) clientConfig {
	cfg := clientConfig{timeout: timeoutDefault, providers: otel.GetTracerProvider()}
	for _, opt := range opts {
		opt(&cfg)
	}
	return cfg
}

// NewClient makes a client of a domain on a connection that the caller keeps
// and closes. The domain need not exist yet. The error is INVALID_ARGUMENT.
func NewClient(nc *nats.Conn, domain string, opts ...ClientOption) (*Client, error) {
	if nc == nil {
		return nil, fault.New(fault.InvalidArgument, "a client needs a NATS connection")
	}
	if err := checkDomain(domain); err != nil {
		return nil, err
	}
	cfg := newClientConfig(opts)
	if slices.ContainsFunc(cfg.submits, func(m SubmitMiddleware) bool { return m == nil }) {
		return nil, fault.New(fault.InvalidArgument, "a middleware of submits is nil")
	}
	c := &Client{transport: transport{nc: nc, timeout: cfg.timeout}, domain: domain, providers: cfg.providers, givenUp: &givenUp{inboxes: map[string][]string{}}, together: &together{}}
	c.submits, c.wrapped = cfg.submits, c.wrapSubmits(cfg.submits)
	return c, nil
}

// Connect connects to NATS (one URL, or several separated by commas) and makes a
// client of a domain; Close ends the connection. A connection that breaks later
// is restored, without a limit of tries. The error is UNAVAILABLE if no server answers, INVALID_ARGUMENT
// if the URL or the domain is malformed.
func Connect(url, domain string, opts ...ClientOption) (*Client, error) {
	if err := checkDomain(domain); err != nil {
		return nil, err
	}
	cfg := newClientConfig(opts)
	// No reconnect buffer: it would send, much later, what its caller believes to have failed.
	options := append([]nats.Option{
		nats.Name("yard-sdk"),
		nats.Timeout(dialTimeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(pingInterval),
		nats.IgnoreAuthErrorAbort(),
	}, cfg.nats...)
	nc, err := nats.Connect(url, options...)
	switch {
	case errors.As(err, new(*neturl.Error)): // its text would quote the password
		return nil, fault.New(fault.InvalidArgument, "the URL of NATS is malformed: write what is special in a user or password as %%XX, such as %%25 for %%")
	case err != nil:
		return nil, fault.New(fault.Unavailable, "connect to NATS: %v", err)
	}
	c, err := NewClient(nc, domain, opts...)
	if err != nil {
		nc.Close()
		return nil, err
	}
	c.ownsConn = true
	return c, nil
}

// Domain is the domain of the client.
func (c *Client) Domain() string { return c.domain }

// Close closes the connection if Connect made it; otherwise it does nothing. Stop
// the workers first.
func (c *Client) Close() {
	if c.ownsConn {
		c.nc.Close()
	}
}

// Admin returns an admin client on the same connection.
func (c *Client) Admin() *Admin { return &Admin{transport: c.transport} }

func (c *Client) subject(endpoint string) string { return topology.API(c.domain, endpoint) }

func checkDomain(domain string) error {
	if err := ids.CheckName(domain); err != nil {
		return fault.At(fault.InvalidArgument, "/domain", "%v", err)
	}
	if domain == topology.ReservedDomain {
		return fault.At(fault.InvalidArgument, "/domain", "%q is reserved", domain)
	}
	return nil
}
