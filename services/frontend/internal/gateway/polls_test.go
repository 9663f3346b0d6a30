package gateway

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/poll"
)

// TestPollsWaitForTheFirstOwner: they are sent when it opens, once and in their order.
func TestPollsWaitForTheFirstOwner(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		clear(r.Gateway.Polls.Epochs)
		r.running(t)
		for i := range 3 {
			<-r.poll(time.Duration(30+i) * time.Second)
		}
		time.Sleep(time.Second + tickEvery/5) // between two ticks
		testkit.Equal(t, "polls were sent to no one", len(r.bus.sentPolls()), 0)
		r.opened(7)
		sent := r.bus.sentPolls()
		time.Sleep(time.Second)
		if len(sent) != 3 || len(r.bus.sentPolls()) != 3 || sent[0].epoch != 7 {
			t.Fatalf("sent %v", sent)
		}
		for i, s := range sent {
			if want := 28_995 + int64(i)*1000; s.poll.WaitMs != want {
				t.Errorf("poll %d may wait %d ms, want %d", i, s.poll.WaitMs, want)
			}
		}
		if n, waits := r.metrics.Counter(signals.PollsForwarded).Value(), r.metrics.Counter(signals.PollsWithoutOwner).Value(); n != 3 || waits < 3*9 {
			t.Errorf("%d are counted as sent, %d as waiting", n, waits)
		}
	})
}

// TestPollsThatAreDueWhenTheFirstOwnerOpens are sent to it then, each once, also where the tick looks for an owner at
// the same time.
func TestPollsThatAreDueWhenTheFirstOwnerOpens(t *testing.T) {
	for range 100 {
		onRig(t, func(t *testing.T, r *rig) {
			clear(r.Gateway.Polls.Epochs)
			r.running(t)
			for range 3 {
				<-r.poll(time.Minute)
			}
			time.Sleep(poll.RetryEvery) // a tick comes now
			r.opened(7)
			time.Sleep(time.Second)
			sent := r.bus.sentPolls()
			if len(sent) != 3 {
				t.Fatalf("sent %v", sent)
			}
			for _, s := range sent {
				if left := time.Minute - poll.RetryEvery; s.poll.WaitMs != left.Milliseconds() {
					t.Fatalf("a poll was sent with %d ms, want %v", s.poll.WaitMs, left)
				}
			}
		})
	}
}

// TestAnEarlierSendingThatNobodyTookChangesNothing: the poll is with another owner by then, and a third one would
// give it tasks again.
func TestAnEarlierSendingThatNobodyTookChangesNothing(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		got := r.poll(time.Minute)
		<-got
		first := r.bus.sentPolls()[0]
		r.Gateway.Polls.PollBounced(first.id)
		r.Opened(first.shard, rigEpoch+1)
		r.Gateway.Polls.PollBounced(first.id)
		time.Sleep(time.Second)
		r.Opened(first.shard, rigEpoch+2)
		if n := len(r.bus.sentPolls()); n != 2 || len(got) != 1 || r.kept() != 0 {
			t.Fatalf("the owner that had it is replaced: sent %d times, answered %d times, %d polls are kept", n, len(got), r.kept())
		}
		if o := <-got; o.err != nil || o.resp == nil {
			t.Errorf("answered %v", o)
		}
	})
}

// TestASendingThatFails and what else happens meanwhile: the poll is answered once, and with one owner at a time.
func TestASendingThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile   func(r *rig, s sentPoll)
		sent, empty int // how often it is sent otherwise, and answered empty
		err         fault.Code
	}{
		"nothing": {func(*rig, sentPoll) {}, 1, 0, ""},
		"it reached the server, where no one was, and it was sent again": {func(r *rig, s sentPoll) {
			r.Gateway.Polls.PollBounced(s.id)
			r.Opened(s.shard, rigEpoch+1)
		}, 1, 0, ""},
		"a new owner": {func(r *rig, s sentPoll) { r.Opened(s.shard, rigEpoch+1) }, 0, 1, ""},
		"answered":    {func(r *rig, s sentPoll) { r.tellAnswered(t, s.id) }, 0, 0, ""},
		"a stop":      {func(r *rig, _ sentPoll) { r.Gateway.Polls.Stop() }, 0, 0, fault.Unavailable},
		"a long time": {func(*rig, sentPoll) { time.Sleep(time.Hour) }, 0, 0, fault.Unavailable},
	} {
		inBubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.bus.send = func(s sentPoll) error {
				r.bus.send = nil
				c.meanwhile(r, s)
				return errDown
			}
			got := r.poll(time.Minute)
			r.running(t)
			time.Sleep(time.Second)
			synctest.Wait()
			testkit.Equal(t, "sent", len(r.bus.sentPolls()), c.sent)
			testkit.Equal(t, "polls are kept", r.kept(), c.sent)
			empty, err := 0, fault.Code("")
			for range len(got) {
				switch o := <-got; {
				case o.err != nil:
					err = fault.CodeOf(o.err)
				case o.resp != nil:
					empty++
				}
			}
			if empty != c.empty || err != c.err {
				t.Errorf("answered empty %d times, and %q", empty, err)
			}
		})
	}
}

// pollAs sends a poll after a while, with a number as its max_tasks, and says when it is answered here.
func (r *rig) pollAs(number int32, after time.Duration, waitMS int64, answered func()) {
	time.Sleep(after)
	r.Poll(r.call(), &yardv1.PollRequest{Tasklist: "main", MaxTasks: number, WaitMs: waitMS}, func(resp codec.Message, err error) {
		if resp != nil || err != nil {
			answered()
		}
	})
}

// TestPollsHaveOneOwnerAndOneAnswer at most, whatever becomes of their sendings while owners change. A sending may fail
// and be reported too, and an owner may give the poll up to another partition.
func TestPollsHaveOneOwnerAndOneAnswer(t *testing.T) {
	const polls, epochs = 200, 20
	dice := testkit.Seed(t)
	onRig(t, func(t *testing.T, r *rig) {
		clear(r.Gateway.Polls.Epochs)
		var mu sync.Mutex // guards the dice, and what follows
		owned, answers := map[int32]bool{}, map[int32]int{}
		givesUp := func(s sentPoll, later time.Duration, to int32) {
			time.Sleep(later)
			mu.Lock()
			owned[s.poll.MaxTasks] = false
			mu.Unlock()
			r.tellMoved(t, s.id, to)
		}
		r.bus.send = func(s sentPoll) error {
			mu.Lock()
			defer mu.Unlock()
			n := s.poll.MaxTasks
			if owned[n] {
				t.Errorf("poll %d has two owners", n)
			}
			fails, heard, later := dice.IntN(3) == 0, dice.IntN(3) == 0, time.Duration(dice.IntN(200))*time.Millisecond
			if heard && !fails {
				owned[n] = true
				if dice.IntN(2) == 0 {
					go givesUp(s, later, dice.Int32N(4))
				}
				return nil
			}
			time.AfterFunc(later, func() { r.Gateway.Polls.PollBounced(s.id) })
			if fails {
				return errDown
			}
			return nil
		}
		stop, ended := r.started()
		for n := range int32(polls) {
			go r.pollAs(n+1, tickEvery*time.Duration(n%40), dice.Int64N(3000), func() {
				mu.Lock()
				defer mu.Unlock()
				answers[n+1]++
			})
		}
		for epoch := range uint64(epochs) {
			time.Sleep(4 * tickEvery)
			r.opened(epoch + 1)
		}
		stop()
		testkit.Equal(t, "the end", <-ended, nil)
		time.Sleep(time.Second) // what is reported late has been reported
		r.Gateway.Polls.Tick(time.Now().Add(time.Hour))
		mu.Lock()
		defer mu.Unlock()
		for n := range int32(polls) {
			if got := answers[n+1]; got > 1 || got == 0 && !owned[n+1] {
				t.Errorf("poll %d was answered %d times, it has an owner: %v", n+1, got, owned[n+1])
			}
		}
		testkit.Equal(t, "polls are kept", r.kept(), 0)
	})
}

// TestAPollWhoseTimeIsOverIsNotSent, but answered: this process stood still while it waited.
func TestAPollWhoseTimeIsOverIsNotSent(t *testing.T) {
	for name, wake := range map[string]func(r *rig){
		"tick": func(r *rig) { r.Gateway.Polls.Tick(time.Now()) },
		"opened": func(r *rig) {
			r.opened(rigEpoch + 1)
		},
		"stop": func(r *rig) { r.Gateway.Polls.Stop() },
	} {
		for _, late := range []time.Duration{0, time.Millisecond, time.Minute} {
			inBubble(t, fmt.Sprint(name, " ", late), func(t *testing.T) {
				r := newRig(t)
				got := r.poll(time.Second)
				<-got
				r.Gateway.Polls.PollBounced(r.bus.sentPolls()[0].id)
				time.Sleep(time.Second + late)
				wake(r)
				wake(r)
				if n := len(r.bus.sentPolls()); n != 1 || len(got) != 1 || r.kept() != 0 {
					t.Fatalf("sent %d times, answered %d times, %d are kept", n, len(got), r.kept())
				}
				wantCode(t, (<-got).err, fault.Unavailable)
			})
		}
	}
}

// TestNoPollWaitsForAnOwnerInADrain: who stops sends nothing again.
func TestNoPollWaitsForAnOwnerInADrain(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		waiting, underway := r.poll(time.Minute), r.poll(time.Minute)
		<-waiting
		<-underway
		sent := r.bus.sentPolls()
		r.Gateway.Polls.PollBounced(sent[0].id)
		r.Gateway.Polls.Stop()
		r.Gateway.Polls.PollBounced(sent[1].id)
		wantCode(t, (<-waiting).err, fault.Unavailable)
		wantCode(t, (<-underway).err, fault.Unavailable)
	})
}
