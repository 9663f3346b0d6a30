// Package login finds out who sends a request to the console.
//
// Owns: the roles, the file of users, the sessions, and the ways to log in: open, by password, by a proxy, at a provider of OpenID Connect. Never does: decide what a role may do; pages name the role they
// need, and NATS enforces it again. On failure: a *Refused says which status the browser gets, and nothing is served.
package login

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Role is what a user may do. Each one may do what those before it may.
type Role int

// The roles.
const (
	// Viewer sees everything of its domains, and changes nothing.
	Viewer Role = iota + 1
	// Operator also changes tasks: cancel, redrive, run now, pause.
	Operator
	// Admin also changes settings.
	Admin
)

var roleNames = map[Role]string{Viewer: "viewer", Operator: "operator", Admin: "admin"}

// String is the name of the role.
func (r Role) String() string { return roleNames[r] }

// ParseRole is the role of a name.
func ParseRole(name string) (Role, error) {
	for role, known := range roleNames {
		if name == known {
			return role, nil
		}
	}
	return 0, fmt.Errorf("role %q: want viewer, operator or admin", name)
}

// AllDomains among the domains of a user is every domain, and the pages of the whole cluster.
const AllDomains = "*"

// Identity is who sends a request.
type Identity struct {
	Name    string
	Role    Role
	Domains []string
	// Session: the user has a session, and can end it.
	Session bool
}

// Sees reports whether the user may see a domain.
func (i Identity) Sees(domain string) bool { return i.SeesAll() || slices.Contains(i.Domains, domain) }

// SeesAll reports whether the user may see every domain, and the cluster.
func (i Identity) SeesAll() bool { return slices.Contains(i.Domains, AllDomains) }

// Way is a way to log in.
type Way interface {
	// Identify returns who sends a request, or a *Refused.
	Identify(r *http.Request) (Identity, error)
}

// Routed is a way to log in with pages of its own.
type Routed interface {
	// Routes are these pages, by their patterns.
	Routes() map[string]http.Handler
}

// Ending is a way to log in whose sessions can be ended.
type Ending interface {
	// End ends the session of a request, if it has one.
	End(r *http.Request)
}

// Refused is the error of a request whose sender is not let in.
type Refused struct {
	// Status is that of the answer, Challenge its header WWW-Authenticate; "" = none.
	Status    int
	Challenge string
	// RetryAfter is when another try is worth it; 0 = the answer does not say.
	RetryAfter time.Duration
	// Login is the page where a browser logs in; "" = there is none.
	Login string
	// Reason is for people.
	Reason string
}

// Error implements error.
func (r *Refused) Error() string { return r.Reason }

// Write answers a request with it.
func (r *Refused) Write(w http.ResponseWriter) {
	if r.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(r.RetryAfter.Seconds()))))
	}
	if r.Challenge != "" {
		w.Header().Set("WWW-Authenticate", r.Challenge)
	}
	http.Error(w, r.Reason, r.Status)
}

// Open lets everybody in, as an admin of all domains. It is for a console that only this machine can reach.
type Open struct{}

// Identify implements Way.
func (Open) Identify(*http.Request) (Identity, error) {
	return Identity{Name: "this machine", Role: Admin, Domains: []string{AllDomains}}, nil
}
