package api

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAnsweredPollsAreToldTogether: soon, in full messages at once, and each once.
func TestAnsweredPollsAreToldTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := map[string][][]uint64{}
		a := newAnswered(func(to string, ids []uint64) { told[to] = append(told[to], slices.Clone(ids)) })
		var numbers []uint64
		for id := range uint64(answeredMax + 2) { // all of one inbox: its polls are distinguished
			numbers = append(numbers, a.expect(&rpcv1.Poll{ReplyTo: "inbox", Id: id, AnsweredTo: "f"}))
		}
		other := a.expect(&rpcv1.Poll{ReplyTo: "inbox", Id: 7, AnsweredTo: "g"})
		testkit.Equal(t, "a poll that no one asks for has the number", a.expect(&rpcv1.Poll{ReplyTo: "inbox", Id: 8}), 0)
		for _, n := range numbers[:answeredMax+1] {
			a.done(n)
			a.done(n)
		}
		a.done(other)
		a.done(0)
		a.mu.Lock() // it tells while it is locked
		if len(told["f"]) != 1 || len(told["f"][0]) != answeredMax || len(told["g"]) != 0 {
			t.Errorf("reported at once: %d messages to f, %d to g", len(told["f"]), len(told["g"]))
		}
		a.mu.Unlock()
		time.Sleep(answeredWithin)
		synctest.Wait()
		a.mu.Lock()
		if len(told["f"]) != 2 || !slices.Equal(told["f"][1], []uint64{answeredMax}) || len(told["g"]) != 1 || !slices.Equal(told["g"][0], []uint64{7}) {
			t.Errorf("reported soon: %v to f, %v to g", told["f"][1:], told["g"])
		}
		a.mu.Unlock()
		a.flush()
		time.Sleep(time.Second)
		testkit.Equal(t, "messages in all", len(told["f"])+len(told["g"]), 3)
		testkit.Equal(t, "polls are open", len(a.open), 1)
	})
}
