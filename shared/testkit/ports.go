package testkit

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the range that the kernel hands out by itself: a port
// must still be free when its server comes back, and not be some client's.
const (
	portFirst, portLast = 12_000, 29_999
	portTries           = 100
)

// FreeAddr finds an address on loopback that no subscriber listens on. Two calls at once
// may find the same one, as rarely as two dice of 18,000 sides agree.
func FreeAddr() (string, error) {
	for range portTries {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(portFirst+rand.IntN(portLast-portFirst+1)))
		if l, err := net.Listen("tcp", addr); err == nil {
			return addr, l.Close()
		}
	}
	return "", errors.New("no free port was found")
}

// FreePort is the port of FreeAddr.
func FreePort() (int, error) {
	addr, err := FreeAddr()
	if err != nil {
		return 0, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}
