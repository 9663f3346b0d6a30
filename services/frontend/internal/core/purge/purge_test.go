package purge

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// passes counts those of a purge, each of which has so many unread messages when it begins and cancels what is said.
func passes(t *testing.T, unread int64, cancels func(pass int) (cancelled, undecided int64)) (n int) {
	p := Passes{Before: ids.NewTaskID(time.Unix(1_700_000_000, 0), 1, 7)}
	for {
		n++
		p.Unread(unread)
		p.Took(cancels(n))
		next := p.Next("", false)
		if next == "" {
			return n
		}
		got, at, ok := Parse(next)
		testkit.Equal(t, "the next pass", ok && at == "" && got.Before == p.Before && got.Later && !got.Busy && !got.Again, true)
		p = got
	}
}

// A purge ends after some passes that had nothing to cancel: few if all was read, more if it was not, or if tasks are left undecided.
func TestAPurgeEndsWhenNothingIsLeft(t *testing.T) {
	none := func(int) (int64, int64) { return 0, 0 }
	testkit.Equal(t, "all is read", passes(t, 0, none), IdleMin)
	testkit.Equal(t, "some is unread", passes(t, 3, none), IdleMax)
	testkit.Equal(t, "some is undecided", passes(t, 0, func(int) (int64, int64) { return 0, 1 }), IdleMax)
	testkit.Equal(t, "the third pass found some", passes(t, 0, func(pass int) (int64, int64) {
		if pass == 3 {
			return 1, 0
		}
		return 0, 0
	}), 3+IdleMin)
}

// A step in the middle of a pass keeps what its pass has done; a preview is one pass.
func TestAStepGoesOnInItsPass(t *testing.T) {
	p := Passes{Before: ids.NewTaskID(time.Unix(1_700_000_000, 0), 1, 7), Idle: 4, Later: true}
	p.Took(1, 0)
	got, at, ok := Parse(p.Next("there", false))
	testkit.Equal(t, "read", ok, true)
	testkit.Equal(t, "at", at, "there")
	testkit.Equal(t, "the pass", got, p)
	testkit.Equal(t, "a preview goes on in its pass", p.Next("there", true), p.Cursor("there"))
	testkit.Equal(t, "a preview", p.Next("", true), "")
	for _, cursor := range []string{"", "x", p.Before.String(), p.Before.String() + "..0.0.0.-1", p.Before.String() + "..0.0.0.x", "x..0.0.0.1"} {
		if _, _, ok := Parse(cursor); ok {
			t.Errorf("%q is read", cursor)
		}
	}
}
