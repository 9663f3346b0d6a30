// Package access has the connections of the console to NATS: one for each login that the configuration names.
//
// Owns: the connections, made when they are needed first, the clients of domains on them, and which logins NATS refuses. A login that is slow to connect keeps no
// other waiting. Never does: decide who may see a domain. On failure: a connection that cannot be made is an error of the call that needs it, and the next call
// tries again.
package access

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/coded"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/health"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// connectionsMax is how many logins may be in use; callTimeout bounds a call that no page bounds.
const (
	connectionsMax = 256
	callTimeout    = 5 * time.Second
)

// Logins say how to log in to NATS.
type Logins struct {
	// Of is the name of the login of a role for a domain; domain "" is for calls about the cluster. Equal names share a connection. Default: one login for all.
	Of func(role, domain string) (name string, err error)
	// Connect makes the connection of a login.
	Connect func(name string) (*nats.Conn, error)
	// Codec decodes what tasks carry. Default: none.
	Codec coded.Codec
}

// Access makes clients.
type Access struct {
	logins Logins

	mu     sync.Mutex
	conns  map[string]*connection
	closed bool
}

// connection is that of a login, which all share that need it. It is there, or err is, when made is closed.
type connection struct {
	made chan struct{}
	nc   *nats.Conn
	err  error
	// refused: NATS did not take the login when its connection was last made, or made again.
	refused bool
}

// New has no connection so far.
func New(logins Logins) *Access { return &Access{logins: logins, conns: map[string]*connection{}} }

// Client is a client of a domain, with the rights of a role.
func (a *Access) Client(role login.Role, domain string) (*yard.Client, error) {
	nc, err := a.conn(role, domain)
	if err != nil {
		return nil, err
	}
	return yard.NewClient(nc, domain, yard.WithTimeout(callTimeout), yard.WithCodec(a.logins.Codec))
}

// Admin is a client for calls about the cluster, with the rights of a role.
func (a *Access) Admin(role login.Role) (*yard.Admin, error) {
	nc, err := a.conn(role, "")
	if err != nil {
		return nil, err
	}
	return yard.NewAdmin(nc, yard.WithTimeout(callTimeout))
}

// Health asks every process of the cluster for its health.
func (a *Access) Health(ctx context.Context, role login.Role) ([]process.Answer, error) {
	nc, err := a.conn(role, "")
	if err != nil {
		return nil, err
	}
	return health.AskBriefly(ctx, nc)
}

// Refused reports whether NATS refuses a login that a role, or one below it, needs for a domain. A login that was not in use counts as taken.
// One that was refused is tried again.
func (a *Access) Refused(role login.Role, domain string) bool {
	for one := login.Viewer; one <= role; one++ {
		name, err := a.name(one, domain)
		if err == nil && a.refuses(name) {
			_, _ = a.connect(name) // what counts is whether it is refused then
			if a.refuses(name) {
				return true
			}
		}
	}
	return false
}

func (a *Access) refuses(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.conns[name]
	return one != nil && (one.refused || one.over() && one.nc != nil && denied(one.nc.LastError()))
}

// denied reports whether an error of a connection says that NATS does not take the login.
func denied(err error) bool {
	return slices.ContainsFunc([]error{nats.ErrAuthorization, nats.ErrAuthRevoked, nats.ErrAuthExpired, nats.ErrAccountAuthExpired}, func(one error) bool { return errors.Is(err, one) })
}

// conn is the connection of the login of a role for a domain.
func (a *Access) conn(role login.Role, domain string) (*nats.Conn, error) {
	name, err := a.name(role, domain)
	if err != nil {
		return nil, fault.New(fault.PermissionDenied, "%v", err)
	}
	return a.connect(name)
}

// name is that of the login of a role for a domain.
func (a *Access) name(role login.Role, domain string) (string, error) {
	if a.logins.Of == nil {
		return "", nil
	}
	return a.logins.Of(role.String(), domain)
}

// connect is the connection of a login.
func (a *Access) connect(name string) (*nats.Conn, error) {
	a.mu.Lock()
	one := a.conns[name]
	if one != nil && !one.over() {
		a.mu.Unlock()
		<-one.made
		return one.nc, one.err
	}
	if len(a.conns) >= connectionsMax && one == nil || a.closed {
		a.mu.Unlock()
		return nil, fault.New(fault.ResourceExhausted, "the console uses %d logins to NATS, which is the most, or is about to end", connectionsMax)
	}
	was := one != nil && (one.refused || one.nc != nil && denied(one.nc.LastError()))
	one = &connection{made: make(chan struct{}), refused: was}
	a.conns[name] = one
	a.mu.Unlock()

	nc, err := a.logins.Connect(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	one.refused = denied(err)
	if one.nc = nc; err != nil {
		one.nc, one.err = nil, fault.New(fault.Unavailable, "%v", err)
	} else if a.closed {
		nc.Close()
	}
	close(one.made)
	return one.nc, one.err
}

// over reports whether the connection has to be made again: it could not be made, or is closed.
func (c *connection) over() bool {
	select {
	case <-c.made:
		return c.err != nil || c.nc.IsClosed()
	default:
		return false
	}
}

// Close closes all connections, also those that are being made.
func (a *Access) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, one := range a.conns {
		if one.nc != nil {
			one.nc.Close()
		}
	}
}
