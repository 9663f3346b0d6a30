package testkit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Login makes a user who may do what topology.RedisACL says, or gives the user another password. It lasts until the
// server stops.
func (r *Redis) Login(tb testing.TB, user, password string) {
	tb.Helper()
	digest := sha256.Sum256([]byte(password))
	_, rules, _ := strings.Cut(topology.RedisACL(user, hex.EncodeToString(digest[:])), " "+user+" ")
	r.must(tb, fmt.Sprintf("ACL SETUSER %s reset %s", user, rules))
}

// Encrypt opens a port with TLS that wants certificates, or changes them, and returns its address. It lasts until the
// server stops.
func (r *Redis) Encrypt(tb testing.TB, c Certificates) (addr string) {
	tb.Helper()
	port := FreePort(tb)
	r.must(tb, fmt.Sprintf("CONFIG SET tls-cert-file %s tls-key-file %s tls-ca-cert-file %s tls-auth-clients yes tls-port %d", c.Cert, c.Key, c.CA, port))
	return addrOf(port)
}
