package pace

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestAProcessIsSlowUntilItIsUsualAgain(t *testing.T) {
	testkit.Equal(t, "usual", Of(time.Second), time.Second)
	usual := Slow(60)
	testkit.Equal(t, "slow", Of(time.Second), time.Minute)
	usual()
	testkit.Equal(t, "usual again", Of(time.Second), time.Second)
}

func TestBeatsComeAtThePaceOrAtTheUsualOne(t *testing.T) {
	defer Slow(10)()
	synctest.Test(t, func(t *testing.T) {
		b := NewBeats(time.Second)
		time.Sleep(time.Second)
		testkit.Equal(t, "due at the pace", b.Due(false), false)
		testkit.Equal(t, "the next one at the pace", b.In(false), 9*time.Second)
		testkit.Equal(t, "due as usual", b.Due(true), true)
		testkit.Equal(t, "the next one", b.In(true), time.Second)
	})
}
