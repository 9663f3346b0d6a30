package login

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ProxySecretHeader is the header in which a proxy shows the secret that it shares with the console.
const ProxySecretHeader = "Yardmaster-Proxy-Secret"

// secretLeast is how long the secret of a proxy is at least, bytes.
const secretLeast = 16

// Proxies are those that the console trusts. The zero value is none.
type Proxies struct {
	from []netip.Prefix
	// secret is the digest of what a proxy shows; nil = it need not show any.
	secret []byte
}

// NewProxies are proxies at these addresses, such as 10.1.2.3 or 10.0.0.0/8. Every program of this machine can send from its own addresses, so a proxy there has to
// show a secret.
func NewProxies(from []string, secret string) (Proxies, error) {
	p := Proxies{}
	if secret != "" {
		if len(secret) < secretLeast {
			return p, fmt.Errorf("the secret of the proxy has %d bytes: want %d at least", len(secret), secretLeast)
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
			return p, fmt.Errorf("address of a proxy %q: want one such as 10.1.2.3 or 10.0.0.0/8", text)
		}
		own, failed := ownAddress(prefix)
		if failed != nil {
			return p, failed
		}
		if p.secret == nil && own {
			return p, fmt.Errorf("address of a proxy %q: every program of this machine can send from it, so the proxy has to show a secret", text)
		}
		p.from = append(p.from, prefix)
	}
	if p.secret != nil && len(p.from) == 0 {
		return p, errors.New("the secret of a proxy needs the addresses of the proxies")
	}
	return p, nil
}

// sent reports whether a proxy that is trusted sent a request.
func (p Proxies) sent(r *http.Request) bool {
	address, err := netip.ParseAddrPort(r.RemoteAddr)
	shown := sha256.Sum256([]byte(r.Header.Get(ProxySecretHeader)))
	return err == nil && p.has(address.Addr()) && (p.secret == nil || subtle.ConstantTimeCompare(shown[:], p.secret) == 1)
}

func (p Proxies) has(address netip.Addr) bool {
	return slices.ContainsFunc(p.from, func(prefix netip.Prefix) bool { return prefix.Contains(address.Unmap()) })
}

// sender is the network that a request comes from. Behind a proxy it is the last address in X-Forwarded-For that is none of a proxy: the sender can write only
// those before it.
func (p Proxies) sender(r *http.Request) string {
	if !p.sent(r) {
		return network(r.RemoteAddr)
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		address, ok := hopOf(strings.TrimSpace(hop))
		if !ok {
			break
		}
		if !p.has(address) {
			return networkOf(address)
		}
	}
	return network(r.RemoteAddr)
}

// hopOf is an address of X-Forwarded-For. Some proxies write the port, too, or put an address of IPv6 in brackets.
func hopOf(text string) (netip.Addr, bool) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr(), true
	}
	if inside, ok := strings.CutPrefix(text, "["); ok {
		text = strings.TrimSuffix(inside, "]")
	}
	address, err := netip.ParseAddr(text)
	return address, err == nil
}

// Proxy lets in the users of a file by the name that a trusted proxy writes into a header. Requests of others are refused, and so is one with two such headers.
type Proxy struct {
	users   Users
	header  string
	proxies Proxies
}

// NewProxy is a login by a header, such as X-Forwarded-User.
func NewProxy(users Users, header string, proxies Proxies) (*Proxy, error) {
	if len(proxies.from) == 0 {
		return nil, errors.New("a login by a proxy needs the addresses of the proxies")
	}
	return &Proxy{users: users, header: http.CanonicalHeaderKey(header), proxies: proxies}, nil
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
	if !p.proxies.sent(r) {
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
