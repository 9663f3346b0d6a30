package gateway

import (
	"context"
	"fmt"
	"sort"
	"strings"
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

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"
)

// onBatch runs a test in a bubble, on a rig that has the batch a.
func onBatch(t *testing.T, name string, test func(t *testing.T, r *rig)) {
	t.Helper()
	inBubble(t, name, func(t *testing.T) {
		r := newKnowingRig(t)
		testkit.NoError(t, testkit.Err(asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"})))
		test(t, r)
	})
}

// ofBatch has all tasks of a request be of the batch a.
func ofBatch(req *yardv1.SubmitRequest) *yardv1.SubmitRequest {
	for _, task := range req.Tasks {
		task.BatchId = "a"
	}
	return req
}

// memberKinds are requests of two members each, which lie in two partitions where they have keys.
func memberKinds() map[string]*yardv1.SubmitRequest {
	both := keyed("one", "two")
	both.Tasks[0].OrderKey, both.Tasks[1].OrderKey = keyIn(0), keyIn(1)
	return map[string]*yardv1.SubmitRequest{
		"no key": ofBatch(tasks(2)), "order keys": ofBatch(ordered(keyIn(0), keyIn(1))), "unique keys": ofBatch(keyed(uniqueIn(0), uniqueIn(1))), "both keys": ofBatch(both),
	}
}

// uniqueIn is a unique key of a partition.
func uniqueIn(p int) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint("key ", i); topology.UniqueKeyPartition("shop", key, topology.Partitioning{History: rigPartitions}) == p {
			return key
		}
	}
}

// closesIn has the log of one partition say that the batch a is closed there.
func (r *rig) closesIn(t *testing.T, p int) {
	t.Helper()
	home, _ := r.batchHome("shop", "a")
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.log.store(p, natslog.Msg{Subject: topology.BatchClosed(p, "shop", "a", home.CreatedAtMs), Data: testkit.Encoded(t, &logv1.BatchClosed{BatchId: "a", LogVersion: 1})})
}

// TestARepeatBehindTheCloseIsDecidedAtOnce: it is answered as the first try was, or that the tasks never will be stored.
func TestARepeatBehindTheCloseIsDecidedAtOnce(t *testing.T) {
	for name, req := range memberKinds() {
		onBatch(t, name, func(t *testing.T, r *rig) {
			req := withID(req, true)
			created := accepted(t, <-r.submit(t, req))
			other := withID(req.CloneVT(), true)
			for _, task := range other.Tasks {
				if task.UniqueKey != "" {
					task.UniqueKey += " other"
				}
			}
			testkit.NoError(t, testkit.Err(closers["close"](r)))
			time.Sleep(tries.AliveFor + tries.ClocksApart)
			began := time.Now()
			req.Tries, other.Tries = 2, 2
			equalIDs(t, accepted(t, <-r.submit(t, req)), created)
			wantCode(t, (<-r.submit(t, other)).err, fault.FailedPrecondition)
			if took := time.Since(began); took > time.Second {
				t.Errorf("it took %v", took)
			}
			wantOnce(t, r.log, created)
		})
	}
}

// TestARequestThatIsStoredInPartIsDecided: one of two partitions is closed before the request comes. Its repeats, once the batch is closed, are answered alike.
func TestARequestThatIsStoredInPartIsDecided(t *testing.T) {
	for name, req := range memberKinds() {
		if name == "no key" {
			continue
		}
		onBatch(t, name, func(t *testing.T, r *rig) {
			req := withID(req, true)
			r.closesIn(t, 1)
			got, created := outcomesOf(t, <-r.submit(t, req))
			if len(got) != 2 || !strings.HasPrefix(got[0], "created ") || strings.TrimSpace(got[1]) != "refused" {
				t.Fatalf("the first try got %q", got)
			}
			testkit.NoError(t, testkit.Err(closers["close"](r)))
			time.Sleep(tries.AliveFor + tries.ClocksApart)
			req.Tries = 2
			again, _ := outcomesOf(t, <-r.submit(t, req))
			testkit.Equal(t, "a repeat", fmt.Sprint(again), fmt.Sprint(got))
			wantOnce(t, r.log, created)
		})
	}
}

// TestTheRepeatOfAMemberIsKnownForAMinuteAndAHalf, as any request is: then no try of it can be stored any more.
func TestTheRepeatOfAMemberIsKnownForAMinuteAndAHalf(t *testing.T) {
	for name, req := range memberKinds() {
		onBatch(t, name, func(t *testing.T, r *rig) {
			for age, want := range map[time.Duration]fault.Code{tries.AppendUntil + time.Second: fault.Unknown, tries.LastAlive + time.Minute: fault.FailedPrecondition} {
				req := req.CloneVT()
				req.RequestId, req.Tries = ids.NewRequestID(time.Now().Add(-age)).String(), 2
				wantCode(t, (<-r.submit(t, req)).err, want)
			}
			wantOnce(t, r.log, nil)
		})
	}
}

// TestBatchesShareNoMessage: the log refuses the tasks of one that is closed, and takes those of the others of the same flush.
func TestBatchesShareNoMessage(t *testing.T) {
	onBatch(t, "", func(t *testing.T, r *rig) {
		testkit.NoError(t, testkit.Err(asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "b"})))
		accepted(t, <-r.submit(t, withID(ofBatch(tasks(1)), true))) // from now on it is taken for open
		b := withID(tasks(1), true)
		b.Tasks[0].BatchId = "b"
		accepted(t, <-r.submit(t, b))
		for p := range rigPartitions {
			r.closesIn(t, p)
		}
		r.log.gate = make(chan struct{})
		var met, others []<-chan reply
		for range 4 * rigPartitions { // behind the first ones the others gather
			others = append(others, r.submit(t, withID(tasks(1), true)), r.submit(t, withID(b, true)))
			met = append(met, r.submit(t, withID(ofBatch(tasks(1)), true)))
			synctest.Wait()
		}
		close(r.log.gate)
		for _, got := range met {
			wantCode(t, (<-got).err, fault.FailedPrecondition)
		}
		for _, got := range others {
			accepted(t, <-got)
		}
		wantMarksOnce(t, r.log, len(others)+2)
	})
}

// TestAClusterThatRefusesForWhatIsOnItsWay does not close a batch: its tasks are sent again.
func TestAClusterThatRefusesForWhatIsOnItsWay(t *testing.T) {
	for name, req := range memberKinds() {
		onBatch(t, name, func(t *testing.T, r *rig) {
			refusals := 3
			r.log.fault = func(int, natslog.Msg) (bool, error) {
				if refusals--; refusals >= 0 {
					return false, fmt.Errorf("%w: %w", natslog.ErrNotStored, natslog.ErrWrongLast)
				}
				return true, nil
			}
			wantOnce(t, r.log, accepted(t, <-r.submit(t, withID(req, true))))
		})
	}
}

// TestAMemberOfNoBatch is refused, with the path of its batch.
func TestAMemberOfNoBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKnowingRig(t)
		for tries := range int32(3) {
			req := withID(ofBatch(tasks(1)), true)
			req.Tries = tries
			e := fault.From((<-r.submit(t, req)).err)
			testkit.Equal(t, "the refusal", fmt.Sprint(e.Code, " ", e.Path), "NOT_FOUND /tasks/0/batch_id")
		}
	})
}

// TestManyMembersAtOnceReadTheirBatchOnce, however many come while it is not known.
func TestManyMembersAtOnceReadTheirBatchOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		r := newKnowingRig(t, func(d *Deps) { d.History = countingLog{d.History, &reads} })
		testkit.NoError(t, testkit.Err(asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"})))
		const members = 2000
		for range 2 {
			reads.Store(0)
			var got []<-chan reply
			for range members {
				got = append(got, r.submit(t, withID(ofBatch(tasks(1)), true)))
			}
			for _, one := range got {
				accepted(t, <-one)
			}
			if n := reads.Load(); n < 1 || n > 2 {
				t.Errorf("the batch was read %d times", n)
			}
			time.Sleep(openKnownFor)
		}
		wantMarksOnce(t, r.log, 2*members)
	})
}

// TestAMemberIsMeasuredAsItIsSent: with the time of its batch, which the frontend adds, no message is longer than the log takes.
func TestAMemberIsMeasuredAsItIsSent(t *testing.T) {
	onBatch(t, "", func(t *testing.T, r *rig) {
		longest := 0
		r.log.fault = func(_ int, m natslog.Msg) (bool, error) {
			longest = max(longest, len(m.Data))
			return true, nil
		}
		refused := sort.Search(512, func(n int) bool { // the first request that is over the limit
			req := ofBatch(tasks(1000))
			for _, task := range req.Tasks {
				task.Payload = &yardv1.Payload{Data: make([]byte, 900)}
			}
			req.Tasks[0].Payload.Data = make([]byte, n*512)
			return (<-r.submit(t, withID(req, true))).err != nil
		})
		if refused == 0 || refused == 512 {
			t.Fatal("no limit is found")
		}
		const room = 4 << 10 // that of headers, and of what dates tasks
		if limit := r.log.MessageBytesMax(); longest > limit+room {
			t.Errorf("%d bytes were sent, the limit is %d", longest, limit)
		}
	})
}

// TestADrainRefusesNoTaskForGood: a try of it may be under way, so a request of which some tasks are stored is UNKNOWN.
func TestADrainRefusesNoTaskForGood(t *testing.T) {
	for _, req := range []*yardv1.SubmitRequest{ordered(keyIn(0), keyIn(1)), keyed(uniqueIn(0), uniqueIn(1))} {
		onKnowing(t, func(t *testing.T, r *rig) {
			r.log.fault = func(p int, _ natslog.Msg) (bool, error) {
				if p == 1 {
					return false, natslog.ErrOutcomeUnknown
				}
				return true, nil
			}
			req := withID(req, true)
			wantCode(t, (<-r.submit(t, req)).err, fault.Unknown)
			r.drainList(t, "main")
			req.Tries = 2
			wantCode(t, (<-r.submit(t, req)).err, fault.Unknown)
		})
	}
}

// TestABatchThatEndsWhileItIsCounted is shown as it ended, and never with fewer tasks than have ended.
func TestABatchThatEndsWhileItIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		ends := func(context.Context, int, *rpcv1.CountBatchRequest) (*rpcv1.CountBatchResponse, error) {
			err := r.changeBatch("shop", "a", func(was *logv1.BatchHome) *logv1.BatchHome {
				over := was.CloneVT()
				over.EndedAtMs, over.Tasks, over.Ends = 1, 6, &logv1.BatchEnds{Completed: 6}
				return over
			})
			return &rpcv1.CountBatchResponse{Complete: true}, err
		}
		r = newKnowingRig(t, func(d *Deps) { d.Owners.HistoryBatch = ends })
		testkit.NoError(t, testkit.Err(asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"})))
		resp, err := asked(r, "shop", false, r.GetBatch, &yardv1.GetBatchRequest{BatchId: "a"})
		testkit.NoError(t, err)
		if b := resp.(*yardv1.GetBatchResponse).Batch; b.Tasks != 6 || b.Active != 0 || b.State != yardv1.BatchState_BATCH_STATE_COMPLETED {
			t.Errorf("%v", b)
		}
	})
}
