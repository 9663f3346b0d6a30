package console_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/console"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/consoletest"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// proxySecret is what the proxy of a test shows.
const proxySecret = "a secret of the proxy"

// behindProxy sends requests as a proxy does that names the address of their sender.
type behindProxy string

// RoundTrip implements http.RoundTripper.
func (b behindProxy) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", string(b))
	r.Header.Set("Yardmaster-Proxy-Secret", proxySecret)
	return http.DefaultTransport.RoundTrip(r)
}

// personAt is a browser behind a proxy.
func personAt(t *testing.T, address string) *http.Client {
	t.Helper()
	who := person(t)
	who.Transport = behindProxy(address)
	return who
}

// flood: logins that wait for the provider are bounded for each address, and in all. Pages and the logout need none of them.
func flood(t *testing.T, w *consoletest.World) {
	p := newIDP(t)
	p.as(map[string]any{"email": "bob@example.com", "groups": "shop-viewers"})
	cfg := p.config(t)
	cfg.ProxyFrom, cfg.ProxySecret = []string{"127.0.0.0/8"}, filepath.Join(t.TempDir(), "proxy")
	testkit.NoError(t, os.WriteFile(cfg.ProxySecret, []byte(proxySecret), 0o600))
	url := w.Console(t, cfg)
	bob := personAt(t, "192.0.2.1")
	opens(t, bob, url+"/domains/shop/tasklists")

	p.mu.Lock()
	p.release = make(chan struct{})
	p.mu.Unlock()
	var strangers sync.WaitGroup
	defer func() { close(p.release); strangers.Wait() }()
	const each, addresses = 8, 8
	begin := func(address string, all int) {
		for range each {
			who := personAt(t, address)
			who.CheckRedirect = func(_ *http.Request, via []*http.Request) error { // they share a user, whose oldest sessions end: they open no page
				if via[len(via)-1].URL.Path == "/login/callback" {
					return http.ErrUseLastResponse
				}
				return nil
			}
			strangers.Go(func() { _, _, _ = visit(t, who, url+"/") })
		}
		testkit.Eventually(t, effectWithin, func() error {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.waiting != all {
				return fmt.Errorf("%d logins wait", p.waiting)
			}
			return nil
		})
	}
	login := func(address string) int {
		who := personAt(t, address)
		who.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		status, _, _ := visit(t, who, url+"/login")
		return status
	}
	begin("198.51.100.0", each)
	testkit.Equal(t, "one more login of the address", login("198.51.100.0"), http.StatusTooManyRequests)
	testkit.Equal(t, "a login of another address", login("192.0.2.1"), http.StatusSeeOther)
	for i := 1; i < addresses; i++ {
		begin(fmt.Sprint("198.51.100.", i), each*(i+1))
	}
	testkit.Equal(t, "one more login of all", login("192.0.2.1"), http.StatusTooManyRequests)

	opens(t, bob, url+"/domains/shop/tasklists")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/logout", nil)
	testkit.NoError(t, err)
	resp, err := bob.Do(req)
	testkit.NoError(t, err)
	testkit.NoError(t, resp.Body.Close())
	testkit.Equal(t, "the logout in a flood", resp.StatusCode, http.StatusOK)
}

// TestAProxyOnThisHostNeedsASecret: whichever address of the host it has.
func TestAProxyOnThisHostNeedsASecret(t *testing.T) {
	all, err := net.InterfaceAddrs()
	testkit.NoError(t, err)
	for _, one := range all {
		cfg := console.Config{Listen: "127.0.0.1:0", NATS: console.OneLogin(natsrpc.DefaultConnConfig()), Users: usersFile(t), ProxyHeader: "X-User", ProxyFrom: []string{one.String()}}
		refuses(t, cfg, "has to show a secret")
	}
}
