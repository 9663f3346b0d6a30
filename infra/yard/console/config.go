package console

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"

	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/access"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
)

// ListenDefault is the address of a console on this machine.
const ListenDefault = "127.0.0.1:8222"

// Config of a console.
type Config struct {
	// Listen is the address. Default ListenDefault. Without a login it must be an address of this machine only.
	Listen string
	// Users is a YAML file of users, with their roles and domains, or of the provider at which they log in. Default: none; everybody on this machine is an admin.
	Users string
	// ProxyFrom are the addresses of proxies that are trusted to say in X-Forwarded-For which address a request is from. Default: none.
	ProxyFrom []string
	// ProxyHeader is the header in which these proxies name the user. Default: users log in with a password, or at a provider.
	ProxyHeader string
	// ProxySecret is a file with a secret that the proxy shows in the header Yardmaster-Proxy-Secret. Required if a proxy has an address of this machine only. Default: none.
	ProxySecret string
	// NATS says how to log in to NATS: OneLogin, or ReadLogins. Required.
	NATS Logins
	// Log is where it reports. Default: none.
	Log *slog.Logger
}

// Logins say how to log in to NATS.
type Logins = access.Logins

// way is how people log in.
func (c Config) way() (login.Way, error) {
	switch {
	case c.Users == "" && (c.ProxyHeader != "" || len(c.ProxyFrom) > 0 || c.ProxySecret != ""):
		return nil, errors.New("a login by a proxy needs a file of users, which has their roles")
	case c.Users == "" && !loopback(c.Listen):
		return nil, fmt.Errorf("listen on %s: without a login the console may listen only on this machine, such as %s; name a file of users", c.Listen, ListenDefault)
	case c.Users == "":
		return login.Open{}, nil
	}
	users, provider, err := login.ReadUsers(c.Users)
	if err != nil {
		return nil, err
	}
	proxySecret, err := readSecret("proxy", c.ProxySecret)
	if err != nil {
		return nil, err
	}
	proxies, err := login.NewProxies(c.ProxyFrom, proxySecret)
	switch {
	case err != nil:
		return nil, err
	case provider != nil && c.ProxyHeader != "":
		return nil, errors.New("people log in at a provider or by a proxy, not both")
	case provider != nil:
		secret, err := readSecret("client", provider.ClientSecretFile)
		if err != nil {
			return nil, err
		}
		return login.NewOIDC(*provider, secret, proxies), nil
	case c.ProxyHeader != "":
		return login.NewProxy(users, c.ProxyHeader, proxies)
	}
	return login.NewPassword(users, proxies), nil
}

// readSecret reads a file with a secret; without a file there is none.
func readSecret(of, file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err == nil && len(bytes.TrimSpace(text)) == 0 {
		err = fmt.Errorf("%s is empty", file)
	}
	if err != nil {
		return "", fmt.Errorf("the secret of the %s: %w", of, err)
	}
	return string(bytes.TrimSpace(text)), nil
}

// loopback reports whether only this machine reaches an address, or names it in a request.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
