package clients_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/infra/yard/auth"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// workerOf is who a worker logs in as: it may neither submit nor administer.
func workerOf(domain string) permissions.User {
	return permissions.User{Role: permissions.Worker, Domain: domain, Name: sealed.UserName}
}

// usersOf are an admin and a worker of each domain, for a server with TLS.
func usersOf(t *testing.T, domains ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	testkit.NewCertificates(t, dir)
	var workers []permissions.User
	for _, name := range domains {
		workers = append(workers, workerOf(name))
	}
	testkit.NoError(t, sealed.Render(dir, topology.Partitioning{}, domains, workers...))
	return dir
}

// nobodyIsRefused runs what needs no more than the rights of its users.
func nobodyIsRefused(t *testing.T, users string, do func(s *stack.Stack)) {
	t.Helper()
	refused := new(sealed.Log)
	do(running(t, stack.Config{Auth: users, Log: refused.Logger()}))
	testkit.Check(t, refused.Refused())
}

// login is the environment of a program that is a user of s.
func login(t *testing.T, s *stack.Stack, u permissions.User) []string {
	t.Helper()
	env := []string{"NATS_URL=" + s.URL}
	if s.Auth == "" {
		return env
	}
	seed := auth.SeedFile(s.Auth, u)
	text, err := os.ReadFile(seed)
	testkit.NoError(t, err)
	pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(text))))
	testkit.NoError(t, err)
	return append(env, "NATS_NKEY="+seed, "NATS_NKEY_PUBLIC="+public(t, pair), "YARD_INBOX_PREFIX="+u.Inbox(), "NATS_CA="+sealed.CA(s.Auth))
}

// logsInWithCreds has a program submit through a server that knows its users by their JWTs, each with a
// certificate too, and that gives this one an inbox prefix. It is turned away without creds, and turns away a server of another authority.
func logsInWithCreds(t *testing.T, submit func(env []string) (said string, err error)) {
	dir := t.TempDir()
	files := testkit.NewCertificates(t, dir)
	account := newPair(t, nkeys.CreateAccount)
	srv := operated(t, account, files)
	const prefix = "_INBOX.t.shop.submitter-web"
	asked := make(chan string, 9)
	engine, err := nats.Connect(srv.URL, nats.RootCAs(files.CA), nats.ClientCert(files.Cert, files.Key),
		nats.UserCredentials(creds(t, account, filepath.Join(dir, "engine.creds"), nil)))
	testkit.NoError(t, err)
	defer engine.Close()
	if _, err := engine.Subscribe(topology.API("shop", "tasks.submit"), func(m *nats.Msg) {
		asked <- m.Reply
		_ = m.Respond([]byte(`{"results":[{"task_id":"t","outcome":"created"}],"task":{"task_id":"t","state":"completed","result":{"ok":true}}}`)) // who gets none says so
	}); err != nil {
		t.Fatal(err)
	}
	testkit.NoError(t, engine.Flush())
	web := "NATS_CREDS=" + creds(t, account, filepath.Join(dir, "web.creds"), func(u *jwt.UserClaims) {
		u.Pub.Allow.Add(topology.API("shop", "tasks.submit"))
		u.Sub.Allow.Add(prefix + ".>")
	})
	env := []string{"NATS_URL=" + srv.URL, "NATS_CA=" + files.CA, "NATS_CERT=" + files.Cert, "NATS_KEY=" + files.Key, "YARD_INBOX_PREFIX=" + prefix}
	said, err := submit(append(env, web))
	if err != nil || !strings.Contains(said, `completed {"ok":true}`) {
		t.Fatalf("the submitter said %q, %v", said, err)
	}
	if reply := <-asked; !strings.HasPrefix(reply, prefix+".") {
		t.Errorf("its inbox is %s", reply)
	}
	other := testkit.NewCertificates(t, t.TempDir())
	for what, env := range map[string][]string{
		"without creds":     env,
		"another authority": {env[0], "NATS_CA=" + other.CA, env[2], env[3], env[4], web},
	} {
		if said, err := submit(env); err == nil {
			t.Errorf("%s it said %q", what, said)
		}
	}
	if len(asked) > 0 {
		t.Errorf("%d requests came of those tries", len(asked))
	}
}

// operated is a server in operator mode, with one account, that wants TLS on both sides.
func operated(t *testing.T, account nkeys.KeyPair, files testkit.Certificates) *natskit.Server {
	t.Helper()
	operator := newPair(t, nkeys.CreateOperator)
	return natskit.Run(t, natskit.WithOptions(func(o *server.Options) {
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		testkit.NoError(t, err)
		authority, err := os.ReadFile(files.CA)
		testkit.NoError(t, err)
		clients := x509.NewCertPool()
		clients.AppendCertsFromPEM(authority)
		o.TLS, o.TLSVerify = true, true
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
		o.JetStream = false // an account's right, which this one has not
		o.TrustedOperators = []*jwt.OperatorClaims{jwt.NewOperatorClaims(public(t, operator))}
		token, err := jwt.NewAccountClaims(public(t, account)).Encode(operator)
		resolver := new(server.MemAccResolver)
		if err == nil {
			err = resolver.Store(public(t, account), token)
		}
		testkit.NoError(t, err)
		o.AccountResolver = resolver
	}))
}

// creds writes the .creds file of a new user of an account, as `nsc generate creds` does.
func creds(t *testing.T, account nkeys.KeyPair, file string, limit func(*jwt.UserClaims)) string {
	t.Helper()
	user := newPair(t, nkeys.CreateUser)
	claims := jwt.NewUserClaims(public(t, user))
	if limit != nil {
		limit(claims)
	}
	seed, err := user.Seed()
	testkit.NoError(t, err)
	token, err := claims.Encode(account)
	testkit.NoError(t, err)
	text, err := jwt.FormatUserConfig(token, seed)
	testkit.NoError(t, err)
	testkit.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

func newPair(t *testing.T, create func() (nkeys.KeyPair, error)) nkeys.KeyPair {
	t.Helper()
	pair, err := create()
	testkit.NoError(t, err)
	return pair
}

func public(t *testing.T, pair nkeys.KeyPair) string {
	t.Helper()
	key, err := pair.PublicKey()
	testkit.NoError(t, err)
	return key
}
