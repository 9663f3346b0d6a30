package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports are taken from below the range that the kernel hands out by itself: a port
// must still be free when its server comes back, and not be some client's.
const (
	portFirst, portLast = 12_000, 29_999
	portTries           = 100
)

// takenPorts are those that this process has handed out, each once: the owner of a port may
// not have been started yet.
var takenPorts sync.Map

// FreePort finds a port on loopback that no process listens on.
func FreePort(tb testing.TB) int {
	tb.Helper()
	for range portTries {
		port := portFirst + rand.IntN(portLast-portFirst+1)
		if _, taken := takenPorts.LoadOrStore(port, true); taken {
			continue
		}
		if l, err := net.Listen("tcp", addrOf(port)); err == nil {
			if err := l.Close(); err != nil {
				tb.Fatal(err)
			}
			return port
		}
	}
	tb.Fatal("no free port was found")
	return 0
}

// FreeAddr is the address of a FreePort.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	return addrOf(FreePort(tb))
}

func addrOf(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
