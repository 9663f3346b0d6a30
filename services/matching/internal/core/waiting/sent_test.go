package waiting

import (
	"math"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// No answer has the number 0: it stands for none.
func TestAnswersHaveNumbers(t *testing.T) {
	r := newRoom(10)
	r.Waiting = New[*list](Config{PollsMax: 10, AnswerBytesMax: 100}, math.MaxUint64-1, 0, r)
	r.turn(0)
	for _, want := range []uint64{math.MaxUint64, 1} {
		r.Grant(r.add(Poll{Max: 1, For: time.Minute}), r.grant(1))
		r.end()
		testkit.Equal(t, "number", r.out.Answers[len(r.out.Answers)-1].ID, want)
	}
}

// An answer is proven by a round trip to the server that began long enough after it, unless the shard was stopped meanwhile. It is handed back once.
func TestAnAnswerIsProven(t *testing.T) {
	for stop, received := range map[time.Duration]bool{grab.HeardAfter: true, StoppedAfter: false} {
		r := newRoom(10)
		r.Grant(r.add(Poll{Max: 1, For: time.Minute, ReplyTo: "inbox"}), r.grant(1))
		r.end()
		id := r.out.Answers[0].ID
		r.turn(stop)
		r.Prove(stop)
		r.Confirm()
		testkit.Equal(t, "is received", !r.UnderWay(), received)
		r.Bounce(id)
		testkit.Equal(t, "handed back", r.back, 1)
		testkit.Equal(t, "which confirms it", r.confirms, !received)
		r.GivenUp("inbox", "d")
		testkit.Equal(t, "handed back once", r.back, 1)
	}
}
