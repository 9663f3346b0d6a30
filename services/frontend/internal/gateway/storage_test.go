package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/outcome"
)

// storageFull has the owner of a partition say so.
func (r *rig) storageFull(t *testing.T, p int, full bool) {
	t.Helper()
	r.TakeLoad(testkit.Encoded(t, &rpcv1.HistoryLoad{Partition: int32(p), StorageFull: full}))
}

// allFull has the owners of all partitions say so.
func (r *rig) allFull(t *testing.T, full bool) {
	t.Helper()
	for p := range rigPartitions {
		r.storageFull(t, p, full)
	}
}

// spanning is a request of two tasklists, which is stored as an atomic batch.
func spanning() *yardv1.SubmitRequest {
	req := tasks(2)
	req.Tasks[1].Tasklist = "other"
	return req
}

// TestR43_FullLogRefusesAtOnce: submits go to partitions with room, and are refused at once, as
// RESOURCE_EXHAUSTED, when there is none; they are accepted as soon as an owner has room.
func TestR43_FullLogRefusesAtOnce(t *testing.T) {
	for _, request := range []func() *yardv1.SubmitRequest{func() *yardv1.SubmitRequest { return tasks(2) }, spanning} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t).running(t)
			r.storageFull(t, 0, true)
			r.storageFull(t, 1, true)
			for range 3 {
				accepted(t, <-r.submit(t, request()))
			}
			if len(r.log.partitions[0])+len(r.log.partitions[1]) > 0 || r.Warn() == nil {
				t.Errorf("full partitions got tasks, or nothing warns: %v", r.Warn())
			}
			r.storageFull(t, 2, true)
			stored, began := r.log.messages(), time.Now()
			wantLater(t, (<-r.submit(t, request())).err, fault.ResourceExhausted)
			if took := time.Since(began); took > 0 || r.log.messages() != stored {
				t.Errorf("answered after %v, %d messages stored", took, r.log.messages()-stored)
			}
			r.storageFull(t, 1, false)
			accepted(t, <-r.submit(t, request()))
		})
	}
}

// TestR43_RefusalsOfTheLogAreRefusals: the log itself says that it is full, before any owner did.
func TestR43_RefusalsOfTheLogAreRefusals(t *testing.T) {
	for _, request := range []func() *yardv1.SubmitRequest{func() *yardv1.SubmitRequest { return tasks(2) }, spanning} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t).running(t)
			full := true
			r.log.fault = func(int, natslog.Msg) (bool, error) {
				if full {
					return false, natslog.ErrFull
				}
				return true, nil
			}
			began := time.Now()
			wantCode(t, (<-r.submit(t, request())).err, fault.ResourceExhausted)
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("answered after %v", took)
			}
			if r.Warn() == nil {
				t.Error("nothing warns")
			}
			r.log.mu.Lock()
			full = false
			r.log.mu.Unlock()
			time.Sleep(storageRetryAfter)
			accepted(t, <-r.submit(t, request()))
			testkit.Check(t, r.Warn())
		})
	}
}

// One partition is full for long. The others have room, and one append to each fails, as in an
// election: a submit is accepted when it is over, within its deadline, as it is if none is full.
func TestR43_AFullPartitionMakesNoFullStorageOfAnElection(t *testing.T) {
	for _, full := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t).running(t)
			r.storageFull(t, 0, full)
			electing := true
			r.log.fault = func(int, natslog.Msg) (bool, error) {
				if electing {
					return false, natslog.ErrNotStored
				}
				return true, nil
			}
			answer := r.submit(t, tasks(2))
			time.Sleep(500 * time.Millisecond)
			r.log.mu.Lock()
			electing = false
			r.log.mu.Unlock()
			if got := <-answer; got.err != nil {
				t.Errorf("one partition full: %v: %v", full, got.err)
			}
		})
	}
}

// Tasks with unique keys are for the one partition that their key names. Where the owner says that its log has no room they are refused, before they take what
// the events of all tasks need; those that have their keys are answered all the same.
func TestR43_AFullLogRefusesKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := uniqueRig(t, nil)
		_, first := outcomesOf(t, <-r.submit(t, withID(keyed("one"), true)))
		r.allFull(t, true)
		stored, began := r.log.messages(), time.Now()
		wantLater(t, (<-r.submit(t, withID(keyed("two"), true))).err, fault.ResourceExhausted)
		if got, _ := outcomesOf(t, <-r.submit(t, withID(keyed("one"), true))); got[0] != "existing "+first[0] {
			t.Errorf("%v, but %v has the key", got, first)
		}
		if took := time.Since(began); took > 0 || r.log.messages() != stored {
			t.Errorf("answered after %v, %d messages stored", took, r.log.messages()-stored)
		}
		r.allFull(t, false)
		accepted(t, <-r.submit(t, withID(keyed("two"), true)))

		r.log.fault = func(int, natslog.Msg) (bool, error) { return false, natslog.ErrFull }
		wantCode(t, (<-r.submit(t, withID(keyed("three"), true))).err, fault.ResourceExhausted)
		if r.Warn() == nil {
			t.Error("nothing warns")
		}
	})
}

// An update may bring as much as a submit, so where the log has no room for tasks it is refused, also as what replaces a task; one that brings nothing is not.
func TestR43_AFullLogRefusesNewPayloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := uniqueRig(t, nil)
		outcomesOf(t, <-r.submit(t, withID(replacing("one"), true)))
		r.allFull(t, true)
		update := func(u *yardv1.TaskUpdate) <-chan reply {
			answer, got := r.answers(t)
			u.TaskId = completion(1, 1).TaskId
			r.Update(r.call(), &yardv1.UpdateRequest{Tasks: []*yardv1.TaskUpdate{u}}, answer)
			return got
		}
		if v := verdicts(t, <-update(&yardv1.TaskUpdate{Payload: &yardv1.Payload{Data: []byte("1")}}))[0]; v.Code != string(fault.ResourceExhausted) {
			t.Errorf("a payload: %v", v)
		}
		wantCode(t, (<-r.submit(t, withID(replacing("one"), true))).err, fault.ResourceExhausted)
		testkit.Equal(t, "history was sent batches", len(r.bus.sentEvents()), 0)
		got := update(&yardv1.TaskUpdate{Priority: 1})
		r.verdictOn(t, &logv1.EventVerdict{Revision: 2})
		if v := verdicts(t, <-got)[0]; v.Code != outcome.CodeOK {
			t.Errorf("a priority: %v", v)
		}
	})
}
