package cluster

import (
	"os"
	"path/filepath"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// RedisPassword is that of WithSecuredRedis.
const RedisPassword = "a-password-that-no-log-has"

// WithSecuredRedis has matching reach Redis over TLS, with a certificate, as a user who may do no more than
// topology.RedisACL allows. Redis must not be restarted.
func WithSecuredRedis() Option {
	return func(s *shape) { s.redisSecured = true }
}

// redisFlags tell matching how to reach the one server.
func (c *Cluster) redisFlags() []string {
	c.tb.Helper()
	if !c.shape.redisSecured {
		return []string{"--redis.addrs", c.Redis.Addr}
	}
	if c.redisSecured == nil {
		files := testkit.NewCertificates(c.tb, c.dir)
		password := filepath.Join(c.dir, "redis-password")
		c.must(os.WriteFile(password, []byte(RedisPassword), 0o600))
		c.Redis.Login(c.tb, "matching", RedisPassword)
		c.redisSecured = []string{
			"--redis.addrs", c.Redis.Encrypt(c.tb, files), "--redis.username", "matching", "--redis.password-file", password,
			"--redis.tls.ca", files.CA, "--redis.tls.cert", files.Cert, "--redis.tls.key", files.Key,
		}
	}
	return c.redisSecured
}
