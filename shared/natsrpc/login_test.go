package natsrpc_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// service connects as a service does, answers calls, and tells what it logs.
func service(t *testing.T, cfg natsrpc.ConnConfig) (*nats.Conn, *lines) {
	t.Helper()
	log := &lines{}
	nc, err := natsrpc.Connect(within(t, soon), cfg, "x", slog.New(slog.NewTextHandler(log, nil)))
	testkit.NoError(t, err)
	t.Cleanup(nc.Close)
	serve(t, nc, func(context.Context, *request) (natsrpc.Message, error) { return &response{Ready: 3}, nil })
	return nc, log
}

// works waits until a call over a connection is answered.
func works(t *testing.T, nc *nats.Conn) {
	t.Helper()
	testkit.Eventually(t, soon, func() error {
		got, err := call(t.Context(), nc, &request{})
		if err == nil && got.Ready != 3 {
			err = fmt.Errorf("answered %v", got)
		}
		return err
	})
}

// as waits until the one connection of a server is that of a user.
func as(t *testing.T, srv *natskit.Server, public string) {
	t.Helper()
	testkit.Eventually(t, soon, func() error {
		z, err := srv.Server.Connz(&server.ConnzOptions{Username: true})
		if err == nil && (len(z.Conns) != 1 || z.Conns[0].AuthorizedUser != public) {
			err = fmt.Errorf("want one connection, of %s: %+v", public, z.Conns)
		}
		return err
	})
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	testkit.NoError(t, os.WriteFile(path, text, 0o600))
}

// encrypted runs a server that takes TLS only, with what the certificate's files hold at each handshake.
func encrypted(t *testing.T, files testkit.Certificates) *natskit.Server {
	t.Helper()
	return natskit.Run(t, natskit.WithOptions(func(o *server.Options) {
		o.TLS = true
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
			return &pair, err
		}}
	}))
}

func TestCallsOverTLS(t *testing.T) {
	files := testkit.NewCertificates(t, t.TempDir())
	srv := encrypted(t, files)
	for _, url := range []string{srv.URL, strings.Replace(srv.URL, "tls://", "nats://", 1)} {
		nc, _ := service(t, natsrpc.ConnConfig{URL: url, TLS: natsrpc.TLSConfig{CA: files.CA}})
		if _, err := nc.TLSConnectionState(); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		works(t, nc)
	}
}

// A server whose certificate the authorities of the file have not signed is not spoken to, and the log says why.
func TestAServerOfAnotherAuthorityIsRefused(t *testing.T) {
	srv := encrypted(t, testkit.NewCertificates(t, t.TempDir()))
	for what, ca := range map[string]string{
		"another authority":       testkit.NewCertificates(t, t.TempDir()).CA,
		"the system's, by tls://": "",
	} {
		log := &lines{}
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			nc, err := natsrpc.Connect(ctx, natsrpc.ConnConfig{URL: srv.URL, TLS: natsrpc.TLSConfig{CA: ca}}, "x", slog.New(slog.NewTextHandler(log, nil)))
			if err == nil {
				nc.Close()
			}
			failed <- err
		}()
		log.wait(t, "certificate signed by unknown authority")
		cancel()
		if err := <-failed; err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Certificates that were replaced, the authority too, are in use after the next reconnect.
func TestReplacedCertificatesAreUsedAtTheNextReconnect(t *testing.T) {
	dir := t.TempDir()
	files := testkit.NewCertificates(t, dir)
	srv := encrypted(t, files)
	nc, log := service(t, natsrpc.ConnConfig{URL: srv.URL, TLS: natsrpc.TLSConfig(files)})
	works(t, nc)
	testkit.NewCertificates(t, dir)
	srv.Restart(t)
	log.wait(t, "reconnected to NATS")
	works(t, nc)
}

func newNKey(t *testing.T, prefix nkeys.PrefixByte) (pair nkeys.KeyPair, public string, seed []byte) {
	t.Helper()
	pair, err := nkeys.CreatePair(prefix)
	if err == nil {
		public, err = pair.PublicKey()
	}
	if err == nil {
		seed, err = pair.Seed()
	}
	testkit.NoError(t, err)
	return pair, public, seed
}

// A key that was replaced, in the file and at the server, is in use after the next reconnect: the old
// one is refused, and no restart of the service is needed. Again and again.
func TestAReplacedNKeyIsUsedAtTheNextReconnect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seed")
	var users *[]*server.NkeyUser
	renew := func() string {
		_, public, seed := newNKey(t, nkeys.PrefixByteUser)
		write(t, file, append(seed, '\n'))
		*users = []*server.NkeyUser{{Nkey: public}}
		return public
	}
	var public string
	srv := natskit.Run(t, natskit.WithOptions(func(o *server.Options) {
		users = &o.Nkeys
		public = renew()
	}))
	nc, _ := service(t, natsrpc.ConnConfig{URL: srv.URL, NKeySeed: file})
	works(t, nc)
	as(t, srv, public)
	for range 2 {
		public = renew()
		srv.Restart(t)
		works(t, nc)
		as(t, srv, public)
	}
}

// A key that was replaced while a service waits for its first connection is used too.
func TestAnNKeyReplacedBeforeTheFirstConnection(t *testing.T) {
	file, log := filepath.Join(t.TempDir(), "seed"), &lines{}
	_, _, unknown := newNKey(t, nkeys.PrefixByteUser)
	write(t, file, unknown)
	_, public, seed := newNKey(t, nkeys.PrefixByteUser)
	srv := natskit.Run(t, natskit.WithOptions(func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} }))
	type result struct {
		nc  *nats.Conn
		err error
	}
	connected := make(chan result, 1)
	go func() {
		nc, err := natsrpc.Connect(within(t, soon), natsrpc.ConnConfig{URL: srv.URL, NKeySeed: file}, "x", slog.New(slog.NewTextHandler(log, nil)))
		connected <- result{nc, err}
	}()
	log.wait(t, "Authorization Violation")
	write(t, file, seed)
	r := <-connected
	if r.err != nil {
		t.Fatal(r.err)
	}
	defer r.nc.Close()
	as(t, srv, public)
}

// credentials are those of a new user of an account, as `nsc generate creds` writes them.
func credentials(t *testing.T, account nkeys.KeyPair) (public string, creds []byte) {
	t.Helper()
	_, public, seed := newNKey(t, nkeys.PrefixByteUser)
	token, err := jwt.NewUserClaims(public).Encode(account)
	if err == nil {
		creds, err = jwt.FormatUserConfig(token, seed)
	}
	testkit.NoError(t, err)
	return public, creds
}

// A .creds file that was replaced is in use after the next reconnect.
func TestReplacedCredentialsAreUsedAtTheNextReconnect(t *testing.T) {
	operator, operatorPublic, _ := newNKey(t, nkeys.PrefixByteOperator)
	account, accountPublic, _ := newNKey(t, nkeys.PrefixByteAccount)
	srv := natskit.Run(t, natskit.WithOptions(func(o *server.Options) {
		o.JetStream = false // an account's right, which this one has not
		o.TrustedOperators = []*jwt.OperatorClaims{jwt.NewOperatorClaims(operatorPublic)}
		token, err := jwt.NewAccountClaims(accountPublic).Encode(operator)
		resolver := new(server.MemAccResolver)
		if err == nil {
			err = resolver.Store(accountPublic, token)
		}
		testkit.NoError(t, err)
		o.AccountResolver = resolver
	}))
	file := filepath.Join(t.TempDir(), "creds")
	public, creds := credentials(t, account)
	write(t, file, creds)
	nc, log := service(t, natsrpc.ConnConfig{URL: srv.URL, Credentials: file})
	works(t, nc)
	as(t, srv, public)
	public, creds = credentials(t, account)
	write(t, file, creds)
	srv.Restart(t)
	log.wait(t, "reconnected to NATS")
	works(t, nc)
	as(t, srv, public)
}
