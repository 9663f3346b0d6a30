package auth_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/auth"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func plan(users ...permissions.User) auth.Plan {
	return auth.Plan{Partitioning: topology.Partitioning{History: 2, Matching: 2}, Users: users}
}

var (
	ann    = permissions.User{Role: permissions.Operator, Name: "ann"}
	mailer = permissions.User{Role: permissions.Worker, Domain: "shop", Name: "mailer"}
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	testkit.NoError(t, err)
	return string(data)
}

func TestRenderedIsWhatTheServerReads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "auth")
	users, err := auth.Render(dir, plan(ann, mailer, ann))
	if err != nil || len(users) != 8 {
		t.Fatalf("%v %v", users, err)
	}
	opts, err := server.ProcessConfigFile(filepath.Join(dir, auth.ConfigFile))
	testkit.NoError(t, err)
	if opts.SystemAccount != auth.SystemAccount || len(opts.Nkeys) != len(users)+1 || opts.NoAuthUser != "" {
		t.Errorf("%d users, system account %s", len(opts.Nkeys), opts.SystemAccount)
	}
	for _, u := range users {
		want, err := permissions.Of(u.User, plan().Partitioning)
		testkit.NoError(t, err)
		found := false
		for _, got := range opts.Nkeys {
			if got.Nkey != u.Public {
				continue
			}
			found = true
			p := got.Permissions
			if got.Account.Name != auth.Account || strings.Join(p.Publish.Allow, " ") != strings.Join(want.Publish, " ") ||
				strings.Join(p.Subscribe.Allow, " ") != strings.Join(want.Subscribe, " ") || p.Response != nil {
				t.Errorf("%s: %v", u.User, p)
			}
		}
		if !found {
			t.Errorf("%s is not in it", u.User)
		}
	}
}

// Seeds are for their owner only, stay as they are, and stand in no configuration.
func TestKeysStay(t *testing.T) {
	dir := t.TempDir()
	first, err := auth.Render(dir, plan(ann))
	testkit.NoError(t, err)
	config := read(t, filepath.Join(dir, auth.ConfigFile))
	if again, err := auth.Render(dir, plan(ann)); err != nil || read(t, filepath.Join(dir, auth.ConfigFile)) != config || again[0] != first[0] {
		t.Errorf("rendered again it differs: %v", err)
	}
	more, err := auth.Render(dir, plan(ann, mailer))
	testkit.NoError(t, err)
	for i, u := range first {
		if more[i] != u {
			t.Errorf("%v became %v", u, more[i])
		}
		info, err := os.Stat(u.Seed)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", u.Seed, info.Mode(), err)
		}
		if seed := strings.TrimSpace(read(t, u.Seed)); !strings.HasPrefix(seed, "SU") || strings.Contains(config, seed) {
			t.Errorf("the seed of %s", u.User)
		}
	}
	if info, err := os.Stat(filepath.Dir(first[0].Seed)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the keys: %v %v", info.Mode(), err)
	}
	account, err := nkeys.CreateAccount()
	testkit.NoError(t, err)
	seed, err := account.Seed()
	testkit.NoError(t, err)
	testkit.NoError(t, os.WriteFile(first[0].Seed, seed, 0o600))
	if _, err := auth.Render(dir, plan()); err == nil || !strings.Contains(err.Error(), "not of a user") {
		t.Errorf("the key of an account: %v", err)
	}
	testkit.NoError(t, os.WriteFile(first[0].Seed, []byte("nothing"), 0o600))
	if _, err := auth.Render(dir, plan()); err == nil || !strings.Contains(err.Error(), "holds no nkey seed") {
		t.Errorf("a spoiled key: %v", err)
	}
}

// What a worker may poll can change, and its key stays; two answers to what it may are none.
func TestAWorkersTasklists(t *testing.T) {
	dir := t.TempDir()
	before, err := auth.Render(dir, plan(mailer))
	testkit.NoError(t, err)
	fenced := mailer
	fenced.Tasklists = "letters:push"
	after, err := auth.Render(dir, plan(fenced))
	if err != nil || after[len(after)-1].Public != before[len(before)-1].Public {
		t.Errorf("another key: %v", err)
	}
	if conf := read(t, filepath.Join(dir, auth.ConfigFile)); !strings.Contains(conf, "tasks.poll.letters") || strings.Contains(conf, "tasks.poll.*") {
		t.Error("it may poll all tasklists")
	}
	if _, err := auth.Render(dir, plan(mailer, fenced)); err == nil {
		t.Error("a user with and without tasklists")
	}
}

func TestTLSNeedsBothHalves(t *testing.T) {
	for _, tls := range []auth.TLS{{Cert: "c.pem"}, {Key: "k.pem"}, {CA: "ca.pem"}} {
		p := plan()
		p.TLS = tls
		if _, err := auth.Render(t.TempDir(), p); err == nil {
			t.Errorf("%v", tls)
		}
	}
	p, dir := plan(), t.TempDir()
	p.TLS = auth.TLS{Cert: "c.pem", Key: "k.pem", CA: "ca.pem"}
	testkit.NoError(t, testkit.Err(auth.Render(dir, p)))
	for _, part := range []string{`cert_file: "c.pem"`, `key_file: "k.pem"`, `ca_file: "ca.pem"`, "verify: true"} {
		if config := read(t, filepath.Join(dir, auth.ConfigFile)); !strings.Contains(config, part) {
			t.Errorf("no %s", part)
		}
	}
}
