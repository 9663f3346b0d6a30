package clock

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// server is the time of a server whose clock is ahead of ours by some, as of since.
func server(ahead, since time.Duration) time.Time {
	return time.UnixMilli(1_800_000_000_000).Add(ahead + since)
}

// R23, R44: whatever the ways of questions and answers, the estimate is never ahead of the server's time, not behind it
// by more than the quickest answer took, and the skew is right within what it says.
func TestR44_TheServersTimeIsNeverRunAheadOf(t *testing.T) {
	duration := func(most time.Duration) *rapid.Generator[time.Duration] {
		return rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, "d")) })
	}
	rapid.Check(t, func(t *rapid.T) {
		var e Estimate
		ahead, now := duration(2*time.Hour).Draw(t, "ahead")-time.Hour, time.Duration(0)
		var took []time.Duration
		for range rapid.IntRange(1, 3*looksKept).Draw(t, "looks") {
			now += duration(3*time.Second).Draw(t, "pause")
			asked := now
			stamped := asked + duration(time.Second).Draw(t, "there")
			now = stamped + duration(time.Second).Draw(t, "back")
			e.Learn(server(ahead, stamped), asked, now)
			took = append(took, now-asked)
			if len(e.looks) > looksKept {
				t.Fatalf("%d looks are kept", len(e.looks))
			}
			quickest := took[max(0, len(took)-looksKept)]
			for _, d := range took[max(0, len(took)-looksKept):] {
				quickest = min(quickest, d)
			}
			if late := server(ahead, now).Sub(e.At(now)); late < 0 || late > quickest {
				t.Fatalf("it is late by %v; the quickest answer took %v", late, quickest)
			}
			s := e.Skew(server(0, now), now) // our own clock has the right time, the server's is ahead
			if off := (s.Ahead + ahead).Abs(); off > s.Within || s.Within > quickest {
				t.Fatalf("it says %v give or take %v, it is %v", s.Ahead, s.Within, -ahead)
			}
		}
	})
}

// R23: where the server's clock is set, either way, the first look after that counts.
func TestR23_AServerWhoseClockIsSetIsBelieved(t *testing.T) {
	var e Estimate
	now := time.Duration(0)
	look := func(ahead time.Duration) {
		now += 2 * time.Second
		e.Learn(server(ahead, now), now, now+10*time.Millisecond)
	}
	for _, ahead := range []time.Duration{0, time.Hour, 0, -time.Minute, -time.Minute - time.Second} {
		for range looksKept {
			look(ahead)
		}
		look(ahead)
		if got, want := e.At(now), server(ahead, now); got.After(want) || want.Sub(got) > 10*time.Millisecond {
			t.Errorf("%v ahead: it says %v, want %v", ahead, got, want)
		}
	}
	look(-time.Hour)
	if got := e.At(now); got.After(server(-time.Hour, now)) {
		t.Errorf("after one look at a clock that was set back it says %v", got)
	}
}

// A server's clock that is set, forward or back, is what the skew is measured by from the next look on, even if its
// answer is slower than those before.
func TestTheSkewFollowsAServersClockThatIsSet(t *testing.T) {
	for _, by := range []time.Duration{time.Minute, -time.Minute} {
		var e Estimate
		start := time.Unix(1_000_000, 0)
		for i := range looksKept {
			at := time.Duration(i) * watchEvery
			e.Learn(start.Add(at), at, at+time.Millisecond)
		}
		at := looksKept * watchEvery
		e.Learn(start.Add(at+by), at, at+2*time.Millisecond)
		if s := e.Skew(start.Add(at), at); (s.Ahead + by).Abs() > 10*time.Millisecond {
			t.Errorf("set by %v: the node is %v ahead, within %v", by, s.Ahead, s.Within)
		}
	}
}

// A clock that may be right is not said to be off.
func TestR44_ASlowAnswerIsNoSkew(t *testing.T) {
	for _, c := range []struct{ ahead, within, least time.Duration }{
		{3 * time.Second, time.Second, 2 * time.Second}, {-3 * time.Second, time.Second, 2 * time.Second}, {time.Second, 2 * time.Second, 0},
	} {
		if got := (Skew{c.ahead, c.within}).Least(); got != c.least {
			t.Errorf("%v give or take %v is %v off at least, want %v", c.ahead, c.within, got, c.least)
		}
	}
}
