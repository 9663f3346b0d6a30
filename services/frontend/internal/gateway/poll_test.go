package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// poll sends one and keeps every answer: the first says that it was handed on.
func (r *rig) poll(wait time.Duration) <-chan outcome {
	got := make(chan outcome, 2)
	r.Poll(r.call(), &yardv1.PollRequest{Tasklist: "main", MaxTasks: 7, WaitMs: wait.Milliseconds(), Types: []string{"a"}, Worker: "w"},
		func(resp codec.Message, err error) { got <- outcome{resp, err, time.Now()} })
	return got
}

func TestPollIsHandedToItsShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t)
		began := time.Now()
		got := r.poll(time.Minute)
		if o := <-got; o.err != nil || o.resp != nil {
			t.Fatalf("answered %v", o)
		}
		sent := r.bus.sentPolls()
		if len(sent) != 1 || sent[0].shard != ids.MatchingShard("shop", "main", 0, rigShards) {
			t.Fatalf("sent %v", sent)
		}
		p := sent[0].poll
		if p.Domain != "shop" || p.Tasklist != "main" || p.MaxTasks != 7 || p.Types[0] != "a" || p.Worker != "w" ||
			p.ReplyTo != "asker" || !p.Json || p.UntilMs != began.Add(time.Minute).UnixMilli() {
			t.Errorf("poll %v", p)
		}
		time.Sleep(pollHeardAfter + time.Second)
		synctest.Wait()
		r.polls.mu.Lock()
		defer r.polls.mu.Unlock()
		if len(r.polls.forwarded) != 0 {
			t.Error("a poll that arrived is still held")
		}
	})
}

func TestUnheardPollIsSentAgainUntilItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t)
		began := time.Now()
		got := r.poll(time.Second)
		<-got
		for unheard := 0; time.Since(began) < 2*time.Second; time.Sleep(tickEvery) {
			synctest.Wait()
			sent := r.bus.sentPolls()
			for _, s := range sent[unheard:] {
				r.PollUnheard(s.id)
			}
			unheard = len(sent)
		}
		o := <-got
		if e := wantCode(t, o.err, fault.Unavailable); e.RetryAfter == 0 {
			t.Error("no retry-after")
		}
		if n := len(r.bus.sentPolls()); n < 6 || n > 11 {
			t.Errorf("sent %d times", n)
		}
	})
}

func TestPollWithoutWaitIsUnavailableAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t)
		got := r.poll(0)
		<-got
		r.PollUnheard(r.bus.sentPolls()[0].id)
		wantCode(t, (<-got).err, fault.Unavailable)
		r.PollUnheard(99) // of nobody
	})
}

func TestPollFindsTheNextOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t)
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
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.log.gate = make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		submitted, completed := r.submit(t, tasks(1)), r.complete(t, completion(1, 1))
		stop()
		time.Sleep(time.Second)
		synctest.Wait()
		close(r.log.gate)
		r.verdict(t, r.bus.sentEvents()[0], 0, 1)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		accepted(t, <-submitted)
		verdicts(t, <-completed)
	})
}

func TestDrainGivesUpInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d *Deps) { d.Config.DrainTimeout, d.Config.AppendTimeout = time.Second, time.Minute })
		r.log.gate = make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
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
