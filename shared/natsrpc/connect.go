package natsrpc

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// How a connection behaves. A broken one must be noticed within seconds, since
// callers wait meanwhile, and is tried again forever. One to a server that hangs is given up
// after pingsOutstanding+1 intervals.
const (
	dialTimeout      = 2 * time.Second
	dialRetryEvery   = 500 * time.Millisecond
	dialNoticeEvery  = 10 * time.Second
	reconnectWait    = 100 * time.Millisecond
	reconnectJitter  = 200 * time.Millisecond
	pingInterval     = time.Second
	pingsOutstanding = 2
)

// ConnConfig says how to reach NATS.
type ConnConfig struct {
	// URL is one server or several, separated by commas. Default
	// nats://127.0.0.1:4222. A wrong one keeps the service waiting at its start.
	URL string `koanf:"url" secret:"url" usage:"NATS server, or several separated by commas"`
	// Credentials is the path of a .creds file (JWT and key). Default none. It is read again at
	// each reconnect.
	Credentials string `koanf:"credentials" usage:"path of a .creds file with JWT and key"`
	// NKeySeed is the path of a file with an nkey seed. Default none. It is read again at each
	// reconnect of Connect.
	NKeySeed string `koanf:"nkey_seed" usage:"path of a file with an nkey seed"`
	// InboxPrefix is below which the answers to this connection come, tokens without a last
	// dot. Default _INBOX. A sealed cluster gives each user its own.
	InboxPrefix string `koanf:"inbox_prefix" usage:"subject prefix of this connection's inboxes"`
	// TLS is used where any of its files is named, or where the URL says tls://.
	TLS TLSConfig `koanf:"tls"`
}

// TLSConfig names PEM files. They are read again at each reconnect.
type TLSConfig struct {
	// CA holds the authorities that sign the servers' certificates. Default: the system's.
	CA string `koanf:"ca" usage:"PEM file of the authorities that sign the servers' certificates"`
	// Cert and Key are this client's; both or neither.
	Cert string `koanf:"cert" usage:"PEM file of this client's certificate"`
	Key  string `koanf:"key" usage:"PEM file of its key"`
}

// DefaultConnConfig is a server on this machine without authentication.
func DefaultConnConfig() ConnConfig { return ConnConfig{URL: nats.DefaultURL} }

// Connect connects under the given name, which operators see in the server's
// monitoring. It waits for a server until ctx ends, saying so in the log, and
// fails at once only where the configuration itself is wrong. The caller closes
// the connection.
func Connect(ctx context.Context, cfg ConnConfig, name string, log *slog.Logger) (*nats.Conn, error) {
	cfg.URL = cmp.Or(cfg.URL, nats.DefaultURL)
	auth, err := cfg.Options()
	if err != nil {
		return nil, err
	}
	opts := append(options(name, log), auth...)
	key := &rotatingKey{file: cfg.NKeySeed}
	if key.file != "" {
		opts = append(opts, key.option)
	}
	began := time.Now()
	noticed := time.Time{}
	for {
		nc, err := nats.Connect(cfg.URL, opts...)
		if err == nil {
			key.conn.Store(nc)
			log.Info("connected to NATS", "server", nc.ConnectedUrlRedacted(), "duration", time.Since(began).Round(time.Millisecond))
			return nc, nil
		}
		err = WithoutURL(err)
		if now := time.Now(); ctx.Err() == nil && now.Sub(noticed) >= dialNoticeEvery {
			noticed = now
			log.Warn("waiting for NATS", "url", redact(cfg.URL), "duration", now.Sub(began).Round(time.Second), "error", err)
		}
		if !backoff.Sleep(ctx, dialRetryEvery) {
			return nil, fmt.Errorf("connect to NATS at %s: %w", redact(cfg.URL), errors.Join(ctx.Err(), err))
		}
	}
}

// Dial connects once, for a command: it fails where no server is there. A connection that breaks is made again
// forever. The caller closes it.
func Dial(cfg ConnConfig, name string) (*nats.Conn, error) {
	opts, err := cfg.Options()
	if err != nil {
		return nil, err
	}
	opts = append(opts, nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1))
	nc, err := nats.Connect(cfg.URL, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", WithoutURL(err))
	}
	return nc, nil
}

// ConnectInProcess connects to a server in the same process, without a socket. Of cfg
// only the credentials and the inbox prefix are used; more options win over them.
func ConnectInProcess(srv nats.InProcessConnProvider, cfg ConnConfig, name string, log *slog.Logger, more ...nats.Option) (*nats.Conn, error) {
	cfg.URL, cfg.TLS = "", TLSConfig{}
	auth, err := cfg.Options()
	if err != nil {
		return nil, err
	}
	// A server in this process need not be asked whether it lives.
	all := append(append(options(name, log), auth...), nats.InProcessServer(srv), nats.PingInterval(24*time.Hour))
	nc, err := nats.Connect("", append(all, more...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to the NATS server in this process: %w", err)
	}
	return nc, nil
}

// Options are those of the connection that c tells of: who it is, TLS and its inboxes. The
// error names the setting at fault.
func (c ConnConfig) Options() ([]nats.Option, error) {
	var opts []nats.Option
	if c.InboxPrefix != "" {
		if err := topology.CheckInboxPrefix(c.InboxPrefix + "."); err != nil {
			return nil, fmt.Errorf("inbox_prefix: %w", err)
		}
		opts = append(opts, nats.CustomInboxPrefix(c.InboxPrefix))
	}
	if c.Credentials != "" {
		opt := nats.UserCredentials(c.Credentials)
		if err := opt(new(nats.Options)); err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		opts = append(opts, opt)
	}
	if c.NKeySeed != "" {
		opt, err := nats.NkeyOptionFromSeed(c.NKeySeed)
		if err != nil {
			return nil, fmt.Errorf("nkey_seed: %w", err)
		}
		opts = append(opts, opt)
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		return nil, errors.New("tls: cert and key must both be given, or neither")
	}
	if c.TLS.Cert != "" {
		if _, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		opts = append(opts, nats.ClientCert(c.TLS.Cert, c.TLS.Key))
	}
	if c.TLS.CA != "" {
		opt := nats.RootCAs(c.TLS.CA)
		if err := opt(new(nats.Options)); err != nil {
			return nil, fmt.Errorf("tls: ca: %w", err)
		}
		opts = append(opts, opt)
	}
	return opts, nil
}

// options are those of every connection. There is no reconnect buffer: it would
// send, much later, what its caller believes to have failed.
func options(name string, log *slog.Logger) []nats.Option {
	return []nats.Option{
		nats.Name(name),
		nats.Timeout(dialTimeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(pace.Of(pingInterval)),
		nats.MaxPingsOutstanding(pingsOutstanding),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if !nc.IsClosed() {
				log.Warn("disconnected from NATS, reconnecting", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("reconnected to NATS", "server", nc.ConnectedUrlRedacted())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			if errors.Is(err, nats.ErrSlowConsumer) {
				log.Warn("slow consumer: NATS messages were dropped", "subject", subject)
				return
			}
			log.Warn("NATS reported an error", "subject", subject, "error", err)
		}),
	}
}

// redact hides the passwords and tokens of a comma list of URLs, for logs.
func redact(list string) string {
	urls := strings.Split(list, ",")
	for i, s := range urls {
		s = strings.TrimSpace(s)
		if !strings.Contains(s, "://") {
			s = "nats://" + s
		}
		u, err := url.Parse(s)
		switch {
		case err != nil || u.User == nil && strings.Contains(s, "@"): // a password with a slash
			s = "(not a URL)"
		case u.User != nil:
			u.User = url.User("xxxxx")
			s = u.String()
		}
		urls[i] = s
	}
	return strings.Join(urls, ",")
}

// WithoutURL is an error of nats.Connect without what a malformed URL has in it: the parser's error quotes the
// URL, and a part of the password again as the port that it took it for.
func WithoutURL(err error) error {
	if errors.As(err, new(*url.Error)) {
		return errors.New("the URL is malformed: write what is special in a user or password as %XX, such as %25 for %")
	}
	return err
}
