package gateway

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func membersRigs(t *testing.T, change ...func(*Deps)) []*rig {
	t.Helper()
	with := append([]func(*Deps){func(d *Deps) { d.Batches = memBatches{} }}, change...)
	a := newKnowingRig(t, with...)
	b := newKnowingRig(t, append(with, func(d *Deps) { d.History = a.log })...)
	b.log = a.log
	testkit.NoError(t, testkit.Err(asked(a, "shop", false, a.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"})))
	return []*rig{a, b}
}

// The client's clock may be ahead: its request seems to be younger than the word that counts its repeat.
func TestI1_AFirstTryOfAClockAheadIsCountedOnce(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Second, 1900 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			rigs := membersRigs(t)
			store := func(by int, req *yardv1.SubmitRequest) []string {
				t.Helper()
				for _, task := range req.Tasks {
					task.BatchId, task.OrderKey = "a", "k"
				}
				_, created := outcomesOf(t, <-rigs[by].submit(t, req))
				return created
			}
			members := store(0, withID(tasks(1), true))
			req := withID(tasks(3), true)
			req.RequestId = ids.NewRequestID(time.Now().Add(ahead)).String()
			req.Tries = 2
			again := store(0, req)
			members = append(members, again...)
			time.Sleep(100 * time.Millisecond)
			req.Tries = 1
			equalIDs(t, store(0, req), again)
			wantOnce(t, rigs[0].log, members)
			testkit.Equal(t, "members are counted", rigs[0].log.membersOf(t), int64(len(members)))
		})
	}
}

// The task of a repeat has ended, and another one has had its key since.
func TestI1_AFirstTryWhoseKeyIsFreeAgainIsCountedOnce(t *testing.T) {
	for name, between := range map[string]bool{"free": false, "another one has had it": true} {
		inBubble(t, name, func(t *testing.T) {
			rigs := membersRigs(t)
			log := rigs[0].log
			store := func(by int, req *yardv1.SubmitRequest) []string {
				t.Helper()
				for _, task := range req.Tasks {
					task.BatchId = "a"
				}
				_, created := outcomesOf(t, <-rigs[by].submit(t, req))
				return created
			}
			req := withID(keyed("one"), true)
			req.Tries = 2
			again := store(0, req)
			members := again
			log.ends(t, "shop", "one", time.Now())
			if between {
				members = append(members, store(1, withID(keyed("one"), true))...)
				log.ends(t, "shop", "one", time.Now())
			}
			req.Tries = 1
			equalIDs(t, store(1, req), again)
			wantOnce(t, log, members)
			testkit.Equal(t, "members are counted", log.membersOf(t), int64(len(members)))
		})
	}
}

// Who looks for members that may be stored already holds up no other domain: the log takes others' tasks while the owner is away.
func TestI14_AFirstTryThatIsLookedForHoldsUpNoOtherDomain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := false
		rigs := membersRigs(t, func(d *Deps) {
			get := d.Owners.HistoryGet
			d.Owners.HistoryGet = func(ctx context.Context, p int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				if away && req.Domain == "shop" {
					<-ctx.Done()
					return nil, fault.New(fault.Unavailable, "the owner is away")
				}
				return get(ctx, p, req)
			}
		})
		n := topology.Partitioning{History: rigPartitions}
		beside := 0
		for topology.OrderKeyPartition("bank", strconv.Itoa(beside), n) != topology.OrderKeyPartition("shop", "k", n) {
			beside++
		}
		member := func() *yardv1.SubmitRequest {
			req := withID(tasks(1), true)
			req.Tasks[0].BatchId, req.Tasks[0].OrderKey = "a", "k"
			return req
		}
		accepted(t, <-rigs[0].submit(t, member()))
		away = true
		held := rigs[1].submit(t, member())
		synctest.Wait()
		req := withID(keyed("one"), true)
		req.Tasks[0].OrderKey = strconv.Itoa(beside)
		began := time.Now()
		accepted(t, <-rigs[1].submitAs(t, "bank", req))
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("another domain's task was stored after %v", took)
		}
		away = false
		<-held
	})
}

// Frontends that store members of one batch in turn look for nothing: the word says that no repeat was stored.
func TestFirstTriesOfTwoFrontendsAreNotLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looked atomic.Int64
		rigs := membersRigs(t, func(d *Deps) {
			get := d.Owners.HistoryGet
			d.Owners.HistoryGet = func(ctx context.Context, p int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				looked.Add(1)
				return get(ctx, p, req)
			}
		})
		var members []string
		store := func(by int, tries int32, want int64) {
			t.Helper()
			looked.Store(0)
			req := withID(tasks(2), true)
			req.Tries = tries
			for _, task := range req.Tasks {
				task.BatchId, task.OrderKey = "a", "k"
			}
			members = append(members, accepted(t, <-rigs[by].submit(t, req))...)
			if n := looked.Load(); (n > 0) != (want > 0) {
				t.Errorf("after %d members: asked %d times", len(members), n)
			}
		}
		for i := range 10 {
			store(i%2, 1, 0)
		}
		store(0, 2, 1)
		store(1, 1, 1) // a repeat of it may be counted
		time.Sleep(aheadMax + clocksApart + time.Millisecond)
		store(1, 1, 0)
		store(0, 1, 0)
		wantOnce(t, rigs[0].log, members)
		testkit.Equal(t, "members are counted", rigs[0].log.membersOf(t), int64(len(members)))
	})
}

// A word of a frontend that says nothing of repeats may count some.
func TestAWordThatSaysNothingOfRepeatsMayCountSome(t *testing.T) {
	for _, by := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			rigs := membersRigs(t)
			log := rigs[0].log
			req := withID(tasks(3), true)
			req.Tries = 2
			for _, task := range req.Tasks {
				task.BatchId, task.OrderKey = "a", "k"
			}
			_, again := outcomesOf(t, <-rigs[0].submit(t, req))
			log.saysNothingOfRepeats(t)
			req.Tries = 1
			_, first := outcomesOf(t, <-rigs[by].submit(t, req))
			equalIDs(t, first, again)
			time.Sleep(time.Minute)
			more := withID(tasks(1), true)
			more.Tasks[0].BatchId, more.Tasks[0].OrderKey = "a", "k"
			members := append(again, accepted(t, <-rigs[by].submit(t, more))...)
			wantOnce(t, log, members)
			testkit.Equal(t, "members are counted", log.membersOf(t), int64(len(members)))
		})
	}
}

// saysNothingOfRepeats stores the words on batches once more, as a frontend does that knows nothing of repeats.
func (l *memLog) saysNothingOfRepeats(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, msgs := range l.partitions {
		for _, m := range slices.Clone(msgs) {
			if topology.BatchOfMembers(p, m.Subject) == "" {
				continue
			}
			var said logv1.BatchMembers
			testkit.NoError(t, said.UnmarshalVT(m.Data))
			said.RepeatedAtMs = 0
			l.store(p, natslog.Msg{Subject: m.Subject, Data: testkit.Encoded(t, &said)})
		}
	}
}

// Tries of requests come in any order, at any frontend, and some writes have no known outcome: whatever is stored is stored and counted once.
func TestI1_MembersAreCountedOnceInAnyOrderOfTheirTries(t *testing.T) {
	random := testkit.Seed(t)
	for range testkit.Rounds(t, 20, 5) {
		dice, faults := rand.New(rand.NewPCG(random.Uint64(), 1)), rand.New(rand.NewPCG(random.Uint64(), 2))
		synctest.Test(t, func(t *testing.T) {
			rigs := membersRigs(t)
			log := rigs[0].log
			log.atomicFault = func(late func()) (bool, error) {
				switch faults.IntN(12) {
				case 0:
					return true, natslog.ErrOutcomeUnknown
				case 1:
					after := time.Duration(faults.IntN(3000)) * time.Millisecond
					time.AfterFunc(after, func() {
						log.mu.Lock()
						defer log.mu.Unlock()
						late()
					})
					return false, natslog.ErrOutcomeUnknown
				case 2:
					return false, natslog.ErrNotStored
				}
				return true, nil
			}
			var all sync.WaitGroup
			for range 60 {
				unique, ahead := dice.IntN(3) == 0, time.Duration(dice.IntN(1900))*time.Millisecond
				req := withID(tasks(1+dice.IntN(4)), true)
				req.RequestId = ids.NewRequestID(time.Now().Add(ahead)).String()
				for i, task := range req.Tasks {
					task.BatchId = "a"
					if unique {
						task.UniqueKey = strconv.Itoa(3*i + dice.IntN(3))
					} else {
						task.OrderKey = strconv.Itoa(dice.IntN(3))
					}
				}
				for try := range 1 + dice.IntN(4) {
					by, after := dice.IntN(2), time.Duration(dice.IntN(3500))*time.Millisecond
					again := req.CloneVT()
					again.Tries = int32(1 + try)
					all.Go(func() {
						time.Sleep(after)
						<-rigs[by].submit(t, again)
					})
				}
				time.Sleep(time.Duration(dice.IntN(100)) * time.Millisecond)
				if dice.IntN(2) == 0 {
					log.endsSome(t, dice)
				}
			}
			all.Wait()
			time.Sleep(time.Minute)
			n := int64(0)
			for _, of := range log.counting() {
				for id, times := range of {
					n++
					if times != 1 {
						t.Errorf("task %s is stored %d times", id, times)
					}
				}
			}
			testkit.Equal(t, "members are counted, and there are", log.membersOf(t), n)
		})
	}
}

// endsSome ends the tasks that have a unique key.
func (l *memLog) endsSome(t *testing.T, dice *rand.Rand) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, msgs := range l.partitions {
		last := map[string]natslog.Msg{}
		for _, m := range msgs {
			if strings.Contains(m.Subject, ".key.") {
				last[m.Subject] = m
			}
		}
		for _, subject := range slices.Sorted(maps.Keys(last)) {
			var said logv1.UniqueKey
			testkit.NoError(t, said.UnmarshalVT(last[subject].Data))
			if said.FreeAtMs != 0 || dice.IntN(2) == 0 {
				continue
			}
			said.FreeAtMs = time.Now().UnixMilli()
			l.store(p, natslog.Msg{Subject: subject, Data: testkit.Encoded(t, &said)})
		}
	}
}
