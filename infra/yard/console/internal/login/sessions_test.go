package login

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// TestASessionEnds: with its time, with a logout, and when its user has too many. Sessions of others go on.
func TestASessionEnds(t *testing.T) {
	s := newSessions(time.Hour)
	anns, bobs := s.begin(Identity{Name: "ann"}, noon), s.begin(Identity{Name: "bob"}, noon)
	has := func(cookie string, at time.Time, want bool) {
		t.Helper()
		if _, got := s.who(cookie, at); got != want {
			t.Errorf("there is a session: %v", got)
		}
	}
	has(anns, noon.Add(time.Hour-1), true)
	has(anns, noon.Add(time.Hour), false)
	has("", noon, false)
	has(anns+"x", noon, false)
	s.end(anns)
	has(anns, noon, false)
	has(bobs, noon, true)

	first := s.begin(Identity{Name: "ann"}, noon)
	for i := range sessionsOfUser {
		has(first, noon, true)
		s.begin(Identity{Name: "ann"}, noon.Add(time.Duration(i+1)))
	}
	has(first, noon, false)
	has(bobs, noon, true)
}

// TestSessionsAreBounded: the oldest one ends for a new one.
func TestSessionsAreBounded(t *testing.T) {
	s := newSessions(time.Hour)
	first := s.begin(Identity{Name: "ann"}, noon)
	for i := range sessionsMax {
		s.of[[32]byte{byte(i), byte(i >> 8)}] = session{Identity{Name: fmt.Sprint(i)}, noon.Add(2 * time.Hour)}
	}
	s.begin(Identity{Name: "bob"}, noon)
	if _, there := s.who(first, noon); there || len(s.of) > sessionsMax+1 {
		t.Errorf("%d sessions; the first one is there: %v", len(s.of), there)
	}
	s.begin(Identity{Name: "eve"}, noon.Add(2*time.Hour))
	testkit.Equal(t, "sessions when all have ended", len(s.of), 1)
}

// TestALoginLeadsToAPathOfTheConsole: never to another site, and not to a login again.
func TestALoginLeadsToAPathOfTheConsole(t *testing.T) {
	for target, want := range map[string]string{
		"/domains/shop/tasks?state=dead": "/domains/shop/tasks?state=dead", "/": "/", "": "/", "//evil.example": "/", "https://evil.example/": "/", "/\\evil.example": "/",
		"/\tevil": "/", "javascript:alert(1)": "/", "evil.example": "/", "/login?to=/": "/", "/%0d%0aSet-Cookie:x": "/%0d%0aSet-Cookie:x",
	} {
		testkit.Equal(t, target, ownPath(target), want)
	}
}
