package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// options are those of every connection of the command.
func (a *App) options(more ...nats.Option) ([]nats.Option, error) {
	login, err := a.Login.Options()
	if err != nil {
		return nil, UsageError{err}
	}
	login = append(login, nats.Name("yard-cli"), nats.Timeout(a.Timeout), nats.ErrorHandler(a.refused))
	return append(login, more...), nil
}

// refused takes what the server reports of a connection. A user who lacks a right gets no answer, so there is nothing to wait for.
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
