package gateway

import (
	"cmp"
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
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// linesOf has the owners of partitions tell of keys, in order, at most two on a page.
func linesOf(parts map[int][]*yardv1.OrderKey) func(*Deps) {
	return func(d *Deps) {
		d.Owners.HistoryKeys = func(_ context.Context, p int, req *rpcv1.ListKeysRequest) (*rpcv1.ListKeysResponse, error) {
			if req.Domain != "shop" {
				return nil, fault.New(fault.Internal, "asked for %s", req.Domain)
			}
			out := &rpcv1.ListKeysResponse{}
			for _, k := range parts[p] {
				after := &yardv1.OrderKey{SinceMs: req.AfterSinceMs, OrderKey: req.AfterKey}
				switch {
				case req.OrderKey != "" && k.OrderKey != req.OrderKey, req.AfterKey != "" && cmp.Or(cmp.Compare(k.SinceMs, after.SinceMs), strings.Compare(k.OrderKey, after.OrderKey)) <= 0, req.Blocked && !k.Head.GetBlocked():
				case len(out.Keys) == min(2, int(req.Limit)):
					out.More = true
				default:
					out.Keys = append(out.Keys, k.CloneVT())
				}
			}
			return out, nil
		}
	}
}

// TestKeysOfAllPartitionsAreJoined: each once, those that wait for longest at first, page by page.
func TestKeysOfAllPartitionsAreJoined(t *testing.T) {
	one := func(key string, since int64) *yardv1.OrderKey { return &yardv1.OrderKey{OrderKey: key, SinceMs: since} }
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, linesOf(map[int][]*yardv1.OrderKey{
			0: {one("a", 1), one("d", 4), one("f", 6), one("g", 7), one("h", 8)},
			1: {one("b.c", 2), one("c", 3), one("e", 4)},
		}))
		var got []string
		for req := (&yardv1.ListKeysRequest{}); ; {
			page := answerOf[*yardv1.ListKeysResponse](t, r, "shop", true, r.ListKeys, req)
			for _, k := range page.Keys {
				got = append(got, k.OrderKey)
			}
			if req.Cursor = page.NextCursor; req.Cursor == "" {
				break
			}
		}
		if fmt.Sprint(got) != "[a b.c c d e f g h]" {
			t.Errorf("listed %v", got)
		}
		for _, cursor := range []string{"x", "5", "5.", "x.a", "5." + strings.Repeat("k", 257)} {
			wantAt(t, testkit.Err(asked(r, "shop", true, r.ListKeys, &yardv1.ListKeysRequest{Cursor: cursor})), fault.InvalidArgument, "/cursor")
		}
	})
}

// delayedOf is a task that waits for its time.
func delayedOf(head ids.TaskID) ids.TaskID { return ids.NewTaskID(head.Time(), 2, 8) }

// withHead is a rig in which a task is the first one of the key. Each other task that is asked for waits behind it.
func withHead(t *testing.T) (r *rig, key string, head ids.TaskID) {
	key = keyIn(2)
	head = ids.NewTaskID(time.Now(), 2, 7)
	p := topology.OrderKeyPartition("shop", key, topology.Partitioning{History: rigPartitions})
	first := &yardv1.Task{TaskId: head.String(), OrderKey: key, Blocked: true}
	lines := linesOf(map[int][]*yardv1.OrderKey{p: {{OrderKey: key, Head: first, Waiting: 3}}})
	return newRig(t, lines, func(d *Deps) {
		d.Owners.HistoryGet = func(_ context.Context, _ int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
			id := ids.TaskID(req.TaskId)
			task := &yardv1.Task{TaskId: id.String(), OrderKey: key, AwaitsTurn: id != head}
			if id == delayedOf(head) {
				task.AwaitsTurn, task.State = false, yardv1.TaskState_TASK_STATE_WAITING
			}
			return &rpcv1.GetTaskResponse{Task: task}, nil
		}
	}).running(t), key, head
}

// TestOperatorsChangeTheFirstTaskOfAKey: it is looked up if it is not named, and the log decides.
func TestOperatorsChangeTheFirstTaskOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, key, head := withHead(t)
		got, err := ask[*yardv1.GetKeyRequest, *yardv1.GetKeyResponse](t, r, r.GetKey, &yardv1.GetKeyRequest{OrderKey: key})
		if err != nil || got.Key.Waiting != 3 || got.Key.Head.TaskId != head.String() {
			t.Fatalf("%v: %v", got, err)
		}
		skipped, err := ask[*yardv1.SkipKeyRequest, *yardv1.SkipKeyResponse](t, r, r.SkipKey, &yardv1.SkipKeyRequest{OrderKey: key, By: "ann", Reason: "closed", CancelRunning: true})
		if err != nil || skipped.TaskId != head.String() {
			t.Fatalf("%v: %v", skipped, err)
		}
		unblocked, err := ask[*yardv1.UnblockKeyRequest, *yardv1.UnblockKeyResponse](t, r, r.UnblockKey,
			&yardv1.UnblockKeyRequest{OrderKey: key, Retry: &yardv1.RetryPolicy{MaxAttempts: 9}})
		if err != nil || unblocked.TaskId != head.String() {
			t.Fatalf("%v: %v", unblocked, err)
		}
		for _, other := range []ids.TaskID{ids.NewTaskID(time.Now(), 2, 9), delayedOf(head)} {
			wantAt(t, testkit.Err(asked(r, "shop", true, r.SkipKey, &yardv1.SkipKeyRequest{OrderKey: key, TaskId: other.String()})), fault.FailedPrecondition, "/task_id")
		}
		id := "01890f3e-7b00-7000-8000-000000000001"
		for range 2 {
			testkit.NoError(t, testkit.Err(ask[*yardv1.SkipKeyRequest, *yardv1.SkipKeyResponse](t, r, r.SkipKey, &yardv1.SkipKeyRequest{OrderKey: key, TaskId: head.String(), RequestId: id})))
		}
		events := r.redrives()
		testkit.MustEqual(t, "events", len(events), 4)
		skip, unblock := events[0], events[1]
		if skip.Kind != logv1.EventKind_EVENT_KIND_SKIPPED || skip.OrderKey != key || skip.Message != "skipped by ann: closed" || !skip.CancelRunning || skip.Domain != "shop" ||
			ids.TaskID(skip.TaskId) != head || skip.Update.GetRequest() == 0 {
			t.Errorf("skipped by %v", skip)
		}
		if unblock.Kind != logv1.EventKind_EVENT_KIND_UNBLOCKED || unblock.OrderKey != key || unblock.Update.GetPolicy().GetMaxAttempts() != 9 || unblock.Message != "unblocked" ||
			unblock.Update.Request == skip.Update.Request {
			t.Errorf("unblocked by %v", unblock)
		}
		if ids.TaskID(events[2].TaskId) != head || events[2].Update.Request != events[3].Update.Request {
			t.Errorf("a repeat is another request: %v, %v", events[2], events[3])
		}
		wantCode(t, testkit.Err(ask[*yardv1.SkipKeyRequest, *yardv1.SkipKeyResponse](t, r, r.SkipKey, &yardv1.SkipKeyRequest{OrderKey: key + "x"})), fault.NotFound)
	})
}

// TestARefusedCommandOfAKeyIsAnError with the code that the log gave.
func TestARefusedCommandOfAKeyIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, key, head := withHead(t)
		got := sent(t, r, r.UnblockKey, &yardv1.UnblockKeyRequest{OrderKey: key, TaskId: head.String()})
		synctest.Wait()
		r.verdictOn(t, &logv1.EventVerdict{Code: string(fault.FailedPrecondition), Message: "it does not block"})
		if o := <-got; fault.CodeOf(o.err) != fault.FailedPrecondition || !strings.Contains(o.err.Error(), "it does not block") {
			t.Errorf("%v", o.err)
		}
	})
}

func TestBadCommandsOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, key, _ := withHead(t)
		long := strings.Repeat("x", 801)
		for path, req := range map[string]*yardv1.SkipKeyRequest{
			"/order_key": {}, "/task_id": {OrderKey: key, TaskId: "7"}, "/reason": {OrderKey: key, Reason: long}, "/by": {OrderKey: key, By: long}, "/request_id": {OrderKey: key, RequestId: "7"},
		} {
			wantAt(t, testkit.Err(asked(r, "shop", true, r.SkipKey, req)), fault.InvalidArgument, path)
		}
		wantCode(t, testkit.Err(asked(r, "shop", true, r.UnblockKey, &yardv1.UnblockKeyRequest{OrderKey: key, Retry: &yardv1.RetryPolicy{MaxAttempts: -1}})), fault.InvalidArgument)
		wantCode(t, testkit.Err(asked(r, "shop", true, r.GetKey, &yardv1.GetKeyRequest{OrderKey: strings.Repeat("x", 257)})), fault.InvalidArgument)
		testkit.Equal(t, "events were sent", len(r.bus.sentEvents()), 0)
	})
}
