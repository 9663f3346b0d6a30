package cli

import (
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// The environment's defaults of how to log in, as the nats command spells them.
const (
	envCreds = "NATS_CREDS"
	envNKey  = "NATS_NKEY"
	envCA    = "NATS_CA"
	envCert  = "NATS_CERT"
	envKey   = "NATS_KEY"
	envInbox = "YARD_INBOX_PREFIX"
)

// loginFlags adds how to log in to NATS. All are paths of files, apart from the inbox
// prefix, so that no secret stands on a command line.
func (a *app) loginFlags(flags *pflag.FlagSet) {
	text := func(into *string, name, env, usage string) {
		flags.StringVar(into, name, envOr(env, ""), usage+" (environment: "+env+")")
	}
	text(&a.login.Credentials, "creds", envCreds, "path of a .creds file with JWT and key")
	text(&a.login.NKeySeed, "nkey", envNKey, "path of a file with an nkey seed")
	text(&a.login.TLS.CA, "tls-ca", envCA, "PEM file of the authorities that sign the servers' certificates")
	text(&a.login.TLS.Cert, "tls-cert", envCert, "PEM file of this client's certificate")
	text(&a.login.TLS.Key, "tls-key", envKey, "PEM file of its key")
	text(&a.login.InboxPrefix, "inbox-prefix", envInbox, "subject prefix of the inboxes, as a sealed cluster gives one to each user")
}

// options are those of every connection of the command.
func (a *app) options(more ...nats.Option) ([]nats.Option, error) {
	login, err := a.login.Options()
	if err != nil {
		return nil, usageError{err}
	}
	return append(append(login, nats.Name("yard-cli"), nats.Timeout(a.timeout)), more...), nil
}

// connect connects to NATS; the caller closes it.
func (a *app) connect() (*nats.Conn, error) {
	options, err := a.options()
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(a.url, options...)
	if err != nil {
		return nil, unreachable(fmt.Errorf("connect to NATS: %w", natsrpc.WithoutURL(err)))
	}
	return nc, nil
}
