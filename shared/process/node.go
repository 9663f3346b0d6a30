package process

import (
	"crypto/rand"
	"os"
	"strconv"
	"strings"
)

// Limits of a node's name: what fits into a NATS subject token and is readable.
const (
	hostBytesMax  = 40
	nodeSaltBytes = 4
)

// NodeName makes a name that no other live process has: host name, process id,
// and a random part for machines that share both, as containers do.
func NodeName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "node"
	}
	host = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		default:
			return '-'
		}
	}, host)
	if len(host) > hostBytesMax {
		host = host[:hostBytesMax]
	}
	return host + "-" + strconv.Itoa(os.Getpid()) + "-" + strings.ToLower(rand.Text()[:nodeSaltBytes])
}
