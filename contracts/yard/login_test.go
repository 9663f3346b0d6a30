package yard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// optionsOf are the options of the connection that Connect would make. It is made nowhere.
func optionsOf(t *testing.T, opts ...yard.ClientOption) (o nats.Options, err error) {
	t.Helper()
	read := func(all *nats.Options) error {
		o = *all
		return nil
	}
	_, err = yard.Connect("nats://127.0.0.1:1", "shop", append(opts, yard.WithNATSOptions(read, func(o *nats.Options) error { return os.ErrClosed }))...)
	return o, err
}

func TestALoginIsThatOfItsFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		checktest.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	// The seed is one that anybody may know.
	seed := file("seed.nk", "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n")
	o, err := optionsOf(t, yard.WithNKey(seed))
	if err == nil || o.Nkey == "" || o.SignatureCB == nil {
		t.Errorf("nkey %q: %v", o.Nkey, err)
	}
	if o, _ := optionsOf(t, yard.WithCredentials(file("a.creds", ""))); o.UserJWT == nil || o.SignatureCB == nil {
		t.Error("the credentials are not used")
	}
	if o, _ := optionsOf(t, yard.WithInboxPrefix("_INBOX.t.shop.ann")); o.InboxPrefix != "_INBOX.t.shop.ann" {
		t.Errorf("answers come to %q", o.InboxPrefix)
	}
	for what, option := range map[string]yard.ClientOption{
		"no seed":               yard.WithNKey(file("empty.nk", "")),
		"no file of a seed":     yard.WithNKey(filepath.Join(dir, "none.nk")),
		"no authorities":        yard.WithRootCAs(file("empty.pem", "")),
		"no certificate":        yard.WithClientCert(file("cert.pem", ""), file("key.pem", "")),
		"an inbox with a space": yard.WithInboxPrefix("_INBOX. x"),
	} {
		if c, err := yard.Connect("nats://127.0.0.1:1", "shop", option); err == nil {
			c.Close()
			t.Errorf("%s: it connects", what)
		} else if strings.Contains(err.Error(), "SUA") {
			t.Errorf("%s: a seed is reported: %v", what, err)
		}
	}
}

// A connection of Connect is restored forever, and what could not be sent is not sent later.
func TestAConnectionIsRestoredForEver(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		before := s.nats.tried()
		s.nats.stop()
		time.Sleep(time.Hour)
		if n := s.nats.tried() - before; n < 1000 {
			t.Errorf("it tried %d times in an hour", n)
		}
		s.nats.start()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		checktest.Check(t, checktest.Err(s.client.Submit(soon(t), one)))
	})
	o, _ := optionsOf(t)
	if o.ReconnectBufSize >= 0 || o.MaxReconnect >= 0 || o.Timeout != 2*time.Second || o.PingInterval != time.Second || o.Name != "yard-sdk" || !o.IgnoreAuthErrorAbort {
		t.Errorf("%+v", o)
	}
}

func TestAClientNeedsADomainAndAConnection(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		for _, domain := range []string{"", "a.b", "admin", "*", strings.Repeat("x", 65)} {
			_, made := yard.NewClient(s.engine.nc, domain)
			_, connected := yard.Connect("", domain, yard.WithNATSOptions(nats.InProcessServer(s.nats)))
			for _, err := range []error{made, connected} {
				if e := fault.From(err); e == nil || e.Code != fault.InvalidArgument || e.Path != "/domain" {
					t.Errorf("domain %q: %v", domain, err)
				}
			}
		}
		checktest.Code(t, "a client of nothing", checktest.Err(yard.NewClient(nil, "shop")), fault.InvalidArgument)
		checktest.Code(t, "a middleware of nothing", checktest.Err(yard.NewClient(s.engine.nc, "shop", yard.WithSubmitMiddleware(nil))), fault.InvalidArgument)
		if _, err := yard.Connect("", "shop", yard.WithNATSOptions(nats.InProcessServer(s.nats)), yard.WithSubmitMiddleware(nil)); fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("connected, with a middleware of nothing: %v", err)
		}
		checktest.Code(t, "an admin of nothing", checktest.Err(yard.NewAdmin(nil)), fault.InvalidArgument)
		if admin, err := yard.NewAdmin(s.engine.nc); err != nil || admin == nil {
			t.Error(err)
		}
		c, err := yard.NewClient(s.engine.nc, "shop")
		if err != nil || c.Domain() != "shop" {
			t.Fatal(c.Domain(), err)
		}
		c.Close() // it is not ours to close
		if s.engine.nc.IsClosed() {
			t.Error("a client closed somebody else's connection")
		}
		s.nats.stop()
		checktest.Code(t, "without a server", checktest.Err(yard.Connect("", "shop", yard.WithNATSOptions(nats.InProcessServer(s.nats)))), fault.Unavailable)
	})
}
