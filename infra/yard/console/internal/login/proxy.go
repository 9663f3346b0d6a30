package login

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
)

// ProxySecretHeader is the header in which a proxy shows the secret that it shares with the console.
const ProxySecretHeader = "Yardmaster-Proxy-Secret"

// secretLeast is how long the secret of a proxy is at least, bytes.
const secretLeast = 16

// Proxy lets in the users of a file by the name that a trusted proxy writes into a header. Requests from other addresses are refused, and so is one
// with two such headers, or without the secret if there is one.
type Proxy struct {
	users  Users
	header string
	from   []netip.Prefix
	// secret is the digest of what the proxy shows; nil = it need not show any.
	secret []byte
}

// NewProxy is a login by a header, such as X-Forwarded-User, of proxies at these addresses, such as 10.1.2.3 or 10.0.0.0/8. Every program of this machine can send
// from its own addresses, so a proxy there has to show a secret.
func NewProxy(users Users, header string, from []string, secret string) (*Proxy, error) {
	p := &Proxy{users: users, header: http.CanonicalHeaderKey(header)}
	if secret != "" {
		if len(secret) < secretLeast {
			return nil, fmt.Errorf("the secret of the proxy has %d bytes: want %d at least", len(secret), secretLeast)
		}
		sum := sha256.Sum256([]byte(secret))
		p.secret = sum[:]
	}
	for _, text := range from {
		prefix, err := netip.ParsePrefix(text)
		if address, failed := netip.ParseAddr(text); failed == nil {
			prefix, err = address.Prefix(address.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("address of a proxy %q: want one such as 10.1.2.3 or 10.0.0.0/8", text)
		}
		own, failed := ownAddress(prefix)
		if failed != nil {
			return nil, failed
		}
		if p.secret == nil && own {
			return nil, fmt.Errorf("address of a proxy %q: every program of this machine can send from it, so the proxy has to show a secret", text)
		}
		p.from = append(p.from, prefix)
	}
	if p.header == "" || len(p.from) == 0 {
		return nil, fmt.Errorf("a login by a proxy needs the name of a header and the addresses of the proxies")
	}
	return p, nil
}

// ownAddress reports whether this machine can send from an address of a prefix.
func ownAddress(prefix netip.Prefix) (bool, error) {
	if prefix.Overlaps(loopback4) || prefix.Overlaps(loopback6) {
		return true, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("the addresses of this machine: %w", err)
	}
	return slices.ContainsFunc(all, func(one net.Addr) bool {
		own, err := netip.ParsePrefix(one.String())
		return err == nil && prefix.Contains(own.Addr().Unmap())
	}), nil
}

// The addresses of this machine that it alone can send from.
var loopback4, loopback6 = netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")

// Identify implements Way.
func (p *Proxy) Identify(r *http.Request) (Identity, error) {
	address, err := netip.ParseAddrPort(r.RemoteAddr)
	trusted := err == nil && slices.ContainsFunc(p.from, func(prefix netip.Prefix) bool { return prefix.Contains(address.Addr().Unmap()) })
	if !trusted {
		return Identity{}, &Refused{Status: http.StatusForbidden, Reason: "this console is reached through its proxy only"}
	}
	if shown := sha256.Sum256([]byte(r.Header.Get(ProxySecretHeader))); p.secret != nil && subtle.ConstantTimeCompare(shown[:], p.secret) != 1 {
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
