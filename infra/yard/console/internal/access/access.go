// Package access has the connections of the console to NATS: one for each login that the configuration names.
//
// Owns: the connections, made when they are needed first, and the clients of domains on them. A login that is slow to connect keeps no other waiting. Never does: decide who may see a domain. On failure: a connection
// that cannot be made is an error of the call that needs it, and the next call tries again.
package access

import (
	"context"
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

// conn is the connection of the login of a role for a domain.
func (a *Access) conn(role login.Role, domain string) (*nats.Conn, error) {
	name := ""
	if a.logins.Of != nil {
		var err error
		if name, err = a.logins.Of(role.String(), domain); err != nil {
			return nil, fault.New(fault.PermissionDenied, "%v", err)
		}
	}
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
	one = &connection{made: make(chan struct{})}
	a.conns[name] = one
	a.mu.Unlock()

	nc, err := a.logins.Connect(name)
	a.mu.Lock()
	defer a.mu.Unlock()
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
