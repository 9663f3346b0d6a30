package redistable

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/yardmaster-io/yardmaster/shared/settings"
)

// Config says how to reach Redis.
type Config struct {
	// Addrs are host:port of the server, or of some nodes of a cluster. Default
	// 127.0.0.1:6379. Wrong ones leave limited types and backlogs standing until
	// they are right.
	Addrs []string `koanf:"addrs" usage:"host:port of the Redis server, or of nodes of the cluster"`
	// Cluster says that the addresses are of a Redis Cluster. Default false.
	Cluster bool `koanf:"cluster" usage:"the addresses are nodes of a Redis Cluster"`
	// Username and Password log in. Default none.
	Username string `koanf:"username" usage:"user to log in as"`
	Password string `koanf:"password" secret:"true" usage:"password to log in with"`
	// TLS encrypts the connection and checks the server's name. Default false.
	TLS bool `koanf:"tls" usage:"connect with TLS"`
}

// DefaultConfig is a server on this machine.
func DefaultConfig() Config { return Config{Addrs: []string{"127.0.0.1:6379"}} }

// Validate tells what is wrong.
func (c Config) Validate() []settings.Problem {
	switch {
	case len(c.Addrs) == 0:
		return []settings.Problem{{Path: "addrs", What: "no address of a Redis server"}}
	case len(c.Addrs) > 1 && !c.Cluster:
		return []settings.Problem{{Path: "addrs", What: fmt.Sprintf("%d addresses, but cluster is off", len(c.Addrs))}}
	}
	return nil
}

// Times of a connection: the loop stands still during a call, so a server that does
// not answer must be given up soon.
const (
	dialTimeout = 500 * time.Millisecond
	ioTimeout   = time.Second
)

// Connect returns a client, which connects when it is first used. The caller closes
// it. The library's own log is switched off: it knows no slog and repeats itself,
// and every error it tells of comes back from a call too.
func Connect(c Config) redis.UniversalClient {
	logging.Disable()
	options := &redis.UniversalOptions{
		Addrs: c.Addrs, IsClusterMode: c.Cluster, Username: c.Username, Password: c.Password,
		ClientName: "yard-matching", DisableIdentity: true,
		DialTimeout: dialTimeout, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout,
		// No call is repeated behind our back: a second Pop would lose what the first took.
		MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
	}
	if c.TLS {
		options.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return redis.NewUniversalClient(options)
}
