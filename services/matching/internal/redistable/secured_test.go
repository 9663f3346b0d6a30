package redistable_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/redistable"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// soon bounds what a healthy run does at once.
const soon = time.Minute

// secured is a server that lets "matching" do what topology.RedisACL says.
type secured struct {
	*testkit.Redis
	t        testing.TB
	admin    *redis.Client
	password string // path of its file
}

func secure(t testing.TB, r *testkit.Redis) *secured {
	s := &secured{Redis: r, t: t, admin: dial(t, r.Addr), password: filepath.Join(t.TempDir(), "password")}
	s.Login(t, "matching", "first")
	s.write("first")
	return s
}

func (s *secured) write(password string) {
	s.t.Helper()
	testkit.NoError(s.t, os.WriteFile(s.password, []byte(password+"\n"), 0o600))
}

func (s *secured) do(args ...any) any {
	s.t.Helper()
	answer, err := s.admin.Do(context.Background(), args...).Result()
	if err != nil {
		s.t.Fatalf("%v: %v", args[:2], err)
	}
	return answer
}

// used checks that nothing was refused, and that nothing is allowed in vain.
func (s *secured) used(cluster bool) {
	s.t.Helper()
	if refused, ok := s.do("acl", "log").([]any); !ok || len(refused) > 0 {
		s.t.Errorf("refused: %v", refused)
	}
	stats := s.admin.Info(context.Background(), "commandstats").Val()
	for _, word := range strings.Fields(topology.RedisACL("matching", "")) {
		name, allowed := strings.CutPrefix(word, "+")
		if allowed && !strings.Contains(stats, "cmdstat_"+name+":") && (cluster || !strings.HasPrefix(name, "cluster|")) {
			s.t.Errorf("%s is allowed and not used", name)
		}
	}
}

// looks has readiness look at Redis, as the user.
func (s *secured) looks(client redis.UniversalClient) {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	done := make(chan error)
	go func() { done <- redistable.NewHealth(client).Run(ctx) }()
	testkit.Eventually(s.t, soon, func() error {
		if stats := s.admin.Info(ctx, "commandstats").Val(); !strings.Contains(stats, "cmdstat_ping:") {
			return fmt.Errorf("it has not looked: %s", stats)
		}
		return nil
	})
	stop()
	testkit.Check(s.t, <-done)
}

// TestTablesWithTLSAsAUserOfItsOwn runs the suite over TLS, as a user that may do what topology.RedisACL
// allows; the whole of that is used.
func TestTablesWithTLSAsAUserOfItsOwn(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "runs the suite of tables once more, or many times")
	r := testkit.RunRedis(t)
	s := secure(t, r)
	c := testkit.NewCertificates(t, t.TempDir())
	store := connect(t, redistable.Config{
		Addrs: []string{s.Encrypt(t, c)}, Username: "matching", PasswordFile: s.password,
		TLS: redistable.TLSConfig{CA: c.CA, Cert: c.Cert, Key: c.Key},
	})
	store.nodes = []*redis.Client{s.admin}
	exercise(t, store)
	s.looks(store.client)
	s.used(false)
}

func TestTablesOnAClusterAsAUserOfItsOwn(t *testing.T) {
	t.Parallel()
	servers := testkit.RunRedisCluster(t, 1)
	s := secure(t, servers[0])
	store := connect(t, redistable.Config{Addrs: []string{servers[0].Addr}, Cluster: true, Username: "matching", PasswordFile: s.password})
	store.nodes = []*redis.Client{s.admin}
	exercise(t, store)
	s.looks(store.client)
	s.used(true)
}

// TestTheUserReachesNothingElse: a stolen password is worth the tables.
func TestTheUserReachesNothingElse(t *testing.T) {
	t.Parallel()
	r := testkit.RunRedis(t)
	s := secure(t, r)
	s.do("set", "other", "theirs")
	thief := redis.NewClient(&redis.Options{Addr: r.Addr, Username: "matching", Password: "first", DisableIdentity: true})
	t.Cleanup(func() { _ = thief.Close() })
	testkit.NoError(t, thief.Set(t.Context(), topology.EpochKey("d", 0), "x", 0).Err())
	for _, command := range []string{
		"get other", "set other x", "keys *", "scan 0", "flushall", "flushdb", "config get *", "acl list", "client list", "shutdown",
		"replicaof 127.0.0.1 1", "module list", "eval return(1) 0", "monitor", "subscribe x", "publish x y", "migrate 127.0.0.1 1 k 0 1",
	} {
		var args []any
		for _, word := range strings.Fields(command) {
			args = append(args, word)
		}
		if err := thief.Do(t.Context(), args...).Err(); !redis.HasErrorPrefix(err, "NOPERM") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// TestAChangedPasswordAndCertificateAreUsed: new connections take what the files hold by then.
func TestAChangedPasswordAndCertificateAreUsed(t *testing.T) {
	t.Parallel()
	r := testkit.RunRedis(t)
	s, dir := secure(t, r), t.TempDir()
	c := testkit.NewCertificates(t, dir)
	addr := s.Encrypt(t, c)
	config := redistable.Config{
		Addrs: []string{addr}, Username: "matching", PasswordFile: s.password,
		TLS: redistable.TLSConfig{CA: c.CA, Cert: c.Cert, Key: c.Key},
	}
	tables := connect(t, config).Shard(0)
	works := func() error { _, err := tables.Open(t.Context(), "d"); return err }
	testkit.Eventually(t, soon, works)
	cut := func() { s.do("client", "kill", "user", "matching") }

	s.Login(t, "matching", "second")
	cut()
	for range 3 { // what is left of the pool may be dead
		if err := works(); err == nil || strings.Contains(err.Error(), "first") {
			t.Errorf("with the old password: %v", err)
		}
	}
	s.write("second")
	testkit.Eventually(t, soon, works)

	testkit.NewCertificates(t, dir) // another authority, over the old files
	s.do("config", "set", "tls-cert-file", c.Cert, "tls-key-file", c.Key, "tls-ca-cert-file", c.CA)
	cut()
	testkit.Eventually(t, soon, works)

	testkit.NoError(t, os.Remove(s.password))
	cut()
	testkit.Eventually(t, soon, func() error {
		if err := works(); err == nil || !strings.Contains(err.Error(), "password_file") {
			return fmt.Errorf("without its file: %v", err)
		}
		return nil
	})
}

// TestAServerOfAnotherNameIsRefused: a certificate by the right authority is not enough.
func TestAServerOfAnotherNameIsRefused(t *testing.T) {
	t.Parallel()
	r := testkit.RunRedis(t)
	s := secure(t, r)
	c := testkit.NewCertificates(t, t.TempDir())
	other := testkit.NewCertificates(t, t.TempDir())
	addr := s.Encrypt(t, c)
	good := redistable.TLSConfig{CA: c.CA, Cert: c.Cert, Key: c.Key}
	for name, change := range map[string]func(*redistable.TLSConfig){
		"":                           func(*redistable.TLSConfig) {},
		"localhost":                  func(c *redistable.TLSConfig) { c.ServerName = "localhost" },
		"not redis.example":          func(c *redistable.TLSConfig) { c.ServerName = "redis.example" },
		"unknown authority":          func(c *redistable.TLSConfig) { c.CA = other.CA },
		"certificate required":       func(c *redistable.TLSConfig) { c.Cert, c.Key = "", "" },
		"authority, of the system's": func(c *redistable.TLSConfig) { c.CA = "" },
	} {
		config := redistable.Config{Addrs: []string{addr}, Username: "matching", Password: "first", TLS: good}
		change(&config.TLS)
		tables := connect(t, config).Shard(0)
		open := func() error { _, err := tables.Open(t.Context(), "d"); return err }
		if name == "" || name == "localhost" {
			testkit.Eventually(t, soon, open)
		} else if err := open(); err == nil {
			t.Errorf("%s: it was trusted", name)
		}
	}
}

func TestFilesThatCannotBeUsedAreToldAtTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := testkit.NewCertificates(t, dir)
	empty, junk := filepath.Join(dir, "empty"), filepath.Join(dir, "junk")
	for path, text := range map[string]string{empty: " \n", junk: "hunter2"} {
		testkit.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for want, config := range map[string]redistable.Config{
		"redis.password_file: open ":     {PasswordFile: filepath.Join(dir, "absent")},
		"want a password and at most":    {PasswordFile: empty},
		"holds no PEM certificate":       {TLS: redistable.TLSConfig{CA: junk}},
		"redis.tls.cert and key: ":       {TLS: redistable.TLSConfig{Cert: c.Cert, Key: junk}},
		"redis.tls.ca: open ":            {TLS: redistable.TLSConfig{CA: filepath.Join(dir, "absent")}},
		"redis.tls.cert and key: open /": {TLS: redistable.TLSConfig{Cert: filepath.Join(dir, "absent"), Key: c.Key}},
	} {
		client, err := redistable.Connect(config)
		if err == nil {
			_ = client.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestSettingsThatContradictEachOther(t *testing.T) {
	t.Parallel()
	addrs := []string{"a:1"}
	for want, config := range map[string]redistable.Config{
		"addrs":           {},
		"cluster is off":  {Addrs: []string{"a:1", "b:1"}},
		"choose one":      {Addrs: addrs, Password: "hunter2", PasswordFile: "x"},
		"both be given":   {Addrs: addrs, TLS: redistable.TLSConfig{Cert: "x"}},
		"TLS is not on":   {Addrs: addrs, TLS: redistable.TLSConfig{ServerName: "x"}},
		"no address of a": {},
	} {
		problems := config.Validate()
		if len(problems) != 1 || !strings.Contains(problems[0].String(), want) || strings.Contains(problems[0].String(), "hunter2") {
			t.Errorf("%v, want %q", problems, want)
		}
	}
}
