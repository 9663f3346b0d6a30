package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

// Frontends hear once what a poll has left, and then each second as before.
func TestFrontendsHearOnceWhatAPollHasLeft(t *testing.T) {
	w := idleWorld(t)
	w.readyAt(0, "a", 30)
	w.run(1600 * ms)
	w.poll("p", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 3, For: time.Second})
	w.run(100 * ms)
	before := len(w.loads)
	w.run(2 * time.Second)
	if n := len(w.loads) - before; n < 1 || n > 2 {
		t.Errorf("in two seconds they hear %d times: %v", n, w.loads[before:])
	}
}
