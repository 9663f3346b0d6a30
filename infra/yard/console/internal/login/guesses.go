package login

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"sync"
	"time"
)

// Limits of wrong passwords: how many are checked at once after a rest, and how many of them come back in a time.
const (
	userGuesses, userRecovers       = 10, 10 * time.Second
	addressGuesses, addressRecovers = 30, 2 * time.Second
	// guessSlots is how many counters there are of each kind: names or addresses that share one share its limit, so memory is bounded.
	guessSlots = 1 << 16
)

// guesses count wrong passwords of one kind of sender, and forget them with time.
type guesses struct {
	most     int
	recovers time.Duration

	mu sync.Mutex
	// free is for each slot when its last wrong password is forgotten, Unix ns.
	free [guessSlots]int64
}

// wait is how long a sender has to wait until another password is checked; 0 = it is checked now.
func (g *guesses) wait(slot int, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, time.Duration(g.free[slot]-now.UnixNano())-time.Duration(g.most-1)*g.recovers)
}

// wrong counts a wrong password.
func (g *guesses) wrong(slot int, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free[slot] = max(g.free[slot], now.UnixNano()) + int64(g.recovers)
}

// slotOf is the slot of a sender, by a digest with a secret key.
func slotOf(digest [sha256.Size]byte) int {
	return int(binary.BigEndian.Uint32(digest[:]) % guessSlots)
}

// network is the part of an address that one sender can have: all of IPv4, 64 bits of IPv6.
func network(remote string) string {
	address, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	return networkOf(address.Addr())
}

func networkOf(address netip.Addr) string {
	ip := address.Unmap()
	if ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return ip.String()
	}
	return prefix.String()
}
