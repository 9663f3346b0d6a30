package cluster

import (
	"sync"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// ports hands out addresses to the clusters of one test package, each only once: they
// run beside each other, and an address' owner may not have been started yet.
type ports struct {
	mu    sync.Mutex
	taken map[string]bool
}

// free finds an address on loopback that no subscriber listens on.
func (p *ports) free(tb testing.TB) string {
	tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		addr, err := testkit.FreeAddr()
		if err != nil {
			tb.Fatal(err)
		}
		if !p.taken[addr] {
			p.taken[addr] = true
			return addr
		}
	}
}
