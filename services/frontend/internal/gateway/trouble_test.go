package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestStuckTasksOfAllPartitionsAreJoined: those that run for longest first, as many as are wanted, and the number of all.
func TestStuckTasksOfAllPartitionsAreJoined(t *testing.T) {
	one := func(id string, at int64) *yardv1.StuckTask { return &yardv1.StuckTask{TaskId: id, StartedAtMs: at} }
	parts := [rigPartitions]*yardv1.StuckTasksResponse{
		0: {Tasks: []*yardv1.StuckTask{one("c", 3), one("e", 5), one("f", 6)}, Found: 12}, 1: {Tasks: []*yardv1.StuckTask{one("a", 1), one("d", 3)}, Found: 2}, 2: {},
	}
	synctest.Test(t, func(t *testing.T) {
		asks := make(chan *rpcv1.StuckTasksRequest, rigPartitions)
		r := newRig(t, func(d *Deps) {
			d.Owners.HistoryStuck = func(_ context.Context, p int, req *rpcv1.StuckTasksRequest) (*yardv1.StuckTasksResponse, error) {
				asks <- req
				return parts[p].CloneVT(), nil
			}
		})
		got := answerOf[*yardv1.StuckTasksResponse](t, r, "shop", true, r.StuckTasks, &yardv1.StuckTasksRequest{Limit: 3, Type: "send", RunningForMs: 5})
		var all []string
		for _, task := range got.Tasks {
			all = append(all, task.TaskId)
		}
		testkit.Equal(t, "listed", fmt.Sprint(all, got.Found), "[a c d] 14")
		ask := <-asks
		testkit.Equal(t, "asked", fmt.Sprint(ask.Domain, ask.Filter.Type, ask.Filter.RunningForMs, ask.Filter.Limit), fmt.Sprint("shop", "send", 5, 3))
	})
}

// TestEndsByHandReachTheLog with their state, their result and who has made them. Workers hear of it.
func TestEndsByHandReachTheLog(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		id := completion(1, 1).TaskId
		got := sent(t, r, r.End, &yardv1.EndTasksRequest{
			TaskIds: []string{id}, State: yardv1.TaskState_TASK_STATE_COMPLETED, Result: &yardv1.Payload{Data: []byte("7")}, By: "ann", Reason: "sent by phone",
		})
		synctest.Wait()
		batch := r.bus.sentEvents()[0]
		e := batch.batch.Events[0]
		testkit.Equal(t, "event", fmt.Sprint(e.Kind, e.Update.EndState, string(e.Update.Payload), e.Message, e.Update.GetRequest() != 0), fmt.Sprint(
			logv1.EventKind_EVENT_KIND_ENDED, int32(yardv1.TaskState_TASK_STATE_COMPLETED), "7", "ended by ann: sent by phone", true))
		r.TakeVerdicts(testkit.Encoded(t, &logv1.VerdictBatch{RequestId: batch.id, Verdicts: []*logv1.EventVerdict{{Revision: 2}}}))
		v := verdicts(t, <-got)[0]
		testkit.Equal(t, "verdict", fmt.Sprint(v.Code, v.Revision), "OK2")
		r.bus.mu.Lock()
		defer r.bus.mu.Unlock()
		testkit.Equal(t, "hints", r.bus.hints, []string{`shop {"task_ids":["` + id + `"]}`})
	})
}

// TestBadRequestsOfOperatorsAreRefused with the path of the field.
func TestBadRequestsOfOperatorsAreRefused(t *testing.T) {
	id := completion(1, 1).TaskId
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for path, req := range map[string]*yardv1.EndTasksRequest{
			"/task_ids":   {State: yardv1.TaskState_TASK_STATE_DEAD},
			"/task_ids/0": {TaskIds: []string{"x"}, State: yardv1.TaskState_TASK_STATE_DEAD},
			"/state":      {TaskIds: []string{id}, State: yardv1.TaskState_TASK_STATE_READY},
			"/result":     {TaskIds: []string{id}, State: yardv1.TaskState_TASK_STATE_DEAD, Result: &yardv1.Payload{Data: []byte("7")}},
			"/reason":     {TaskIds: []string{id}, State: yardv1.TaskState_TASK_STATE_DEAD, Reason: strings.Repeat("x", 801)},
			"/by":         {TaskIds: []string{id}, State: yardv1.TaskState_TASK_STATE_DEAD, By: strings.Repeat("x", 129)},
			"/tries":      {TaskIds: []string{id}, State: yardv1.TaskState_TASK_STATE_DEAD, Tries: 1},
		} {
			wantAt(t, testkit.Err(asked(r, "shop", true, r.End, req)), fault.InvalidArgument, path)
		}
		for path, req := range map[string]*yardv1.StuckTasksRequest{
			"/tasklist": {Tasklist: "a b"}, "/type": {Type: ".a"}, "/running_for_ms": {RunningForMs: -1}, "/limit": {Limit: 1001},
		} {
			wantAt(t, testkit.Err(asked(r, "shop", true, r.StuckTasks, req)), fault.InvalidArgument, path)
		}
	})
}
