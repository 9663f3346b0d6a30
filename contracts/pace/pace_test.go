package pace

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

func TestAProcessIsSlowUntilItIsUsualAgain(t *testing.T) {
	checktest.Equal(t, "usual", Of(time.Second), time.Second)
	usual := Slow(60)
	checktest.Equal(t, "slow", Of(time.Second), time.Minute)
	checktest.Equal(t, "the other way", Usual(time.Minute), time.Second)
	usual()
	checktest.Equal(t, "usual again", Of(time.Second), time.Second)
	checktest.Equal(t, "the other way again", Usual(time.Minute), time.Minute)
}

func TestBeatsComeAtThePaceOrAtTheUsualOne(t *testing.T) {
	defer Slow(10)()
	synctest.Test(t, func(t *testing.T) {
		b := NewBeats(time.Second)
		time.Sleep(time.Second)
		checktest.Equal(t, "due at the pace", b.Due(false), false)
		checktest.Equal(t, "the next one at the pace", b.In(false), 9*time.Second)
		checktest.Equal(t, "due as usual", b.Due(true), true)
		checktest.Equal(t, "the next one", b.In(true), time.Second)
	})
}
