package login

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"
)

// sessionsMax is how many sessions there are, sessionsOfUser how many of one user. The oldest one ends for a new one.
const sessionsMax, sessionsOfUser = 10_000, 20

// sessions are the people who are logged in, in memory: after a restart they log in again.
type sessions struct {
	lasts time.Duration

	mu sync.Mutex
	// of are by the digest of what their cookie has.
	of map[[sha256.Size]byte]session
}

type session struct {
	who   Identity
	until time.Time
}

func newSessions(lasts time.Duration) *sessions {
	return &sessions{lasts: lasts, of: map[[sha256.Size]byte]session{}}
}

// begin returns the cookie of a new session.
func (s *sessions) begin(who Identity, now time.Time) (cookie string) {
	cookie = rand.Text() + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.of, func(_ [sha256.Size]byte, one session) bool { return !now.Before(one.until) })
	s.leaveRoom(sessionsOfUser, func(one session) bool { return one.who.Name == who.Name })
	s.leaveRoom(sessionsMax, func(session) bool { return true })
	s.of[sha256.Sum256([]byte(cookie))] = session{who, now.Add(s.lasts)}
	return cookie
}

// leaveRoom ends the oldest session of those that count, if there are as many as there may be.
func (s *sessions) leaveRoom(most int, counts func(session) bool) {
	var keys [][sha256.Size]byte
	for key, one := range s.of {
		if counts(one) {
			keys = append(keys, key)
		}
	}
	if len(keys) < most {
		return
	}
	delete(s.of, slices.MinFunc(keys, func(a, b [sha256.Size]byte) int {
		return cmp.Compare(s.of[a].until.UnixNano(), s.of[b].until.UnixNano())
	}))
}

// who has a session; false: it has ended, or there was none.
func (s *sessions) who(cookie string, now time.Time) (Identity, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.of[sha256.Sum256([]byte(cookie))]
	return one.who, ok && now.Before(one.until)
}

// end ends a session.
func (s *sessions) end(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, sha256.Sum256([]byte(cookie)))
}
