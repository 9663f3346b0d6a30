package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
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

// LoginFlags adds how to log in to NATS. All are paths of files, apart from the inbox
// prefix, so that no secret stands on a command line.
func (a *App) LoginFlags(flags *pflag.FlagSet) {
	text := func(into *string, name, env, usage string) {
		flags.StringVar(into, name, EnvOr(env, ""), usage+" (environment: "+env+")")
	}
	text(&a.Login.Credentials, "creds", envCreds, "path of a .creds file with JWT and key")
	text(&a.Login.NKeySeed, "nkey", envNKey, "path of a file with an nkey seed")
	text(&a.Login.TLS.CA, "tls-ca", envCA, "PEM file of the authorities that sign the servers' certificates")
	text(&a.Login.TLS.Cert, "tls-cert", envCert, "PEM file of this client's certificate")
	text(&a.Login.TLS.Key, "tls-key", envKey, "PEM file of its key")
	text(&a.Login.InboxPrefix, "inbox-prefix", envInbox, "subject prefix of the inboxes, as a sealed cluster gives one to each user")
}

// options are those of every connection of the command.
func (a *App) options(more ...nats.Option) ([]nats.Option, error) {
	login, err := a.Login.Options()
	if err != nil {
		return nil, UsageError{err}
	}
	login = append(login, nats.Name("yard-cli"), nats.Timeout(a.Timeout), nats.ErrorHandler(a.refused))
	return append(login, more...), nil
}

// refused takes what the server reports of a connection. Who lacks a right gets no answer, so there is nothing to wait for.
func (a *App) refused(_ *nats.Conn, _ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		fmt.Fprintln(a.Err, "warning:", err)
		return
	}
	next := "this user lacks the right: log in as another one with --nkey or --creds, or name the user's own --domain"
	if strings.Contains(err.Error(), "Subscription to") {
		next = "name the user's own --inbox-prefix, which `yard auth render` prints for each"
	}
	a.Deny(fault.New(fault.PermissionDenied, "%v; %s", err, next))
}

// Connect connects to NATS; the caller closes it.
func (a *App) Connect() (*nats.Conn, error) {
	options, err := a.options()
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(a.URL, options...)
	if err != nil {
		return nil, unreachable(fmt.Errorf("connect to NATS: %w", natsrpc.WithoutURL(err)))
	}
	return nc, nil
}
