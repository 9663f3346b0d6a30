package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// outcome completes an attempt for which slots are booked, or none are.
func (r *rig) outcome(t *testing.T, n uint64, booked bool) <-chan reply {
	t.Helper()
	id := ids.NewTaskID(time.UnixMilli(5), 0, n)
	token := rigTokens.Print(id, ids.Token{Nonce: ids.Nonce(n, booked)})
	return r.complete(t, &yardv1.Completion{TaskId: id.String(), Token: token})
}

// batches waits until nothing moves, and returns how many batches of events were sent.
func (r *rig) batches() int {
	synctest.Wait()
	return len(r.bus.sentEvents())
}

// decided answers the last batch that was sent, after a while.
func (r *rig) decided(t *testing.T, took time.Duration, events int) {
	t.Helper()
	synctest.Wait()
	time.Sleep(took)
	sent := r.bus.sentEvents()
	last := sent[len(sent)-1]
	testkit.MustEqual(t, "events were sent together", len(last.batch.Events), events)
	r.verdict(t, last, 0, events)
	synctest.Wait()
}

// rest has a message of n outcomes take a while.
func (r *rig) rest(t *testing.T, n int, took time.Duration) {
	t.Helper()
	var all []*yardv1.Completion
	for i := range n {
		all = append(all, completion(0, uint64(i)))
	}
	got := r.complete(t, all...)
	r.decided(t, took, n)
	verdicts(t, <-got)
}

// What comes behind a message of several outcomes gathers for a while, and goes together. Behind one alone no one waits.
func TestOutcomesRestAfterAMessageOfSeveral(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		n          int
		took, rest time.Duration
	}{{1, 10 * ms, 0}, {2, 8 * ms, ms}, {13, 4 * ms, 6 * ms}, {100, time.Second, 20 * ms}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, alone)
			r.rest(t, c.n, c.took)
			waiting := []<-chan reply{r.outcome(t, 1001, false)}
			if c.rest > 0 {
				time.Sleep(c.rest - 1)
				waiting = append(waiting, r.outcome(t, 1002, false))
				if r.batches() != 1 {
					t.Errorf("%d outcomes in %v: the next is sent too early", c.n, c.took)
				}
				time.Sleep(time.Nanosecond)
			}
			if r.batches() != 2 {
				t.Fatalf("%d outcomes in %v: the next waits for more than %v", c.n, c.took, c.rest)
			}
			r.decided(t, 0, len(waiting))
			for _, w := range waiting {
				verdicts(t, <-w)
			}
		})
	}
}

// A rest ends when the outcome of an attempt comes for which slots are booked, and does not begin where one waits:
// others wait for the slots. What has gathered goes along.
func TestARestEndsForABookedSlot(t *testing.T) {
	for name, during := range map[string]bool{"during the rest": true, "before it": false} {
		inBubble(t, name, func(t *testing.T) {
			r := newRig(t, alone)
			var plain, booked <-chan reply
			come := func() { plain, booked = r.outcome(t, 1001, false), r.outcome(t, 1002, true) }
			if during {
				r.rest(t, 100, time.Second)
				come()
			} else {
				first := r.complete(t, completion(0, 1), completion(0, 2), completion(0, 3))
				synctest.Wait()
				come()
				r.decided(t, time.Second, 3)
				verdicts(t, <-first)
			}
			testkit.MustEqual(t, "it rests", r.batches(), 2)
			r.decided(t, 0, 2)
			verdicts(t, <-plain)
			verdicts(t, <-booked)
		})
	}
}

// A sign of life frees no slot.
func TestAHeartbeatEndsNoRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, alone)
		r.rest(t, 100, time.Second)
		id := ids.NewTaskID(time.UnixMilli(5), 0, 1001)
		token := rigTokens.Print(id, ids.Token{Nonce: ids.Nonce(1001, true)})
		got := sent(t, r, r.Heartbeat, &yardv1.HeartbeatRequest{Tasks: []*yardv1.Beat{{TaskId: id.String(), Token: token}}})
		testkit.Equal(t, "it ends the rest", r.batches(), 1)
		time.Sleep(20 * time.Millisecond)
		r.decided(t, 0, 1)
		verdicts(t, <-got)
	})
}

// An outcome for which slots are booked ends no rest after its own message.
func TestWhatIsSentEndsNoRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, alone)
		waiting := []<-chan reply{r.outcome(t, 1, false)}
		synctest.Wait()
		for n := range uint64(100) {
			waiting = append(waiting, r.outcome(t, 100+n, n == 50))
		}
		r.decided(t, 0, 1)
		r.decided(t, time.Second, 100)
		waiting = append(waiting, r.outcome(t, 1001, false))
		testkit.MustEqual(t, "it does not rest", r.batches(), 2)
		time.Sleep(20 * time.Millisecond)
		r.decided(t, 0, 1)
		for _, w := range waiting {
			verdicts(t, <-w)
		}
	})
}

// What rests when the gateway stops is sent, and answered; what rests when it gives up is answered at once.
func TestWhatRestsIsAnsweredWhenTheGatewayStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, alone)
		stop, ended := r.started()
		r.rest(t, 100, time.Second)
		next := r.outcome(t, 1001, false)
		stop()
		time.Sleep(20 * time.Millisecond)
		r.decided(t, 0, 1)
		verdicts(t, <-next)
		testkit.Equal(t, "the end", <-ended, nil)
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, alone)
		r.rest(t, 100, time.Second)
		next := r.outcome(t, 1001, false)
		synctest.Wait()
		began := time.Now()
		ticks := make(chan time.Time, 2) // the first is the end of what a drain may take
		ticks <- began.Add(time.Second)
		ticks <- began.Add(time.Hour)
		_ = r.Run.Drain(ticks, 0)
		got := <-next
		if v := verdicts(t, got); v[0].Code != string(fault.Unknown) || !got.at.Equal(began) || r.batches() != 1 {
			t.Errorf("after %v: %v, %d batches", got.at.Sub(began), v, r.batches())
		}
	})
}
