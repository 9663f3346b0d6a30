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
	"github.com/yardmaster-io/yardmaster/contracts/yard/coded"
	"github.com/yardmaster-io/yardmaster/contracts/yard/internal/lost"
)

// timeoutDefault bounds calls whose context has no deadline.
const timeoutDefault = 10 * time.Second

// How a connection of Connect behaves: a broken one is noticed within seconds and tried again forever.
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
	givenUp   *lost.Inboxes
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
	content   coded.Codec
}

// ClientOption changes a client's defaults.
type ClientOption func(*clientConfig)

// WithTimeout bounds every request whose context has no deadline. Default 10 s. It does not bound Run and Wait: they wait until their context ends.
func WithTimeout(d time.Duration) ClientOption {
	return func(c *clientConfig) { c.timeout = d }
}

// WithCodec encodes payloads, results, progress and the texts of failures on their way to the engine, and decodes them on their way back. Package coded
// says how, and has an encryption and a compression. Default: none. All programs that read the same tasks need it.
func WithCodec(content coded.Codec) ClientOption {
	return func(c *clientConfig) { c.content = content }
}

// WithTracerProvider makes workers of this client record a span `run` per task. Default: OpenTelemetry's global provider, which records nothing until
// the program sets one.
func WithTracerProvider(p trace.TracerProvider) ClientOption {
	return func(c *clientConfig) { c.providers = p }
}

// WithNATSOptions adds options, such as credentials, to the connection that Connect makes. NewClient ignores it.
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
	c := &Client{transport: transport{nc: nc, timeout: cfg.timeout, content: cfg.content}, domain: domain, providers: cfg.providers, givenUp: lost.New(), together: &together{}}
	c.submits, c.wrapped = cfg.submits, c.wrapSubmits(cfg.submits)
	return c, nil
}

// Connect connects to NATS (one URL, or several separated by commas) and makes a client of a domain; Close ends the connection. A connection that
// breaks later is restored, without a limit of tries. The error is UNAVAILABLE if no server answers, INVALID_ARGUMENT if the URL or the domain is
// malformed.
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

// Conn is the connection of a client, for packages beside this one that subscribe.
func Conn(c *Client) *nats.Conn { return c.nc }

// Close closes the connection if Connect made it; otherwise it does nothing. Stop the workers first.
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

// WithCredentials logs in with a .creds file (JWT and key). It is read again at each
// reconnect. NewClient ignores it, like all options of the connection.
func WithCredentials(file string) ClientOption { return WithNATSOptions(nats.UserCredentials(file)) }

// WithNKey logs in with the nkey seed in a file. Connect fails if the file holds none. Another key is another user, and takes another connection.
func WithNKey(seedFile string) ClientOption {
	return WithNATSOptions(func(o *nats.Options) error {
		option, err := nats.NkeyOptionFromSeed(seedFile)
		if err != nil {
			return err
		}
		return option(o)
	})
}

// WithRootCAs makes Connect use TLS and trust the authorities in a PEM file rather than the system's. It is read again at each reconnect.
func WithRootCAs(file string) ClientOption { return WithNATSOptions(nats.RootCAs(file)) }

// WithClientCert presents a certificate to the server, from PEM files that are read again at each reconnect.
func WithClientCert(certFile, keyFile string) ClientOption {
	return WithNATSOptions(nats.ClientCert(certFile, keyFile))
}

// WithInboxPrefix sets the prefix of inboxes for answers, subject tokens without a last dot, instead of _INBOX. A sealed cluster gives each user its
// own, such as _INBOX.t.shop.worker-mailer, and answers requests of a domain nowhere else.
func WithInboxPrefix(prefix string) ClientOption {
	return WithNATSOptions(nats.CustomInboxPrefix(prefix))
}

// The errors of the engine by their code, for errors.Is. The *fault.Error (errors.As) has more: the field at
// fault, details, how long to wait before a retry.
var (
	// ErrInvalidArgument: the request is malformed; nothing was stored.
	ErrInvalidArgument error = &fault.Error{Code: fault.InvalidArgument, Message: "the request is malformed"}
	// ErrInvalidTime: a due time is too far in the past or in the future; nothing was stored.
	ErrInvalidTime error = &fault.Error{Code: fault.InvalidTime, Message: "the time is out of range"}
	// ErrNotFound: there is no such domain, type or task.
	ErrNotFound error = &fault.Error{Code: fault.NotFound, Message: "not found"}
	// ErrStale: the attempt is no longer current, or another revision is stored.
	ErrStale error = &fault.Error{Code: fault.Stale, Message: "no longer current"}
	// ErrFailedPrecondition: the current state does not allow this.
	ErrFailedPrecondition error = &fault.Error{Code: fault.FailedPrecondition, Message: "its state does not allow this"}
	// ErrResourceExhausted: a limit is full; nothing was stored. The client has tried again until its context ended.
	ErrResourceExhausted error = &fault.Error{Code: fault.ResourceExhausted, Message: "a limit is full"}
	// ErrUnavailable: it did not happen. The client has tried again until its context ended.
	ErrUnavailable error = &fault.Error{Code: fault.Unavailable, Message: "unavailable"}
	// ErrUnknown: it may or may not have happened.
	ErrUnknown error = &fault.Error{Code: fault.Unknown, Message: "it is not known whether it happened"}
	// ErrPermissionDenied: the login may not do this.
	ErrPermissionDenied error = &fault.Error{Code: fault.PermissionDenied, Message: "permission denied"}
	// ErrUnimplemented: the engine does not know this call.
	ErrUnimplemented error = &fault.Error{Code: fault.Unimplemented, Message: "the engine does not know this call"}
	// ErrInternal: a defect of the engine.
	ErrInternal error = &fault.Error{Code: fault.Internal, Message: "a defect of the engine"}
)

// final reports whether the outcome stays unknown: a repeat of the request, by its id, does not report it.
func final(e *fault.Error) bool { return e.Code == fault.Unknown && e.Detail[fault.DetailFinal] != "" }
