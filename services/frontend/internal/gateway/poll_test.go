package gateway

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/poll"
)

// poll sends one and keeps every answer: the first says that it was handed on.
func (r *rig) poll(wait time.Duration) <-chan reply {
	got := make(chan reply, 2)
	r.Poll(r.call(), &yardv1.PollRequest{Tasklist: "main", MaxTasks: 7, WaitMs: wait.Milliseconds(), Types: []string{"a"}, Worker: "w", WorkerId: "0123456789abcdef", Unanswered: []string{"old"}},
		func(resp codec.Message, err error) { got <- reply{resp, err, time.Now()} })
	return got
}

func TestPollIsHandedToItsShard(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		got := r.poll(time.Minute)
		if o := <-got; o.err != nil || o.resp != nil {
			t.Fatalf("answered %v", o)
		}
		sent := r.bus.sentPolls()
		if len(sent) != 1 || sent[0].shard != ids.MatchingShard("shop", "main", 0, rigShards) {
			t.Fatalf("sent %v", sent)
		}
		p := sent[0].poll
		if p.Domain != "shop" || p.Tasklist != "main" || p.MaxTasks != 7 || p.Types[0] != "a" || p.Worker != "w" || p.WorkerId != "0123456789abcdef" ||
			p.ReplyTo != "asker" || !p.Json || p.WaitMs != 60_000 ||
			p.AnsweredTo != "answered" || p.Id != sent[0].id || sent[0].epoch != rigEpoch {
			t.Errorf("poll %v to epoch %d", p, sent[0].epoch)
		}
	})
}

// kept is how many polls are remembered.
func (r *rig) kept() int { return r.Gateway.Polls.Len() }

// tellAnswered tells the gateway of answered polls, as matching does.
func (r *rig) tellAnswered(t *testing.T, polls ...uint64) {
	t.Helper()
	r.Gateway.Polls.TakeAnswered(testkit.Encoded(t, &rpcv1.PollsAnswered{Ids: polls}))
}

// TestR37PollsAreKeptUntilTheyAreAnswered, and where matching does not say so, until
// their time is long over: then they are answered empty.
func TestR37PollsAreKeptUntilTheyAreAnswered(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		var got [3]<-chan reply
		for i := range got {
			got[i] = r.poll(time.Minute)
			<-got[i]
		}
		sent := r.bus.sentPolls()
		r.tellAnswered(t, sent[0].id, 99, sent[2].id)
		testkit.Equal(t, "polls are kept", r.kept(), 1)
		time.Sleep(time.Minute)
		testkit.Equal(t, "polls are kept when its time is over", r.kept(), 1)
		time.Sleep(poll.OverAfter + tickEvery)
		synctest.Wait()
		testkit.Equal(t, "polls are kept", r.kept(), 0)
		o := <-got[1]
		if resp, ok := o.resp.(*yardv1.PollResponse); !ok || o.err != nil || len(resp.Tasks) != 0 || len(got[0])+len(got[2]) != 0 {
			t.Errorf("answered %v; %d and %d answers more", o, len(got[0]), len(got[2]))
		}
	})
}

// TestR42PollsOfAReplacedOwnerAreAnsweredEmpty at once: those that it has not answered. Polls
// from then on go to its successor.
func TestR42PollsOfAReplacedOwnerAreAnsweredEmpty(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		answered, parked := r.poll(time.Minute), r.poll(time.Minute)
		<-answered
		<-parked
		sent := r.bus.sentPolls()
		shard := sent[0].shard
		r.tellAnswered(t, sent[0].id)
		r.Opened((shard+1)%rigShards, rigEpoch+1)
		testkit.Equal(t, "another shard's owner ended a poll", len(parked), 0)
		began := time.Now()
		r.Opened(shard, rigEpoch+2)
		o := <-parked
		if resp, ok := o.resp.(*yardv1.PollResponse); !ok || o.err != nil || len(resp.Tasks) != 0 || o.at != began {
			t.Errorf("answered %v after %v", o, o.at.Sub(began))
		}
		testkit.Equal(t, "polls are answered twice or kept", len(answered)+r.kept(), 0)
		r.Gateway.Polls.PollBounced(sent[1].id) // it was on its way to the owner before
		<-r.poll(time.Minute)
		r.Opened(shard, rigEpoch+1) // old news
		<-r.poll(time.Minute)
		for _, s := range r.bus.sentPolls()[2:] {
			testkit.Equal(t, "a poll went to epoch", s.epoch, rigEpoch+2)
		}
		testkit.Equal(t, "polls are kept", r.kept(), 2)
	})
}

func TestABouncedPollIsSentAgainUntilItsTimeIsOver(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		began := time.Now()
		got := r.poll(time.Second)
		<-got
		for bounced := 0; time.Since(began) < 2*time.Second; time.Sleep(tickEvery) {
			synctest.Wait()
			sent := r.bus.sentPolls()
			for _, s := range sent[bounced:] {
				r.Gateway.Polls.PollBounced(s.id)
			}
			bounced = len(sent)
		}
		o := <-got
		wantLater(t, o.err, fault.Unavailable)
		if n := len(r.bus.sentPolls()); n < 6 || n > 11 {
			t.Errorf("sent %d times", n)
		}
	})
}

// TestR40_APollIsSentAgainWithTheRestOfItsTime.
func TestR40_APollIsSentAgainWithTheRestOfItsTime(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		<-r.poll(time.Minute)
		for _, after := range []time.Duration{time.Second, 30 * time.Second} {
			time.Sleep(after)
			sent := r.bus.sentPolls()
			r.Gateway.Polls.PollBounced(sent[len(sent)-1].id)
			time.Sleep(poll.RetryEvery)
			synctest.Wait()
		}
		var left []int64
		for _, s := range r.bus.sentPolls() {
			left = append(left, s.poll.WaitMs)
		}
		if want := []int64{60_000, 58_900, 28_800}; !slices.Equal(left, want) {
			t.Errorf("sent with %d ms, want %d", left, want)
		}
	})
}

func TestPollWithoutWaitIsUnavailableAtOnce(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		got := r.poll(0)
		<-got
		r.Gateway.Polls.PollBounced(r.bus.sentPolls()[0].id)
		wantCode(t, (<-got).err, fault.Unavailable)
		r.Gateway.Polls.PollBounced(99) // of no one
	})
}

func TestPollFindsTheNextOwner(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		r.bus.down = true
		got := r.poll(time.Minute)
		<-got
		time.Sleep(time.Second)
		r.bus.mu.Lock()
		r.bus.down = false
		r.bus.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		if len(r.bus.sentPolls()) != 1 || len(got) != 0 {
			t.Errorf("sent %d, answers %d", len(r.bus.sentPolls()), len(got))
		}
	})
}

func TestDrainFinishesWhatIsOpen(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		r.log.gate = make(chan struct{})
		stop, ended := r.started()
		submitted, completed := r.submit(t, tasks(1)), r.complete(t, completion(1, 1))
		stop()
		time.Sleep(time.Second)
		synctest.Wait()
		close(r.log.gate)
		r.verdict(t, r.bus.sentEvents()[0], 0, 1)
		testkit.Equal(t, "the end", <-ended, nil)
		accepted(t, <-submitted)
		verdicts(t, <-completed)
	})
}

func TestDrainGivesUpInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d *Deps) { d.Config.DrainTimeout, d.Config.AppendTimeout = time.Second, time.Minute })
		r.log.gate = make(chan struct{})
		stop, ended := r.started()
		submitted, completed := r.submit(t, tasks(1)), r.complete(t, completion(1, 1))
		synctest.Wait()
		began := time.Now()
		stop()
		if err := <-ended; err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		wantCode(t, (<-submitted).err, fault.Unknown)
		if v := verdicts(t, <-completed)[0]; v.Code != string(fault.Unknown) {
			t.Errorf("got %v", v)
		}
	})
}
