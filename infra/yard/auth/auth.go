package auth

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/filelock"
)

// Account is the account of Yardmaster and its users, and SystemAccount that of the
// server itself, which no user of Yardmaster is in.
const (
	Account       = "YARD"
	SystemAccount = "SYS"
)

// Names of what Render writes.
const (
	// ConfigFile is the configuration, to be included by the server's own.
	ConfigFile = "auth.conf"
	// keysDir holds a seed per user.
	keysDir = "keys"
	// systemKey is the user of SystemAccount.
	systemKey = "system"
)

// Plan is what to render.
type Plan struct {
	// Partitioning is the cluster's.
	Partitioning topology.Partitioning
	// Users are those besides the services, which always are there.
	Users []permissions.User
	// TLS has clients connect with TLS; the zero value is without.
	TLS TLS
}

// TLS names the server's PEM files, as the server finds them. They are not read here.
type TLS struct {
	Cert, Key string
	// CA, if given, has clients present a certificate that it signed.
	CA string
}

// Rendered is one user of a rendered configuration.
type Rendered struct {
	User permissions.User
	// Seed is the path of the key file.
	Seed string
	// Public is the public key.
	Public string
}

// SeedFile is where the key of a user is below the folder of Render. The rights of the user are no part of it.
func SeedFile(dir string, u permissions.User) string {
	u.Tasklists = ""
	return filepath.Join(dir, keysDir, strings.ReplaceAll(u.String(), ":", ".")+".nk")
}

// Render writes ConfigFile, RedisACLFile and the key files into dir, which it makes, and returns the
// users in the order in which they stand in the configuration.
func Render(dir string, p Plan) ([]Rendered, error) {
	if (p.TLS.Cert == "") != (p.TLS.Key == "") {
		return nil, errors.New("tls: the certificate and its key must both be given, or neither")
	}
	if p.TLS.CA != "" && p.TLS.Cert == "" {
		return nil, errors.New("tls: a CA checks the certificates of clients, which needs a server certificate and key")
	}
	if err := os.MkdirAll(filepath.Join(dir, keysDir), 0o700); err != nil {
		return nil, err
	}
	var all []Rendered
	var users strings.Builder
	known := map[string]permissions.User{}
	for _, u := range p.users() {
		seed := SeedFile(dir, u)
		if other, twice := known[seed]; twice {
			return nil, fmt.Errorf("user %s is named twice, also as %s: name all its tasklists at once", u, other)
		}
		known[seed] = u
		allowed, err := permissions.Of(u, p.Partitioning)
		if err != nil {
			return nil, err
		}
		r := Rendered{User: u, Seed: seed}
		if r.Public, err = key(r.Seed); err != nil {
			return nil, fmt.Errorf("user %s: %w", u, err)
		}
		writeUser(&users, r, allowed)
		all = append(all, r)
	}
	system, err := key(filepath.Join(dir, keysDir, systemKey+".nk"))
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", systemKey, err)
	}
	if err := renderRedis(dir); err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	text := fmt.Sprintf(head, p.Partitioning.History, p.Partitioning.Matching, Account, users.String(), SystemAccount, system, SystemAccount) + p.TLS.text()
	return all, filelock.Replace(filepath.Join(dir, ConfigFile), []byte(text))
}

// users are the services and those of the plan, each once.
func (p Plan) users() []permissions.User {
	var all []permissions.User
	for _, r := range permissions.Services() {
		all = append(all, permissions.User{Role: r})
	}
	for _, u := range p.Users {
		if !slices.Contains(all, u) {
			all = append(all, u)
		}
	}
	return all
}

const head = `# Written by yard auth render for %d history partitions and %d matching shards.
# Include it in the configuration of every nats-server, and render it again after a
# change: keys that exist stay. It holds public keys only.
accounts {
  %s {
    jetstream: enabled
    users: [
%s    ]
  }
  %s {
    users: [ { nkey: %s } ]
  }
}
system_account: %s
`

func writeUser(b *strings.Builder, r Rendered, p permissions.Permissions) {
	fmt.Fprintf(b, "      # %s; its inbox prefix is %s\n      { nkey: %s, permissions: {\n", r.User, r.User.Inbox(), r.Public)
	fmt.Fprintf(b, "        publish: { allow: [%s] }\n        subscribe: { allow: [%s] } } }\n", quoted(p.Publish), quoted(p.Subscribe))
}

// quoted is a list of subjects, one a line.
func quoted(subjects []string) string {
	var b strings.Builder
	for _, s := range subjects {
		fmt.Fprintf(&b, "\n          %q", s)
	}
	return b.String() + "\n        "
}

func (t TLS) text() string {
	if t.Cert == "" {
		return ""
	}
	text := fmt.Sprintf("tls {\n  cert_file: %q\n  key_file: %q\n", t.Cert, t.Key)
	if t.CA != "" {
		text += fmt.Sprintf("  ca_file: %q\n  verify: true\n", t.CA)
	}
	return text + "}\n"
}

// key returns the public key of a seed file, which it makes if there is none.
func key(path string) (public string, err error) {
	seed, err := kept(path, func() (string, error) {
		pair, err := nkeys.CreateUser()
		if err != nil {
			return "", err
		}
		defer pair.Wipe()
		seed, err := pair.Seed()
		return string(seed), err
	})
	if err != nil {
		return "", err
	}
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", fmt.Errorf("%s holds no nkey seed: remove it to create a new one", path)
	}
	defer pair.Wipe()
	public, err = pair.PublicKey()
	if err == nil && !nkeys.IsValidPublicUserKey(public) {
		err = fmt.Errorf("%s holds a seed that is not of a user", path)
	}
	return public, err
}

// kept is the secret in a file. If there is no file, it makes a secret and writes one.
func kept(path string, fresh func() (string, error)) (string, error) {
	data, err := os.ReadFile(path)
	if !errors.Is(err, os.ErrNotExist) {
		return strings.TrimSpace(string(data)), err
	}
	secret, err := fresh()
	if err != nil {
		return "", err
	}
	return secret, filelock.Replace(path, []byte(secret+"\n"))
}
