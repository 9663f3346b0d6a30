package login

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
)

// Proxy lets in the users of a file by the name that a trusted proxy writes into a header. Requests from other addresses are refused, and so is one
// with two such headers.
type Proxy struct {
	users  Users
	header string
	from   []netip.Prefix
}

// NewProxy is a login by a header, such as X-Forwarded-User, of proxies at these addresses, such as 10.1.2.3 or 10.0.0.0/8.
func NewProxy(users Users, header string, from []string) (*Proxy, error) {
	p := &Proxy{users: users, header: http.CanonicalHeaderKey(header)}
	for _, text := range from {
		prefix, err := netip.ParsePrefix(text)
		if address, failed := netip.ParseAddr(text); failed == nil {
			prefix, err = address.Prefix(address.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("address of a proxy %q: want one such as 10.1.2.3 or 10.0.0.0/8", text)
		}
		p.from = append(p.from, prefix)
	}
	if p.header == "" || len(p.from) == 0 {
		return nil, fmt.Errorf("a login by a proxy needs the name of a header and the addresses of the proxies")
	}
	return p, nil
}

// Identify implements Way.
func (p *Proxy) Identify(r *http.Request) (Identity, error) {
	address, err := netip.ParseAddrPort(r.RemoteAddr)
	trusted := err == nil && slices.ContainsFunc(p.from, func(prefix netip.Prefix) bool { return prefix.Contains(address.Addr().Unmap()) })
	if !trusted {
		return Identity{}, &Refused{Status: http.StatusForbidden, Reason: "this console is reached through its proxy only"}
	}
	names := r.Header.Values(p.header)
	if len(names) != 1 {
		return Identity{}, &Refused{Status: http.StatusForbidden, Reason: "the proxy named no user"}
	}
	one, ok := p.users[names[0]]
	if !ok {
		return Identity{}, &Refused{Status: http.StatusForbidden, Reason: "this user has no role in the console"}
	}
	return one.Identity, nil
}
