package cluster

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports are taken from below the range that the kernel hands out by itself. A
// port must still be free when its owner comes back, and not be some client's.
const (
	portFirst, portLast = 12_000, 29_999
	portTries           = 100
)

// ports hands out ports to the clusters of one test package, each only once: they
// run beside each other, and a port's owner may not have been started yet.
type ports struct {
	mu    sync.Mutex
	taken map[int]bool
}

// free finds an address on loopback that nobody listens on.
func (p *ports) free(tb testing.TB) string {
	tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for range portTries {
		port := portFirst + rand.IntN(portLast-portFirst+1)
		if p.taken[port] {
			continue
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			_ = l.Close() // nothing was sent on it
			p.taken[port] = true
			return addr
		}
	}
	tb.Fatal("no free port was found")
	return ""
}
