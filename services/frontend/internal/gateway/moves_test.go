package gateway

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/poll"
)

// tellMoved tells the gateway that an owner gives a poll up to another partition, as matching does.
func (r *rig) tellMoved(t *testing.T, id uint64, partition int32) {
	t.Helper()
	r.Gateway.Polls.TakeAnswered(testkit.Encoded(t, &rpcv1.PollsAnswered{Moved: []*rpcv1.MovedPoll{{Id: id, TasklistPartition: partition}}}))
}

// movedPoll is a poll of a minute that partition 0 gives up to partition 1 after ten seconds. That of the result is its first sending.
func (r *rig) movedPoll(t *testing.T, before ...func()) (got <-chan reply, first sentPoll) {
	t.Helper()
	got = r.poll(time.Minute)
	<-got
	first = r.bus.sentPolls()[0]
	time.Sleep(10 * time.Second)
	for _, do := range before {
		do()
	}
	r.tellMoved(t, first.id, 1)
	return got, first
}

// A poll that a partition gives up goes to the newest owner of another one, with what is left of its time.
func TestAMovedPollGoesToAnotherPartition(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		r.Opened(shardOf(1), rigEpoch+4)
		got, first := r.movedPoll(t)
		sent := r.bus.sentPolls()
		if len(sent) != 2 || len(got) != 0 || r.kept() != 1 {
			t.Fatalf("sent %v, answered %d times", sent, len(got))
		}
		s := sent[1]
		if s.shard != shardOf(1) || s.epoch != rigEpoch+4 || s.id <= first.id || s.poll.Id != s.id || s.poll.TasklistPartition != 1 || !s.poll.Moved || s.poll.WaitMs != 50_000 {
			t.Errorf("sent to shard %d, epoch %d: %v", s.shard, s.epoch, s.poll)
		}
		if first.poll.Moved || first.poll.MaxTasks != s.poll.MaxTasks || first.poll.ReplyTo != s.poll.ReplyTo || !slices.Equal(first.poll.Types, s.poll.Types) {
			t.Errorf("it was %v, and is %v", first.poll, s.poll)
		}
		r.tellMoved(t, s.id, 0) // and back
		if sent := r.bus.sentPolls(); len(sent) != 3 || sent[2].shard != shardOf(0) || sent[2].poll.TasklistPartition != 0 || !sent[2].poll.Moved {
			t.Errorf("sent %v", sent)
		}
		testkit.Equal(t, "moves are counted", r.metrics.Counter(signals.PollsMoved).Value(), 2)
		r.tellAnswered(t, r.bus.sentPolls()[2].id)
		testkit.Equal(t, "it is kept when it is answered", r.kept(), 0)
	})
}

// Who gave a poll up has no say in it any more: it is with one owner at a time.
func TestWhatIsHeardOfAMovedPollFromBefore(t *testing.T) {
	for name, late := range map[string]func(r *rig, first sentPoll){
		"moved twice":           func(r *rig, s sentPoll) { r.tellMoved(t, s.id, 0) },
		"answered":              func(r *rig, s sentPoll) { r.tellAnswered(t, s.id) },
		"no one took it":        func(r *rig, s sentPoll) { r.Gateway.Polls.PollBounced(s.id) },
		"its owner is replaced": func(r *rig, s sentPoll) { r.Opened(s.shard, rigEpoch+1) },
		"not known":             func(r *rig, _ sentPoll) { r.tellMoved(t, 99, 0) },
	} {
		inBubble(t, name, func(t *testing.T) {
			r := newRig(t).running(t)
			got, first := r.movedPoll(t)
			late(r, first)
			time.Sleep(time.Second)
			if n := len(r.bus.sentPolls()); n != 2 || len(got) != 0 || r.kept() != 1 {
				t.Errorf("sent %d times, answered %d times, %d are kept", n, len(got), r.kept())
			}
		})
	}
}

// A poll that was answered, or ended since its owner was replaced, is not moved.
func TestAPollThatIsOverDoesNotMove(t *testing.T) {
	for name, before := range map[string]func(r *rig, s sentPoll){
		"answered": func(r *rig, s sentPoll) { r.tellAnswered(t, s.id) },
		"replaced": func(r *rig, s sentPoll) { r.Opened(s.shard, rigEpoch+1) },
	} {
		inBubble(t, name, func(t *testing.T) {
			r := newRig(t).running(t)
			<-r.poll(time.Minute)
			s := r.bus.sentPolls()[0]
			before(r, s)
			r.tellMoved(t, s.id, 1)
			if n := len(r.bus.sentPolls()); n != 1 || r.kept() != 0 {
				t.Errorf("sent %d times, %d are kept", n, r.kept())
			}
		})
	}
}

// The new owner of the other partition may be replaced like every owner: the poll is answered empty then.
func TestAMovedPollEndsWithItsNewOwner(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		got, _ := r.movedPoll(t)
		r.Opened(shardOf(1), rigEpoch+1)
		if o := <-got; o.err != nil || len(o.resp.(*yardv1.PollResponse).Tasks) != 0 || r.kept() != 0 {
			t.Errorf("answered %v, %d are kept", o, r.kept())
		}
	})
}

// noneServes has no partition of the rig's tasklist have an owner that is known, but those.
func (r *rig) noneServes(but ...int) func() {
	return func() {
		for p := range rigShards {
			if !slices.Contains(but, p) {
				r.Gateway.Polls.Epochs[shardOf(p)] = 0
			}
		}
	}
}

// A poll comes back to the partition that gave it up where the other one has no owner, and stays: what comes there does not wait for the
// other's owner. It may be given up again later.
func TestAMovedPollComesBackWhereNoOneServes(t *testing.T) {
	for _, known := range []bool{true, false} {
		onRunning(t, func(t *testing.T, r *rig) {
			but := []int{0}
			if known {
				but = append(but, 1)
			}
			got, _ := r.movedPoll(t, r.noneServes(but...))
			sent := r.bus.sentPolls()
			if known {
				r.Gateway.Polls.PollBounced(sent[1].id)
				sent = slices.Delete(r.bus.sentPolls(), 1, 2)
			}
			if len(sent) != 2 || len(got) != 0 || r.kept() != 1 {
				t.Fatalf("sent %v, answered %d times", sent, len(got))
			}
			if s := sent[1]; s.shard != shardOf(0) || s.poll.TasklistPartition != 0 || !s.poll.Moved || !s.poll.Back || s.poll.WaitMs != 50_000 {
				t.Errorf("it came back as %v", s.poll)
			}
			n := len(r.bus.sentPolls())
			r.Gateway.Polls.PollBounced(sent[1].id) // nor does the first one have an owner by now: it waits
			if len(r.bus.sentPolls()) != n || r.kept() != 1 {
				t.Errorf("sent %v", r.bus.sentPolls()[n:])
			}
			time.Sleep(poll.RetryEvery + tickEvery)
			synctest.Wait()
			again := r.bus.sentPolls()
			if len(again) != n+1 {
				t.Fatalf("sent %v", again[n:])
			}
			r.Gateway.Polls.Epochs[shardOf(1)] = rigEpoch
			r.tellMoved(t, again[n].id, 1)
			if sent := r.bus.sentPolls(); len(sent) != n+2 || sent[n+1].shard != shardOf(1) || sent[n+1].poll.Back {
				t.Errorf("given up again it was sent as %v", sent[n+1:])
			}
		})
	}
}

// Where no partition has an owner, or none that hears it, the poll waits for one as every poll does.
func TestAMovedPollWaitsForAnOwner(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(r *rig)
		times int // that it is sent again
	}{
		"no owner is known": {func(r *rig) { r.noneServes()() }, 0},
		"no one took it":    {func(r *rig) { r.noneServes(1)() }, 1},
	} {
		for _, opens := range []bool{true, false} {
			inBubble(t, fmt.Sprint(name, " ", opens), func(t *testing.T) {
				r := newRig(t).running(t)
				got, _ := r.movedPoll(t, func() { c.begin(r) })
				for _, s := range r.bus.sentPolls()[1:] {
					r.Gateway.Polls.PollBounced(s.id)
				}
				if n := len(r.bus.sentPolls()); n != 1+c.times || len(got) != 0 || r.kept() != 1 {
					t.Fatalf("sent %d times, answered %d times", n, len(got))
				}
				if !opens {
					for len(got) == 0 { // to each owner that it is sent to
						time.Sleep(tickEvery)
						synctest.Wait()
						sent := r.bus.sentPolls()
						r.Gateway.Polls.PollBounced(sent[len(sent)-1].id)
					}
					if o := <-got; fault.CodeOf(o.err) != fault.Unavailable || r.kept() != 0 {
						t.Errorf("answered %v, %d are kept", o, r.kept())
					}
					return
				}
				time.Sleep(poll.RetryEvery / 2)
				r.Opened(shardOf(1), rigEpoch+1)
				sent := r.bus.sentPolls()
				if s := sent[len(sent)-1]; len(sent) != 2+c.times || s.epoch != rigEpoch+1 || s.shard != shardOf(1) || !s.poll.Moved || s.poll.WaitMs != 49_950 {
					t.Errorf("sent %d times, at last %v", len(sent), s)
				}
			})
		}
	}
}

// Matching has given it up, so it ends here where it cannot go anywhere.
func TestAMovedPollThatCannotGoAnywhereIsAnsweredEmpty(t *testing.T) {
	for name, c := range map[string]struct {
		after     time.Duration
		partition int32
		empty     bool
	}{
		"below":       {time.Second, -1, true},
		"beyond":      {time.Second, ids.PartitionsMax, true},
		"the last":    {time.Second, ids.PartitionsMax - 1, false},
		"time over":   {time.Minute, 1, true},
		"time to go":  {time.Minute - 1, 1, false},
		"never to be": {time.Second, 1 << 30, true},
	} {
		inBubble(t, name, func(t *testing.T) {
			r := newRig(t, func(d *Deps) { d.Config.PollsMax = 4 }) // so a domain has three
			got := r.poll(time.Minute)
			<-got
			time.Sleep(c.after)
			r.tellMoved(t, r.bus.sentPolls()[0].id, c.partition)
			testkit.MustEqual(t, "answered", len(got) == 1, c.empty)
			if !c.empty {
				return
			}
			if o := <-got; o.err != nil || len(o.resp.(*yardv1.PollResponse).Tasks) != 0 || r.kept() != 0 || len(r.bus.sentPolls()) != 1 {
				t.Errorf("answered %v, %d are kept", o, r.kept())
			}
			for range 3 { // its place is free
				if o := <-r.poll(time.Minute); o.err != nil {
					t.Error(o.err)
				}
			}
		})
	}
}

// At a stop what has an owner stays matching's: it is moved as before, and answered where there is no owner.
func TestAMoveAtAStop(t *testing.T) {
	for _, owned := range []bool{true, false} {
		onRig(t, func(t *testing.T, r *rig) {
			if !owned {
				r.Gateway.Polls.Epochs[shardOf(1)] = 0
			}
			got := r.poll(time.Minute)
			<-got
			r.Gateway.Polls.Epochs[shardOf(0)] = 0
			r.Gateway.Polls.Stop()
			r.tellMoved(t, r.bus.sentPolls()[0].id, 1)
			if n := len(r.bus.sentPolls()); owned && (n != 2 || len(got) != 0) || !owned && (n != 1 || len(got) != 1) {
				t.Fatalf("there is an owner: %v; sent %d times, answered %d times", owned, n, len(got))
			}
			if owned {
				r.Gateway.Polls.PollBounced(r.bus.sentPolls()[1].id)
			}
			if o := <-got; fault.CodeOf(o.err) != fault.Unavailable || r.kept() != 0 {
				t.Errorf("answered %v, %d are kept", o, r.kept())
			}
		})
	}
}
