package redistable

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/yardmaster-io/yardmaster/shared/settings"
)

// Config says how to reach Redis. Files are read again for each new connection, and connections last for an
// hour at most: so a changed password or certificate is in use everywhere by then, without a restart.
type Config struct {
	// Addrs are host:port of the server, or of some nodes of a cluster. Default
	// 127.0.0.1:6379. Wrong ones leave limited types and backlogs standing until
	// they are right.
	Addrs []string `koanf:"addrs" usage:"host:port of the Redis server, or of nodes of the cluster"`
	// Cluster says that the addresses are of a Redis Cluster. Default false.
	Cluster bool `koanf:"cluster" usage:"the addresses are nodes of a Redis Cluster"`
	// Username logs in, with one of the passwords. Default none. Its permissions are listed by
	// topology.RedisACL.
	Username string `koanf:"username" usage:"user to log in as"`
	// Password is one that needs no file. Default none.
	Password string `koanf:"password" secret:"true" usage:"password to log in with"`
	// PasswordFile is the path of a file that holds the password and nothing else but white space around it. It
	// excludes Password. Default none.
	PasswordFile string `koanf:"password_file" usage:"path of a file with the password, read again for each connection"`
	// TLS is used where it is enabled or any of its files is named.
	TLS TLSConfig `koanf:"tls"`
}

// TLSConfig names PEM files.
type TLSConfig struct {
	// Enabled encrypts the connection. Default false.
	Enabled bool `koanf:"enabled" usage:"connect with TLS, also without files"`
	// CA holds the authorities that sign the servers' certificates. Default: the system's.
	CA string `koanf:"ca" usage:"PEM file of the authorities that sign the servers' certificates"`
	// Cert and Key are this client's; both or neither.
	Cert string `koanf:"cert" usage:"PEM file of this client's certificate"`
	Key  string `koanf:"key" usage:"PEM file of its key"`
	// ServerName is the name that a server's certificate must have. Default: the host of its address.
	ServerName string `koanf:"server_name" usage:"name in the servers' certificates; default the host of each address"`
}

func (c TLSConfig) on() bool { return c.Enabled || c.CA != "" || c.Cert != "" || c.Key != "" }

// DefaultConfig is a server on this machine.
func DefaultConfig() Config { return Config{Addrs: []string{"127.0.0.1:6379"}} }

// Validate tells what is wrong.
func (c Config) Validate() []settings.Problem {
	var all []settings.Problem
	check := func(ok bool, path, what string) {
		if !ok {
			all = append(all, settings.Problem{Path: path, What: what})
		}
	}
	check(len(c.Addrs) > 0, "addrs", "no address of a Redis server")
	check(len(c.Addrs) < 2 || c.Cluster, "addrs", fmt.Sprintf("%d addresses, but cluster is off", len(c.Addrs)))
	check(c.Password == "" || c.PasswordFile == "", "password_file", "a password is given as well: choose one")
	check((c.TLS.Cert == "") == (c.TLS.Key == ""), "tls.cert", "cert and key must both be given, or neither")
	check(c.TLS.ServerName == "" || c.TLS.on(), "tls.server_name", "TLS is not on: set tls.enabled or name its files")
	return all
}

// Times of a connection: the loop stands still during a call, so a server that does
// not answer must be given up soon.
const (
	dialTimeout = 500 * time.Millisecond
	ioTimeout   = time.Second
	// connLifetime is how long a connection lasts: as long a password that was replaced may still be in use.
	connLifetime = time.Hour
	keepAlive    = time.Minute
)

// passwordBytesMax bounds a password file.
const passwordBytesMax = 4096

// Connect returns a client, which connects when it is first used. The caller closes
// it. It fails where a file that c names cannot be used. The library's own log is switched off: it
// knows no slog and repeats itself, and every error it tells of comes back from a call too.
func Connect(c Config) (redis.UniversalClient, error) {
	if _, err := c.password(); err != nil {
		return nil, err
	}
	if _, err := c.TLS.load(); err != nil {
		return nil, err
	}
	logging.Disable()
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: c.Addrs, IsClusterMode: c.Cluster,
		ClientName: "yard-matching", DisableIdentity: true,
		DialTimeout: dialTimeout, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout, ConnMaxLifetime: connLifetime,
		// No call is repeated behind our back: a second Pop would lose what the first took.
		MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
		Dialer: c.dial,
		CredentialsProviderContext: func(context.Context) (string, string, error) {
			password, err := c.password()
			return c.Username, password, err
		},
	}), nil
}

// dial makes a connection, with the certificates as they are now.
func (c Config) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	plain := &net.Dialer{KeepAlive: keepAlive}
	if !c.TLS.on() {
		return plain.DialContext(ctx, network, addr)
	}
	config, err := c.TLS.load()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: plain, Config: config}).DialContext(ctx, network, addr)
}

// password is the one to log in with now. Its errors do not tell it.
func (c Config) password() (string, error) {
	if c.PasswordFile == "" {
		return c.Password, nil
	}
	text, err := os.ReadFile(c.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("redis.password_file: %w", err)
	}
	password := strings.TrimSpace(string(text))
	if password == "" || len(text) > passwordBytesMax {
		return "", fmt.Errorf("redis.password_file: %s holds %d bytes, want a password and at most %d", c.PasswordFile, len(text), passwordBytesMax)
	}
	return password, nil
}

// load reads the files; nil where TLS is off.
func (c TLSConfig) load() (*tls.Config, error) {
	if !c.on() {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if c.CA != "" {
		text, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("redis.tls.ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("redis.tls.ca: %s holds no PEM certificate", c.CA)
		}
	}
	if c.Cert != "" || c.Key != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("redis.tls.cert and key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
