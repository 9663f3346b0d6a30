package console

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"go.yaml.in/yaml/v3"

	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// connectionName is what the connections are called in the monitoring of NATS.
const connectionName = "yard-console"

// OneLogin uses one login to NATS for all roles. Then NATS does not tell roles apart.
func OneLogin(to natsrpc.ConnConfig) Logins {
	return Logins{Connect: func(string) (*nats.Conn, error) { return natsrpc.Dial(to, connectionName) }}
}

// natsLogin is a login to NATS.
type natsLogin struct {
	Creds       string
	NKey        string
	InboxPrefix string `yaml:"inbox_prefix"`
}

// roleLogins are the logins of a role: for calls about the cluster, and by domain; "*" is for all other domains.
type roleLogins struct {
	Cluster *natsLogin
	Domains map[string]natsLogin
}

// ReadLogins reads a YAML file with a login to NATS for each role of the console, so that NATS enforces the roles, too. Server and TLS are those of to.
//
//	viewer:
//	  cluster: {nkey: keys/observer.console.nk, inbox_prefix: _INBOX.o.observer-console}
//	  domains:
//	    shop: {nkey: keys/viewer.shop.console.nk, inbox_prefix: _INBOX.t.shop.viewer-console}
func ReadLogins(file string, to natsrpc.ConnConfig) (Logins, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Logins{}, err
	}
	roles := map[string]roleLogins{}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&roles); err != nil {
		return Logins{}, fmt.Errorf("logins: %s: %w", file, err)
	}
	for role := range roles {
		if _, err := login.ParseRole(role); err != nil {
			return Logins{}, fmt.Errorf("logins: %s: %w", file, err)
		}
	}
	find := func(role, domain string) (string, natsLogin, error) {
		if domain == "" && roles[role].Cluster != nil {
			return role, *roles[role].Cluster, nil
		}
		for _, name := range []string{domain, login.AllDomains} {
			if one, ok := roles[role].Domains[name]; ok && domain != "" {
				return role + "/" + name, one, nil
			}
		}
		return "", natsLogin{}, fmt.Errorf("the console has no login to NATS of role %s for %s", role, cmp.Or(domain, "the cluster"))
	}
	return Logins{
		Of: func(role, domain string) (string, error) {
			name, _, err := find(role, domain)
			return name, err
		},
		Connect: func(name string) (*nats.Conn, error) {
			role, domain, _ := strings.Cut(name, "/")
			_, one, err := find(role, domain)
			if err != nil {
				return nil, err
			}
			as := to
			as.Credentials, as.NKeySeed, as.InboxPrefix = one.Creds, one.NKey, one.InboxPrefix
			return natsrpc.Dial(as, connectionName)
		},
	}, nil
}
