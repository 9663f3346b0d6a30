package yard_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

func TestOrderKeysAreListedPageByPage(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		steps := answering[yardv1.ListKeysRequest](t, s, topology.API("shop", "keys.list"),
			&yardv1.ListKeysResponse{Keys: []*yardv1.OrderKey{{OrderKey: "a", Head: &yardv1.Task{TaskId: "t", Blocked: true}, Waiting: 3, SinceMs: 5000, Reason: "no route"}}, NextCursor: "5000.a"},
			&yardv1.ListKeysResponse{Keys: []*yardv1.OrderKey{{OrderKey: "b"}}},
		)
		var got []yard.OrderKeyInfo
		for k, err := range s.client.OrderKeys(soon(t), yard.KeyFilter{Blocked: true, Waiting: true}) {
			checktest.NoError(t, err)
			got = append(got, k)
		}
		if len(got) != 2 || got[1].Key != "b" || got[0].Key != "a" || got[0].Head.ID != "t" || !got[0].Head.Blocked || got[0].Waiting != 3 || got[0].Since.UnixMilli() != 5000 || got[0].Reason != "no route" {
			t.Errorf("listed %+v", got)
		}
		for i, cursor := range []string{"", "5000.a"} {
			if want := (&yardv1.ListKeysRequest{Blocked: true, Waiting: true, Cursor: cursor}); !proto.Equal(steps.requests()[i], want) {
				t.Errorf("page %d: %v", i, steps.requests()[i])
			}
		}
	})
}

// TestACommandOfAKeyNamesItsTask, so that a repeat, which the client sends itself, does not meet the next one.
func TestACommandOfAKeyNamesItsTask(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		answering[yardv1.GetKeyRequest](t, s, topology.API("shop", "keys.get"), &yardv1.GetKeyResponse{Key: &yardv1.OrderKey{OrderKey: "a", Head: &yardv1.Task{TaskId: "t"}}},
			fault.New(fault.NotFound, "no such key"))
		skips := answering[yardv1.SkipKeyRequest](t, s, topology.API("shop", "keys.skip"), fault.New(fault.Unknown, "no verdict"), &yardv1.SkipKeyResponse{TaskId: "t"})
		unblocks := answering[yardv1.UnblockKeyRequest](t, s, topology.API("shop", "keys.unblock"), &yardv1.UnblockKeyResponse{TaskId: "u"})
		if id, err := s.client.SkipKey(soon(t), "a", yard.KeyOptions{CancelRunning: true, Reason: "closed", By: "ann"}); id != "t" || err != nil {
			t.Fatal(id, err)
		}
		sent := skips.requests()
		if len(sent) != 2 || sent[1].Tries != 2 || sent[0].RequestId == "" || sent[1].RequestId != sent[0].RequestId || sent[1].TaskId != "t" {
			t.Fatalf("sent %v", sent)
		}
		if want := (&yardv1.SkipKeyRequest{OrderKey: "a", TaskId: "t", CancelRunning: true, Reason: "closed", By: "ann", RequestId: sent[0].RequestId, Tries: 1}); !proto.Equal(sent[0], want) {
			t.Errorf("sent %v", sent[0])
		}
		if _, err := s.client.UnblockKey(soon(t), "b", yard.KeyOptions{}); fault.CodeOf(err) != fault.NotFound || len(unblocks.requests()) != 0 {
			t.Errorf("a key without tasks: %v", err)
		}
		if id, err := s.client.UnblockKey(soon(t), "a", yard.KeyOptions{TaskID: "u", Retry: &yard.RetryPolicy{MaxAttempts: 8}}); id != "u" || err != nil {
			t.Fatal(id, err)
		}
		if sent := unblocks.requests()[0]; sent.TaskId != "u" || sent.Retry.GetMaxAttempts() != 8 || sent.RequestId == "" {
			t.Errorf("sent %v", sent)
		}
	})
}

func TestOneOrderKey(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		asked := answering[yardv1.GetKeyRequest](t, s, topology.API("shop", "keys.get"),
			&yardv1.GetKeyResponse{Key: &yardv1.OrderKey{OrderKey: "a", Head: &yardv1.Task{TaskId: "t", State: yardv1.TaskState_TASK_STATE_RUNNING, Worker: "w"}, SinceMs: 1}},
			fault.New(fault.NotFound, "no such key"),
		)
		k, err := s.client.OrderKey(soon(t), "a")
		if err != nil || k.Key != "a" || k.Head.State != yard.StateRunning || k.Head.Worker != "w" || k.Waiting != 0 || k.Since.UnixMilli() != 1 {
			t.Errorf("%+v: %v", k, err)
		}
		if k, err := s.client.OrderKey(soon(t), "b"); fault.CodeOf(err) != fault.NotFound || k.Head != nil {
			t.Errorf("%+v: %v", k, err)
		}
		for i, key := range []string{"a", "b"} {
			checktest.Equal(t, "asked for", asked.requests()[i].OrderKey, key)
		}
	})
}

// TestACommandOfAKeyEndsWithTheVerdict of the log: what is refused is not repeated.
func TestACommandOfAKeyEndsWithTheVerdict(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		refused := fault.New(fault.FailedPrecondition, "the task is running")
		skips := answering[yardv1.SkipKeyRequest](t, s, topology.API("shop", "keys.skip"), refused)
		unblocks := answering[yardv1.UnblockKeyRequest](t, s, topology.API("shop", "keys.unblock"), refused)
		if _, err := s.client.SkipKey(soon(t), "a", yard.KeyOptions{TaskID: "t"}); fault.CodeOf(err) != fault.FailedPrecondition || len(skips.requests()) != 1 {
			t.Errorf("skip: %v, after %d requests", err, len(skips.requests()))
		}
		if _, err := s.client.UnblockKey(soon(t), "a", yard.KeyOptions{TaskID: "t"}); fault.CodeOf(err) != fault.FailedPrecondition || len(unblocks.requests()) != 1 {
			t.Errorf("unblock: %v, after %d requests", err, len(unblocks.requests()))
		}
	})
}

// TestACommandNeedsTheHeadOfItsKey: nothing is sent where the task that it is about is not known.
func TestACommandNeedsTheHeadOfItsKey(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		heads := answering[yardv1.GetKeyRequest](t, s, topology.API("shop", "keys.get"), fault.New(fault.Unavailable, "no owner"),
			&yardv1.GetKeyResponse{Key: &yardv1.OrderKey{OrderKey: "a", Head: &yardv1.Task{TaskId: "t"}}}, fault.New(fault.PermissionDenied, "no"))
		skips := answering[yardv1.SkipKeyRequest](t, s, topology.API("shop", "keys.skip"), &yardv1.SkipKeyResponse{TaskId: "t"})
		unblocks := answering[yardv1.UnblockKeyRequest](t, s, topology.API("shop", "keys.unblock"), &yardv1.UnblockKeyResponse{TaskId: "t"})
		if id, err := s.client.UnblockKey(soon(t), "a", yard.KeyOptions{Reason: "fixed", By: "ann"}); id != "t" || err != nil || len(heads.requests()) != 2 {
			t.Fatalf("%q, %v, after %d requests for the head", id, err, len(heads.requests()))
		}
		sent := unblocks.requests()[0]
		if want := (&yardv1.UnblockKeyRequest{OrderKey: "a", TaskId: "t", Reason: "fixed", By: "ann", RequestId: sent.RequestId, Tries: 1}); !proto.Equal(sent, want) {
			t.Errorf("sent %v", sent)
		}
		if id, err := s.client.SkipKey(soon(t), "a", yard.KeyOptions{}); id != "" || fault.CodeOf(err) != fault.PermissionDenied || len(skips.requests()) != 0 {
			t.Errorf("%q, %v, after %d skips", id, err, len(skips.requests()))
		}
		before := len(heads.requests())
		if id, err := s.client.SkipKey(soon(t), "a", yard.KeyOptions{TaskID: "u"}); id != "u" || err != nil || len(heads.requests()) != before || skips.requests()[0].TaskId != "u" {
			t.Errorf("a task that is named: %q, %v, sent %v", id, err, skips.requests())
		}
	})
}

// TestEachCommandOfAKeyIsARequestOfItsOwn: with the id of the one before, it would be taken for its repeat.
func TestEachCommandOfAKeyIsARequestOfItsOwn(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		unblocks := answering[yardv1.UnblockKeyRequest](t, s, topology.API("shop", "keys.unblock"), fault.New(fault.Unknown, "no verdict"), &yardv1.UnblockKeyResponse{TaskId: "t"})
		for range 2 {
			checktest.NoError(t, checktest.Err(s.client.UnblockKey(soon(t), "a", yard.KeyOptions{TaskID: "t"})))
		}
		sent := unblocks.requests()
		if len(sent) != 3 || sent[1].RequestId != sent[0].RequestId || sent[1].Tries != 2 || sent[2].Tries != 1 || sent[2].RequestId == "" || sent[2].RequestId == sent[0].RequestId {
			t.Errorf("sent %v", sent)
		}
	})
}

// TestWhatATaskSaysOfItsKeyAndBatchComesBack as it was submitted.
func TestWhatATaskSaysOfItsKeyAndBatchComesBack(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		submitted := []yard.Task{
			{},
			{OrderKey: "account 7"},
			{OrderKey: "account 7", BlocksKey: true},
			{OrderKey: "account 7", BlocksKey: true, Batch: "import"},
			{Batch: "import"},
		}
		for _, task := range submitted {
			task.Type, task.Tasklist = "t", "l"
			checktest.NoError(t, checktest.Err(s.client.Submit(soon(t), task)))
		}
		stored := &yardv1.ListResponse{}
		for _, req := range s.submits() {
			for _, w := range req.Tasks {
				stored.Tasks = append(stored.Tasks, &yardv1.Task{OrderKey: w.OrderKey, OrderPolicy: w.OrderPolicy, BatchId: w.BatchId})
			}
		}
		answering[yardv1.ListRequest](t, s, topology.API("shop", "tasks.list"), stored)
		i := 0
		for got, err := range s.client.Tasks(soon(t), yard.Filter{}) {
			if err != nil || i == len(submitted) {
				t.Fatal(i, err)
			}
			want := submitted[i]
			if got.OrderKey != want.OrderKey || got.BlocksKey != want.BlocksKey || got.Batch != want.Batch {
				t.Errorf("%+v came back as %+v", want, got)
			}
			i++
		}
		if i != len(submitted) {
			t.Errorf("%d tasks came back", i)
		}
	})
}

// TestAListIsOfAKeyOrABatch: what narrows it reaches the engine.
func TestAListIsOfAKeyOrABatch(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		lists := answering[yardv1.ListRequest](t, s, topology.API("shop", "tasks.list"), &yardv1.ListResponse{})
		for i, f := range []yard.Filter{{OrderKey: "a"}, {Blocked: true}, {Batch: "import"}, {Batch: "import", OrderKey: "a", Tasklist: "l"}} {
			checktest.NoError(t, checktest.Err(s.client.List(soon(t), f)))
			if got := lists.requests()[i]; got.OrderKey != f.OrderKey || got.Blocked != f.Blocked || got.BatchId != f.Batch || got.Tasklist != f.Tasklist {
				t.Errorf("%+v was asked for as %v", f, got)
			}
		}
	})
}
