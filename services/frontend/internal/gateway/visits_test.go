package gateway

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/visits"
)

// pollSeveral polls some tasklists for up to 2 tasks.
func (r *rig) pollSeveral(wait time.Duration, names ...string) <-chan outcome {
	got := make(chan outcome, 3)
	req := &yardv1.PollRequest{MaxTasks: 2, WaitMs: wait.Milliseconds(), Types: []string{"a"}, Unanswered: []string{"old"}}
	for _, name := range names {
		req.Tasklists = append(req.Tasklists, &yardv1.PolledTasklist{Name: name})
	}
	r.Poll(r.call(), req, func(resp codec.Message, err error) { got <- outcome{resp, err, time.Now()} })
	return got
}

// tell tells the gateway something as matching does.
func (r *rig) tell(t *testing.T, m *rpcv1.PollsAnswered) {
	t.Helper()
	data, err := m.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	r.TakeAnswered(data)
}

// last is the poll that was sent last.
func (r *rig) last() sentPoll { return r.bus.sentPolls()[len(r.bus.sentPolls())-1] }

// nothing gives the visit up that was made last.
func (r *rig) nothing(t *testing.T) {
	t.Helper()
	r.tell(t, &rpcv1.PollsAnswered{Moved: []*rpcv1.MovedPoll{{Id: r.last().id, Nothing: true}}})
}

func (r *rig) wanted(t *testing.T, tasklist, typ string, n int64) {
	t.Helper()
	r.tell(t, &rpcv1.PollsAnswered{Wanted: []*rpcv1.PollsWanted{{Domain: "shop", Tasklist: tasklist, Wanted: []*rpcv1.Wanted{{Type: typ, Triggers: n}}}}})
}

// visiting is how many polls are with an owner, severals how many of several tasklists are kept.
func (r *rig) visiting() int {
	r.polls.mu.Lock()
	defer r.polls.mu.Unlock()
	return len(r.polls.sent)
}

func (r *rig) severals() int {
	r.polls.mu.Lock()
	defer r.polls.mu.Unlock()
	return len(r.polls.severals)
}

// sentTo are the tasklists that polls were sent to.
func (r *rig) sentTo(from int) []string {
	var names []string
	for _, s := range r.bus.sentPolls()[from:] {
		names = append(names, s.poll.Tasklist)
	}
	return names
}

// atRest is a poll of three tasklists at rest, after a first visit to each.
func (r *rig) atRest(t *testing.T) <-chan outcome {
	t.Helper()
	got := r.pollSeveral(30*time.Second, "x", "y", "z")
	if o := <-got; o.err != nil || o.resp != nil {
		t.Fatalf("answered %v", o)
	}
	for range 3 {
		r.nothing(t)
	}
	if n := len(r.bus.sentPolls()); n != 3 || len(got) != 0 || r.kept() != 1 || r.visiting() != 0 {
		t.Fatalf("sent %d times, answered %d times, %d are kept", n, len(got), r.kept())
	}
	return got
}

// A poll of several tasklists visits each of them, then it rests, until one wants it.
func TestAPollVisitsItsTasklists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t)
		got := r.atRest(t)
		if names := slices.Sorted(slices.Values(r.sentTo(0))); !slices.Equal(names, []string{"x", "y", "z"}) {
			t.Errorf("it visited %v", names)
		}
		for i, s := range r.bus.sentPolls() {
			if p := s.poll; !p.Visit || p.Moved != (i > 0) || p.Back || p.TasklistPartition != 0 || p.AnsweredTo == "" || p.MaxTasks != 2 || len(p.Unanswered) != 0 ||
				s.shard != ids.MatchingShard("shop", p.Tasklist, 0, rigShards) || s.epoch != rigEpoch || p.WaitMs != 30_000 {
				t.Errorf("visit %d: %v", i, p)
			}
		}
		if len(r.bus.givenUp) != 1 || r.bus.givenUp[0].Inboxes[0] != "old" {
			t.Errorf("matching was notified of %v", r.bus.givenUp)
		}
		time.Sleep(100 * time.Millisecond)
		r.wanted(t, "y", "b", 1)
		r.wanted(t, "none", "a", 1)
		r.wanted(t, "y", "a", 1)
		if names := r.sentTo(3); !slices.Equal(names, []string{"y"}) || r.last().poll.WaitMs != 29_900 {
			t.Fatalf("where it is wanted it went to %v: %v", names, r.last().poll)
		}
		r.tellAnswered(t, r.last().id)
		r.wanted(t, "y", "a", 1)
		if len(got) != 0 || r.kept() != 0 || len(r.sentTo(4)) != 0 || r.severals() != 0 {
			t.Error("it is kept when it is answered")
		}
	})
}

// While a poll is with an owner, no one else has it. What is heard of earlier visits changes nothing.
func TestAPollIsOnOneVisitAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t)
		got := r.pollSeveral(30*time.Second, "x", "y")
		<-got
		first := r.last()
		time.Sleep(time.Millisecond)
		r.wanted(t, "x", "a", 5)
		r.wanted(t, "y", "a", 5)
		time.Sleep(time.Millisecond)
		if n := len(r.sentTo(0)); n != 1 {
			t.Fatalf("sent %d times", n)
		}
		r.nothing(t)
		for range 2 { // it goes where it was wanted before
			r.tell(t, &rpcv1.PollsAnswered{Moved: []*rpcv1.MovedPoll{{Id: first.id, Nothing: true}}})
			r.tellAnswered(t, first.id)
			r.PollBounced(first.id)
			if n := len(r.sentTo(0)); n != 2 || r.kept() != 1 || len(got) != 0 {
				t.Fatalf("late news: sent %d times, %d are kept", n, r.kept())
			}
		}
		for range 20 {
			if r.visiting() > 0 {
				r.nothing(t)
			}
		}
		if n := len(r.sentTo(0)); n != 3 || r.visiting() != 0 { // once more where it was meanwhile
			t.Errorf("it made %d visits", n)
		}
	})
}

// A poll at rest visits all again within 2 s, and at once where an owner is new.
func TestAPollAtRestVisitsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t)
		r.atRest(t)
		for range 10 {
			before := len(r.bus.sentPolls())
			for range 85 {
				time.Sleep(tickEvery)
				synctest.Wait()
				for r.visiting() > 0 {
					r.nothing(t)
				}
			}
			for _, name := range []string{"x", "y", "z"} {
				if n := len(slices.DeleteFunc(r.sentTo(before), func(s string) bool { return s != name })); n < 1 || n > 3 {
					t.Fatalf("in 2 s it visited %s %d times", name, n)
				}
			}
		}
		shard, before := ids.MatchingShard("shop", "y", 0, rigShards), len(r.bus.sentPolls())
		r.EpochOpened(shard, rigEpoch+1)
		if names := r.sentTo(before); len(names) != 1 || r.last().shard != shard || r.last().epoch != rigEpoch+1 {
			t.Errorf("with a new owner it went to %v", names)
		}
	})
}

// The time of a poll at rest ends here; on a visit the owner gives it up, or its word is waited for as for every poll.
func TestTheTimeOfAPollOfSeveralIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, r *rig)
		ends time.Duration
		err  fault.Code
	}{
		"at rest":  {func(t *testing.T, r *rig) {}, 30 * time.Second, ""},
		"on visit": {func(t *testing.T, r *rig) { r.wanted(t, "x", "a", 1) }, 30*time.Second + pollOverAfter, ""},
		"late": {func(t *testing.T, r *rig) {
			r.wanted(t, "x", "a", 1)
			time.Sleep(30 * time.Second)
			r.nothing(t)
		}, 30 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(d *Deps) { d.Config.PollsMax = 16 })
				at := time.Now()
				got := r.atRest(t)
				c.do(t, r)
				for len(got) == 0 && time.Since(at) < time.Minute {
					time.Sleep(tickEvery)
					r.polls.tick(time.Now())
					if name == "at rest" {
						for r.visiting() > 0 {
							r.nothing(t)
						}
					}
				}
				o := <-got
				if o.err != nil || len(o.resp.(*yardv1.PollResponse).Tasks) != 0 || o.at.Sub(at) < c.ends || o.at.Sub(at) > c.ends+2*tickEvery {
					t.Errorf("answered %v after %v", o, o.at.Sub(at))
				}
				if r.kept() != 0 || r.severals() != 0 {
					t.Error("it is kept")
				}
			})
		})
	}
}

// A poll that may not wait visits each tasklist once.
func TestAPollOfSeveralThatMayNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t)
		got := r.pollSeveral(0, "x", "y", "z")
		<-got
		for range 3 {
			time.Sleep(10 * time.Millisecond)
			r.nothing(t)
		}
		if o := <-got; o.err != nil || len(r.sentTo(0)) != 3 || r.kept() != 0 || o.at != time.Now() {
			t.Errorf("answered %v after %v", o, r.sentTo(0))
		}
	})
}

// A tasklist without an owner holds the others up no more than others do; a poll whose tasklists all have none is notified so.
func TestVisitsWithoutAnOwner(t *testing.T) {
	for _, some := range []bool{true, false} {
		for _, known := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t).running(t)
				away := func(name string) bool { return !some || name == "x" }
				if !known {
					for _, name := range []string{"x", "y", "z"} {
						if away(name) {
							r.polls.epochs[ids.MatchingShard("shop", name, 0, rigShards)] = 0
						}
					}
				}
				got := r.pollSeveral(2*time.Second, "x", "y", "z")
				<-got
				handled := 0
				for len(got) == 0 {
					for all := r.bus.sentPolls(); handled < len(all); all = r.bus.sentPolls() {
						s := all[handled]
						handled++
						if away(s.poll.Tasklist) {
							r.PollBounced(s.id)
						} else {
							r.tell(t, &rpcv1.PollsAnswered{Moved: []*rpcv1.MovedPoll{{Id: s.id, Nothing: true}}})
						}
					}
					time.Sleep(tickEvery)
					synctest.Wait()
				}
				if o := <-got; some && o.err != nil || !some && fault.CodeOf(o.err) != fault.Unavailable || r.kept() != 0 {
					t.Errorf("some have an owner: %v; answered %v", some, o)
				}
			})
		}
	}
}

// An owner that is replaced during a visit ends the poll, as every poll.
func TestAVisitEndsWithItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t)
		got := r.pollSeveral(30*time.Second, "x", "y")
		<-got
		r.EpochOpened(r.last().shard, rigEpoch+1)
		if o := <-got; o.err != nil || len(o.resp.(*yardv1.PollResponse).Tasks) != 0 || r.kept() != 0 {
			t.Errorf("answered %v", o)
		}
	})
}

// At a stop polls at rest are answered; those on a visit are when they come back.
func TestPollsOfSeveralAtAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		resting := r.atRest(t)
		visiting := r.pollSeveral(30*time.Second, "p", "q")
		<-visiting
		at := time.Now()
		r.polls.stop()
		if o := <-resting; o.err != nil || len(visiting) != 0 || r.kept() != 1 {
			t.Errorf("answered %v, %d are kept", o, r.kept())
		}
		r.nothing(t)
		if o := <-visiting; o.err != nil || r.kept() != 0 || o.at != at {
			t.Errorf("answered %v, %d are kept", o, r.kept())
		}
	})
}

// In a tasklist of several partitions the first visit is to any, then to the first one, and to where that sends it; not in a circle.
func TestVisitsOfATasklistWithPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t)
		wantCode(t, r.putPartitions("main", 3), "")
		<-r.poll(time.Minute) // so the next one goes to partition 1
		before := len(r.bus.sentPolls())
		got := r.pollSeveral(30*time.Second, "main", "none")
		<-got
		var went []int32
		for range 5 {
			if r.visiting() == 1 {
				break
			}
			s := r.last()
			if s.poll.Tasklist == "main" {
				went = append(went, s.poll.TasklistPartition)
				if s.shard != shardOf(int(s.poll.TasklistPartition)) || !s.poll.Visit {
					t.Errorf("sent %v to shard %d", s.poll, s.shard)
				}
				if len(went) == 2 {
					r.tell(t, &rpcv1.PollsAnswered{Moved: []*rpcv1.MovedPoll{{Id: s.id, TasklistPartition: 2}}})
					continue
				}
			}
			r.nothing(t)
		}
		if !slices.Equal(went, []int32{1, 0, 2}) || len(r.bus.sentPolls())-before != 4 {
			t.Errorf("it went to %v, and made %d visits", went, len(r.bus.sentPolls())-before)
		}
		r.wanted(t, "main", "a", 1)
		if p := r.last().poll; p.Tasklist != "main" || p.TasklistPartition != 0 {
			t.Errorf("where it is wanted it went to %v", p)
		}
		r.tell(t, &rpcv1.PollsAnswered{Moved: []*rpcv1.MovedPoll{{Id: r.last().id, TasklistPartition: ids.PartitionsMax}}})
		r.wanted(t, "main", "a", 1)
		r.tell(t, &rpcv1.PollsAnswered{Moved: []*rpcv1.MovedPoll{{Id: r.last().id, TasklistPartition: -1}}})
		if n := r.visiting(); n != 1 || r.kept() != 2 {
			t.Errorf("sent to a partition that cannot be it has %d owners", n)
		}
	})
}

// Each tasklist of a poll takes a place, so that what is kept is bounded.
func TestAPollOfSeveralTakesPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d *Deps) { d.Config.PollsMax = 16 }) // a domain has 12
		var last outcome
		for range 4 {
			last = <-r.pollSeveral(time.Minute, "x", "y", "z")
		}
		wantCode(t, last.err, fault.ResourceExhausted)
		if r.kept() != 3 {
			t.Errorf("%d are kept", r.kept())
		}
		got := r.pollSeveral(time.Minute, "one") // not a poll of several
		wantCode(t, (<-got).err, fault.ResourceExhausted)
	})
}

// In each of several such tasklists the first partition has it, too.
func TestVisitsOfTasklistsWithPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t)
		for _, name := range []string{"main", "other"} {
			wantCode(t, r.putPartitions(name, 3), "")
			r.pick("shop", name) // so the next one goes to partition 1
		}
		<-r.pollSeveral(30*time.Second, "main", "other")
		var went []int32
		for r.visiting() > 0 {
			went = append(went, r.last().poll.TasklistPartition)
			r.nothing(t)
		}
		if !slices.Equal(went, []int32{1, 0, 1, 0}) {
			t.Errorf("it went to %v", went)
		}
	})
}

// A poll that was at rest, and is on a visit at a stop, is its owner's.
func TestAVisitFromRestAtAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		got := r.atRest(t)
		r.wanted(t, "x", "a", 1)
		if r.polls.stop(); len(got) != 0 || r.kept() != 1 {
			t.Fatal("it is answered")
		}
		r.nothing(t)
		if o := <-got; o.err != nil || r.kept() != 0 {
			t.Errorf("answered %v", o)
		}
	})
}

// What a worker says of polls that were given up takes places, too: it is kept and sent with the poll.
func TestWhatWasGivenUpTakesPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d *Deps) { d.Config.PollsMax = 16 }) // a domain has 12
		for i, want := range []fault.Code{"", "", fault.ResourceExhausted} {
			got := make(chan error, 1)
			req := &yardv1.PollRequest{Tasklist: "main", MaxTasks: 1, WaitMs: 60_000}
			for range 16 {
				req.Unanswered = append(req.Unanswered, strings.Repeat("x", pollPlaceBytes/4))
			}
			r.Poll(r.call(), req, func(_ codec.Message, err error) { got <- err })
			if err := <-got; fault.CodeOf(err) != want {
				t.Errorf("number %d: %v", i, err)
			}
		}
	})
}

// A tasklist without an owner is tried again after AwayFor, not at each tick.
func TestATasklistWithoutAnOwnerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		clear(r.polls.epochs)
		<-r.pollSeveral(time.Minute, "x", "y")
		due := func() int {
			r.polls.mu.Lock()
			defer r.polls.mu.Unlock()
			return len(r.polls.book.Due(time.Now()))
		}
		time.Sleep(visits.AwayFor - time.Nanosecond)
		if n := due(); n != 0 {
			t.Errorf("%d are due too soon", n)
		}
		time.Sleep(time.Nanosecond)
		if n := due(); n != 1 {
			t.Errorf("%d are due", n)
		}
	})
}

// When its time is over a poll is sent to no other tasklist, though it has yet to visit some.
func TestAPollMakesNoVisitsAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		got := r.atRest(t)
		time.Sleep(2 * visits.KnownFor)
		r.polls.tick(time.Now()) // all three are due
		if r.visiting() != 1 {
			t.Fatal("it rests")
		}
		time.Sleep(30 * time.Second)
		r.nothing(t)
		if o := <-got; o.err != nil || len(r.bus.sentPolls()) != 4 || r.kept() != 0 {
			t.Errorf("answered %v after %d visits", o, len(r.bus.sentPolls()))
		}
	})
}

// A poll of one entry is a poll of that tasklist.
func TestAPollOfOneEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		<-r.pollSeveral(time.Minute, "one")
		if p := r.last().poll; p.Tasklist != "one" || p.Visit || len(p.Unanswered) != 1 {
			t.Errorf("sent %v", p)
		}
	})
}
