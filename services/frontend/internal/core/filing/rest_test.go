package filing

import (
	"testing"
	"time"
)

// The rest grows from nothing for one event to RestShare times what the message took, and is bounded.
func TestTheRestGrowsWithItsCompany(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		n          int
		took, rest time.Duration
	}{
		{1, 10 * ms, 0},
		{1, time.Hour, 0},
		{2, 8 * ms, ms},
		{13, 4 * ms, 6 * ms},
		{25, 4 * ms, 12 * ms},
		{1000, 4 * ms, 12 * ms},
		{25, 7 * ms, 20 * ms},
		{1000, time.Hour, 20 * ms},
	} {
		if rest := Rest(c.n, c.took); rest != c.rest {
			t.Errorf("after %d events in %v it rests for %v, want %v", c.n, c.took, rest, c.rest)
		}
	}
	if rest := Rest(0, time.Second); rest > 0 {
		t.Errorf("after nothing it rests for %v", rest)
	}
}
