package gateway

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
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
	home, _, err := r.batchHome(t.Context(), "shop", "a")
	testkit.NoError(t, err)
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
			time.Sleep(aliveFor + clocksApart)
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
			time.Sleep(aliveFor + clocksApart)
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
			for age, want := range map[time.Duration]fault.Code{appendUntil + time.Second: fault.Unknown, lastAlive + time.Minute: fault.FailedPrecondition} {
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
		var met, others []<-chan outcome
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
