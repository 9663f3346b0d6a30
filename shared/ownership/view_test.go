package ownership

import (
	"slices"
	"testing"
	"time"
)

func TestView(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }
	v := newView("me", 3*time.Second)
	step := func(ms int, what string, want ...string) {
		t.Helper()
		v.expire(at(ms))
		if got := v.nodes(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	step(0, "nobody was heard", "me")
	v.heard("b", Announcement{}, at(0))
	v.heard("c", Announcement{}, at(0))
	v.heard("me", Announcement{}, at(10))
	step(10, "all were heard", "b", "c", "me")
	for ms := 1010; ms <= 4010; ms += 1000 {
		v.heard("b", Announcement{}, at(ms))
		v.heard("me", Announcement{}, at(ms))
	}
	step(4010, "c was silent for too long", "b", "me")
	v.left("b")
	v.left("me")
	step(4010, "b left", "me")

	v.heard("b", Announcement{}, at(5010))
	v.heard("me", Announcement{}, at(5010))
	step(60_000, "deaf: nobody is given up", "b", "me")
	v.heard("me", Announcement{}, at(60_010))
	step(60_010, "hearing again: b gets another chance", "b", "me")
	for ms := 61_010; ms <= 64_010; ms += 1000 {
		v.heard("me", Announcement{}, at(ms))
	}
	step(64_010, "b did not use it", "me")
}
