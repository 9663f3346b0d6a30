package tries

import (
	"testing"
	"time"
)

// TestTheAgeOfATry: who counts its tries, and was heard by no other server, gets the server's clock.
func TestTheAgeOfATry(t *testing.T) {
	for _, c := range []struct {
		age   time.Duration
		tried int32
		bad   Age
		alone bool
	}{
		{-AheadMax, 1, Fine, true},
		{-AheadMax - 1, 2, Ahead, false},
		{-AheadMax - ClocksApart - 1, 2, Ahead, true},
		{AppendUntil + 1, 1, FirstOld, true},
		{AppendUntil + 1, 0, Fine, true},
		{RepeatMax, 7, Fine, false},
		{RepeatMax + 1, 7, Forgotten, false},
	} {
		if bad, alone := Check(c.age, c.tried); bad != c.bad || alone != c.alone {
			t.Errorf("try %d of age %v: %d, alone %v; want %d, %v", c.tried, c.age, bad, alone, c.bad, c.alone)
		}
	}
}

// TestCopiesSince: an id whose time is further ahead than clocks may be says nothing.
func TestCopiesSince(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	if since, known := CopiesSince(now.Add(AheadMax), now); !known || since != now.Add(-ClocksApart).UnixMilli() {
		t.Errorf("since %d, known %v", since, known)
	}
	if _, known := CopiesSince(now.Add(AheadMax+1), now); known {
		t.Error("its age is known")
	}
}

// TestDates: only a first try may be alone, and a second one that comes while it may be is too early.
func TestDates(t *testing.T) {
	made := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		age   time.Duration
		tried int32
		alone bool
		early time.Duration
	}{
		{time.Second, 1, true, 0},
		{time.Second, 2, false, FirstTryFor - time.Second},
		{FirstTryFor, 2, false, 0},
		{time.Second, 0, false, 0},
		{-AheadMax - 1, 1, false, 0},
	} {
		if _, until, early := Dates(made, made.Add(c.age), c.tried); until > 0 != c.alone || early != c.early {
			t.Errorf("try %d of age %v: alone until %d, early by %v", c.tried, c.age, until, early)
		}
	}
}
