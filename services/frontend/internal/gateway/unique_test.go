package gateway

import (
	"context"
	"fmt"
	"strings"
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

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"
)

// uniqueRig is a rig; others share its log.
func uniqueRig(t *testing.T, of *rig, change ...func(*Deps)) *rig {
	if of == nil {
		return newKnowingRig(t, change...)
	}
	r := newKnowingRig(t, append(change, func(d *Deps) { d.History = of.log })...)
	r.log = of.log
	return r
}

// keyed is a request of tasks with these keys.
func keyed(keys ...string) *yardv1.SubmitRequest {
	req := tasks(len(keys))
	for i, key := range keys {
		req.Tasks[i].UniqueKey = key
	}
	return req
}

// outcomesOf is what became of the tasks of a request.
func outcomesOf(t *testing.T, o reply) (all []string, created []string) {
	t.Helper()
	if o.err != nil {
		t.Fatal(o.err)
	}
	for _, r := range o.resp.(*yardv1.SubmitResponse).Results {
		all = append(all, strings.ToLower(strings.TrimPrefix(r.Outcome.String(), "SUBMIT_OUTCOME_"))+" "+r.TaskId)
		if r.Outcome == yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED {
			created = append(created, r.TaskId)
		}
	}
	return all, created
}

// ends says that a task with a key has ended, as its owner does.
func (l *memLog) ends(t *testing.T, domain, key string, freeAt time.Time) {
	t.Helper()
	p := topology.UniqueKeyPartition(domain, key, topology.Partitioning{History: rigPartitions})
	subject := topology.UniqueKey(p, domain, key)
	last, _ := l.LastFor(t.Context(), p, subject)
	var said logv1.UniqueKey
	testkit.NoError(t, said.UnmarshalVT(last.Data))
	said.FreeAtMs = freeAt.UnixMilli()
	data := testkit.Encoded(t, &said)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.store(p, natslog.Msg{Subject: subject, Data: data})
}

// forgetsKey removes all that is said about a key.
func (l *memLog) forgetsKey(domain, key string) {
	p := topology.UniqueKeyPartition(domain, key, topology.Partitioning{History: rigPartitions})
	subject := topology.UniqueKey(p, domain, key)
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range l.partitions[p] {
		if l.partitions[p][k].Subject == subject {
			l.partitions[p][k].Subject = "forgotten.key."
		}
	}
}

// While a task has a key, at whichever frontend, it is the result of every submit with that key.
func TestAKeyIsTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := uniqueRig(t, nil)
		b := uniqueRig(t, a)
		_, first := outcomesOf(t, <-a.submit(t, withID(keyed("one", "two", "three", "four"), true)))
		testkit.MustEqual(t, "of 4 tasks were created", len(first), 4)
		req := withID(keyed("five", "two", "six", "four"), true)
		req.Tasks[3].OnConflict = yardv1.OnConflict_ON_CONFLICT_REJECT
		got, created := outcomesOf(t, <-b.submit(t, req))
		if len(created) != 2 || got[1] != "existing "+first[1] || got[3] != "rejected "+first[3] {
			t.Errorf("got %v, the first ones are %v", got, first)
		}
		wantOnce(t, a.log, append(first, created...))
	})
}

// Keys of the domains are their own.
func TestI14_AKeyIsOfItsDomain(t *testing.T) {
	if topology.UniqueKey(0, "shop", "7") == topology.UniqueKey(0, "bank", "7") {
		t.Error("two domains have one key")
	}
}

// A key is free for others when its task has ended, after as long as the task said, and not before.
func TestAKeyIsFreeAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := uniqueRig(t, nil)
		_, first := outcomesOf(t, <-a.submit(t, withID(keyed("one"), true)))
		a.log.ends(t, "shop", "one", time.Now().Add(time.Hour))
		time.Sleep(time.Hour - time.Minute)
		if got, _ := outcomesOf(t, <-a.submit(t, withID(keyed("one"), true))); got[0] != "existing "+first[0] {
			t.Errorf("a minute before it is free: %v", got)
		}
		time.Sleep(time.Minute)
		_, second := outcomesOf(t, <-a.submit(t, withID(keyed("one"), true)))
		if len(second) != 1 || second[0] == first[0] {
			t.Errorf("when it is free: created %v, before %v", second, first)
		}
		wantOnce(t, a.log, append(first, second...))
	})
}

// Its owner says that it has ended before the log says so of its key, and the owner may be away.
func TestAKeyIsFreeWithTheEndOfItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var known *yardv1.Task
		away := false
		a := uniqueRig(t, nil, func(d *Deps) {
			get := d.Owners.HistoryGet
			d.Owners.HistoryGet = func(ctx context.Context, p int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				if !req.InMemory {
					return get(ctx, p, req)
				}
				if away {
					return nil, fault.New(fault.Unavailable, "no owner")
				}
				return &rpcv1.GetTaskResponse{Task: known}, nil
			}
		})
		_, first := outcomesOf(t, <-a.submit(t, keyed("one")))
		taken := func(when string) {
			t.Helper()
			if got, _ := outcomesOf(t, <-a.submit(t, keyed("one"))); got[0] != "existing "+first[0] {
				t.Errorf("%s: %v", when, got)
			}
		}
		taken("it is not in memory")
		known = &yardv1.Task{UniqueForMs: 1000}
		taken("it runs")
		known.FinishedAtMs = time.Now().UnixMilli()
		taken("it has ended and keeps its key")
		time.Sleep(time.Second)
		away = true
		taken("its owner is away")
		away = false
		if _, second := outcomesOf(t, <-a.submit(t, keyed("one"))); len(second) != 1 || second[0] == first[0] {
			t.Errorf("it has ended: created %v, before %v", second, first)
		}
	})
}

// A repeat has the results of the first try, also where the answer was lost, another frontend has it, or the task has ended meanwhile.
func TestI1_ARepeatWithKeysIsAnsweredAsTheFirstTime(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 20 * time.Second, 5 * time.Minute} {
		for _, ended := range []bool{false, true} {
			for _, counted := range []bool{false, true} {
				inBubble(t, fmt.Sprintf("%v ended=%v counted=%v", after, ended, counted), func(t *testing.T) {
					a := uniqueRig(t, nil)
					b := uniqueRig(t, a)
					req := withID(keyed("one", "two", "three"), counted)
					first, created := outcomesOf(t, <-a.submit(t, req))
					if ended {
						a.log.ends(t, "shop", "two", time.Now())
					}
					time.Sleep(after)
					if ended && after > topology.UniqueKeyKept {
						a.log.forgetsKey("shop", "two")
					}
					if counted {
						req.Tries++
					}
					again, _ := outcomesOf(t, <-b.submit(t, req))
					equalIDs(t, again, first)
					wantOnce(t, a.log, created)
				})
			}
		}
	}
}

// What the log took too late is void, and so is its word on the key: another task gets it at once, and no client is answered with one that never was.
func TestI1_AVoidTaskKeepsNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := uniqueRig(t, nil)
		a.log.fault = func(int, natslog.Msg) (bool, error) {
			time.Sleep(tries.AliveFor + time.Second)
			return true, natslog.ErrOutcomeUnknown
		}
		req := withID(keyed("one"), true)
		wantCode(t, (<-a.submit(t, req)).err, fault.Unknown)
		a.log.fault = nil
		got, created := outcomesOf(t, <-a.submit(t, withID(keyed("one"), true)))
		testkit.MustEqual(t, fmt.Sprintf("another request got %v", got), len(created), 1)
		req.Tries++
		if again, _ := outcomesOf(t, <-a.submit(t, req)); again[0] != "existing "+created[0] {
			t.Errorf("the repeat got %v", again)
		}
		wantOnce(t, a.log, created)
	})
}

// A repeat that comes too late to be stored says so once no try of it can be stored any more. A try that replaced a task left none of its own: its
// repeat is never sure.
func TestAnOldRequestWithKeysIsNotStored(t *testing.T) {
	for name, c := range map[string]struct {
		age  time.Duration
		on   yardv1.OnConflict
		code fault.Code
	}{
		"tries may be stored for longer than it waits": {tries.AppendUntil + time.Second, yardv1.OnConflict_ON_CONFLICT_EXISTING, fault.Unknown},
		"no try is any more":                           {tries.LastAlive - time.Second, yardv1.OnConflict_ON_CONFLICT_EXISTING, fault.FailedPrecondition},
		"long ago":                                     {9 * time.Minute, yardv1.OnConflict_ON_CONFLICT_REJECT, fault.FailedPrecondition},
		"it may have replaced a task":                  {9 * time.Minute, yardv1.OnConflict_ON_CONFLICT_REPLACE, fault.Unknown},
	} {
		inBubble(t, name, func(t *testing.T) {
			r := uniqueRig(t, nil)
			req := keyed("one", "two", "three")
			for _, task := range req.Tasks {
				task.OnConflict = c.on
			}
			req.RequestId, req.Tries = ids.NewRequestID(time.Now().Add(-c.age)).String(), 2
			wantCode(t, (<-r.submit(t, req)).err, c.code)
			wantOnce(t, r.log, nil)
		})
	}
}

// The log acknowledges a try so late that it may have taken it too late, and has.
func TestI1_ALateAcknowledgementOfAKeyIsLookedInto(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := uniqueRig(t, nil)
		a.log.atomicFault = func(late func()) (bool, error) {
			time.Sleep(tries.AliveFor + time.Second)
			return true, nil
		}
		wantCode(t, (<-a.submit(t, withID(keyed("one"), true))).err, fault.Unknown)
		wantOnce(t, a.log, nil)
	})
}

func TestTheKeyOfATaskThatNeverWasIsGivenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := uniqueRig(t, nil)
		p := topology.UniqueKeyPartition("shop", "one", topology.Partitioning{History: rigPartitions, Matching: rigShards})
		id := ids.NewTaskID(time.Now(), p, 77)
		a.log.store(p, natslog.Msg{Subject: topology.UniqueKey(p, "shop", "one"), Data: testkit.Encoded(t, &logv1.UniqueKey{TaskId: id[:], Key: "one"})})
		if got, _ := outcomesOf(t, <-a.submit(t, withID(keyed("one"), true))); got[0] != "existing "+id.String() {
			t.Errorf("at once: %v", got)
		}
		time.Sleep(3 * time.Minute)
		if got, created := outcomesOf(t, <-a.submit(t, withID(keyed("one"), true))); len(created) != 1 {
			t.Errorf("later: %v", got)
		}
	})
}

// Records say where in the log the word on their key lies.
func TestARecordSaysWhereItsKeyLies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := uniqueRig(t, nil)
		var keys []string
		for i := range 30 {
			keys = append(keys, fmt.Sprint("key ", i))
		}
		req := withID(keyed(keys...), true)
		for i, task := range req.Tasks {
			task.Priority = int32(1 + i%5)
			task.Tasklist = fmt.Sprint("list-", i%3)
		}
		outcomesOf(t, <-a.submit(t, req))
		n := 0
		for p, msgs := range a.log.partitions {
			for i, m := range submits(msgs) {
				for _, r := range batchOf(m.Data).Tasks {
					n++
					at := i - int(r.Unique.Before)
					if want := topology.UniqueKey(p, "shop", r.Unique.Key); at < 0 || msgs[at].Subject != want {
						t.Fatalf("message %d of partition %d: the key of a task lies %d before, where %q is", i, p, r.Unique.Before, msgs[max(at, 0)].Subject)
					}
				}
			}
		}
		testkit.Equal(t, "tasks are stored", n, len(keys))
	})
}
