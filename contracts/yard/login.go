package yard

import "github.com/nats-io/nats.go"

// WithCredentials logs in with a .creds file (JWT and key). It is read again at each
// reconnect. NewClient ignores it, like all options of the connection.
func WithCredentials(file string) ClientOption { return WithNATSOptions(nats.UserCredentials(file)) }

// WithNKey logs in with the nkey seed in a file. Connect fails if the file holds none. Another
// key is another user, and takes another connection.
func WithNKey(seedFile string) ClientOption {
	return WithNATSOptions(func(o *nats.Options) error {
		option, err := nats.NkeyOptionFromSeed(seedFile)
		if err != nil {
			return err
		}
		return option(o)
	})
}

// WithRootCAs makes Connect use TLS and trust the authorities in a PEM file rather than the
// system's. It is read again at each reconnect.
func WithRootCAs(file string) ClientOption { return WithNATSOptions(nats.RootCAs(file)) }

// WithClientCert presents a certificate to the server, from PEM files that are read again
// at each reconnect.
func WithClientCert(certFile, keyFile string) ClientOption {
	return WithNATSOptions(nats.ClientCert(certFile, keyFile))
}

// WithInboxPrefix sets the prefix of inboxes for answers, subject tokens without a last dot, instead of
// _INBOX. A sealed cluster gives each user its own, such as _INBOX.t.shop.worker-mailer, and
// answers requests of a domain nowhere else.
func WithInboxPrefix(prefix string) ClientOption {
	return WithNATSOptions(nats.CustomInboxPrefix(prefix))
}
