package scenario_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI1_ARepeatedRequestIsStoredOnce: its answer may have been lost at any moment of its tasks' lives; whether the client
// counts its tries or not.
func TestI1_ARepeatedRequestIsStoredOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for tries := range int32(2) {
			req := &yardv1.SubmitRequest{
				RequestId: ids.NewRequestID(time.Now()).String(), Tries: tries, Tasklist: list,
				Tasks: []*yardv1.NewTask{{Type: "now"}, {Type: "later", DelayMs: 3_600_000}},
			}
			first := must[yardv1.SubmitResponse](w, "tasks.submit", req).TaskIDs()
			again := func(moment string) {
				if req.Tries > 0 {
					req.Tries++
				}
				equal(t, moment, fmt.Sprint(must[yardv1.SubmitResponse](w, "tasks.submit", req).TaskIDs()), fmt.Sprint(first))
			}
			again("on its way")
			w.reach(first[1], "waiting")
			again("ready, and waiting")
			p := w.takeOne()
			again("running")
			equal(t, "verdict", w.complete(p), "OK")
			w.ended(first[0])
			again("ended")
			w.nothing(list)
			equal(t, "canceled", w.cancel(first[1]).Code, "OK")
		}
	})
}

// TestI1_WhatTheLogTookTooLateNeverWas: the log has a submit that counts only if it was taken earlier, beside one that
// counts. A frontend may have been stopped for long before it sent it.
func TestI1_WhatTheLogTookTooLateNeverWas(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var tasks []*logv1.Record
		for i, within := range []int64{6000, 60_000} {
			id := ids.NewTaskID(time.Now().Add(-10*time.Second), 0, uint64(time.Now().UnixNano())+uint64(i))
			tasks = append(tasks, &logv1.Record{
				Id: id[:], Domain: w.domain, Tasklist: list, Type: "x", Priority: 3, WithinMs: within,
				Policy: &logv1.Policy{MaxAttempts: 1, StartToCloseMs: 60_000},
			})
		}
		data, err := (&logv1.Batch{Tasks: tasks, LogVersion: 1}).MarshalVT()
		testkit.NoError(t, err)
		if _, _, err := natslog.Append(w.soon(), w.inside().Conn(), natslog.Msg{Subject: topology.Submit(0, 3, w.domain, list), Data: data}); err != nil {
			t.Fatal(err)
		}
		void, counts := ids.TaskID(tasks[0].Id).String(), ids.TaskID(tasks[1].Id).String()
		equal(t, "what runs", w.takeOne().TaskId, counts)
		w.nothing(list)
		_, err = call[yardv1.GetResponse](w, "tasks.get", &yardv1.GetRequest{TaskId: void})
		refused(t, err, fault.NotFound)
		equal(t, "the verdict on its cancel", w.cancel(void).Code, "NOT_FOUND")
	})
}

// TestI14_ARequestIDNamesNoOtherDomainsTasks: a client that knows the id of another domain's request gets tasks of their own.
func TestI14_ARequestIDNamesNoOtherDomainsTasks(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		thief := enter(t, w.stack)
		req := &yardv1.SubmitRequest{RequestId: ids.NewRequestID(time.Now()).String(), Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "x"}}}
		own := must[yardv1.SubmitResponse](w, "tasks.submit", req).TaskIDs()[0]
		other := must[yardv1.SubmitResponse](thief, "tasks.submit", req).TaskIDs()[0]
		if own == other {
			t.Errorf("both have task %s", own)
		}
		equal(t, "what runs", w.takeOne().TaskId, own)
		equal(t, "what runs for the other", thief.takeOne().TaskId, other)
	})
}
