package login

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// Limits of logins by password. A check of a hash takes tens of milliseconds of a processor on purpose.
const (
	// checksMax is how many hashes are checked at once; more requests are refused, and try again after checkWait.
	checksMax, checkWait = 4, time.Second
	// knownMax is how many right passwords are remembered.
	knownMax = 1000
)

// Password lets in the users of a file by HTTP basic authentication. Wrong passwords are slowed down, by user name and by address; a password that was right
// since the console started is not checked again, so its user comes in all the same.
type Password struct {
	users   Users
	proxies Proxies
	secret  []byte
	checks  chan struct{}
	// byUser and byAddress count wrong passwords.
	byUser, byAddress guesses
	// slowest is the hash that takes the longest to check. It is checked for an unknown name, which so takes as long as a wrong password.
	slowest []byte

	mu sync.Mutex
	// known are keyed digests of names and passwords that were right.
	known map[[sha256.Size]byte]bool
}

// NewPassword is a login with the users' passwords, perhaps behind proxies.
func NewPassword(users Users, proxies Proxies) *Password {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // it never fails
	p := &Password{users: users, proxies: proxies, secret: secret, checks: make(chan struct{}, checksMax), known: map[[sha256.Size]byte]bool{}}
	p.byUser.most, p.byUser.recovers, p.byAddress.most, p.byAddress.recovers = userGuesses, userRecovers, addressGuesses, addressRecovers
	most := -1
	for _, one := range users {
		if cost, err := bcrypt.Cost(one.hash); err == nil && cost > most {
			p.slowest, most = one.hash, cost
		}
	}
	return p
}

// Identify implements Way.
func (p *Password) Identify(r *http.Request) (Identity, error) {
	refused := &Refused{Status: http.StatusUnauthorized, Challenge: `Basic realm="Yardmaster", charset="UTF-8"`, Reason: "log in with your name and password"}
	name, password, ok := r.BasicAuth()
	if !ok {
		return Identity{}, refused
	}
	one := p.users[name]
	digest := p.digest(name, password)
	if p.remembers(digest) {
		return one.Identity, nil
	}
	user, address, now := slotOf(p.digest("user", name)), slotOf(p.digest("address", p.proxies.sender(r))), time.Now()
	if wait := max(p.byUser.wait(user, now), p.byAddress.wait(address, now)); wait > 0 {
		return Identity{}, &Refused{Status: http.StatusTooManyRequests, RetryAfter: wait, Reason: "too many wrong passwords for this user, or from this address: try again later"}
	}
	select {
	case p.checks <- struct{}{}:
		defer func() { <-p.checks }()
	default:
		return Identity{}, &Refused{Status: http.StatusTooManyRequests, RetryAfter: checkWait, Reason: "too many logins at once: try again"}
	}
	hash := one.hash
	if hash == nil {
		hash = p.slowest
	}
	if err := bcrypt.CompareHashAndPassword(hash, []byte(password)); err != nil || one.hash == nil {
		p.byUser.wrong(user, now)
		p.byAddress.wrong(address, now)
		return Identity{}, refused
	}
	p.remember(digest)
	return one.Identity, nil
}

func (p *Password) digest(name, password string) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, p.secret)
	_, _ = mac.Write([]byte(name + "\x00" + password)) // it never fails
	copy(sum[:], mac.Sum(nil))
	return sum
}

func (p *Password) remembers(digest [sha256.Size]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[digest]
}

func (p *Password) remember(digest [sha256.Size]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= knownMax {
		clear(p.known)
	}
	p.known[digest] = true
}
