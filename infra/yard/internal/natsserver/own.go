package natsserver

import (
	"fmt"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/yardmaster-io/yardmaster/infra/yard/auth"
)

// ownUser is a user that may do everything in the account of Yardmaster: this process,
// which has the server in its hands anyway. Its key never leaves memory.
type ownUser struct {
	public string
	pair   nkeys.KeyPair
}

func newOwnUser() (*ownUser, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	public, err := pair.PublicKey()
	return &ownUser{public, pair}, err
}

// join adds the user to a server's options.
func (u *ownUser) join(opts *server.Options) error {
	i := slices.IndexFunc(opts.Accounts, func(a *server.Account) bool { return a.Name == auth.Account })
	if i < 0 {
		return fmt.Errorf("nats-server: the configuration has no account %s", auth.Account)
	}
	opts.Nkeys = append(opts.Nkeys, &server.NkeyUser{Nkey: u.public, Account: opts.Accounts[i]})
	return nil
}

// Own logs in as this process itself; without users it is no login at all.
func (s *Server) Own() nats.Option {
	if s.own == nil {
		return func(*nats.Options) error { return nil }
	}
	return nats.Nkey(s.own.public, s.own.pair.Sign)
}
