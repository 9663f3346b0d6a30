package yard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// What a batch is goes out whole, with its callback; an option that is not set is left to the engine.
func TestANewBatchGoesOutWhole(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		made := answering[yardv1.CreateBatchRequest](t, s, topology.API("shop", "batches.create"), &yardv1.CreateBatchResponse{Batch: &yardv1.Batch{BatchId: "import"}})
		batch, err := s.client.NewBatch(soon(t), "import", yard.BatchOptions{
			Callback: &yard.Task{Type: "import.done", Tasklist: "imports", Payload: 7, Priority: 2, Headers: map[string]string{"a": "b"}, Retry: &yard.RetryPolicy{MaxAttempts: 4}},
			Expires:  time.Hour, Keep: 1500 * time.Microsecond,
		})
		if err != nil || batch.ID != "import" {
			t.Fatal(batch, err)
		}
		checktest.NoError(t, checktest.Err(s.client.NewBatch(soon(t), "plain", yard.BatchOptions{})))
		for i, want := range []*yardv1.CreateBatchRequest{
			{BatchId: "import", ExpiresInMs: 3_600_000, KeepMs: 2, Callback: &yardv1.NewTask{
				Type: "import.done", Tasklist: "imports", Payload: &yardv1.Payload{Data: []byte("7")}, Priority: 2, Headers: map[string]string{"a": "b"}, Retry: &yardv1.RetryPolicy{MaxAttempts: 4},
			}},
			{BatchId: "plain"},
		} {
			if got := made.requests()[i]; !proto.Equal(got, want) {
				t.Errorf("asked %v, want %v", got, want)
			}
		}
	})
}

// What a callback may not have is sent as it is: a batch without it would be another one than the caller wants, so the engine has to refuse it.
func TestTheEngineRefusesACallback(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		made := answering[yardv1.CreateBatchRequest](t, s, topology.API("shop", "batches.create"), fault.At(fault.InvalidArgument, "/callback/delay_ms", "it has none"))
		batch, err := s.client.NewBatch(soon(t), "b", yard.BatchOptions{
			Expires: -time.Second, Callback: &yard.Task{Unique: &yard.Unique{Key: "k"}, OrderKey: "o", Delay: time.Second, RunAt: time.UnixMilli(5), Batch: "outer"},
		})
		if e := fault.From(err); batch != nil || e == nil || e.Code != fault.InvalidArgument || e.Path != "/callback/delay_ms" {
			t.Errorf("%v, %v", batch, err)
		}
		if n := len(made.requests()); n != 1 {
			t.Fatalf("it was asked for %d times", n)
		}
		sent := made.requests()[0]
		if c := sent.Callback; c.UniqueKey != "k" || c.OrderKey != "o" || c.DelayMs != 1000 || c.RunAtMs != 5 || c.BatchId != "outer" || sent.ExpiresInMs != -1000 {
			t.Errorf("sent %v", sent)
		}
	})
}

// A callback that cannot be written is refused before anything is sent, with the path of what is wrong.
func TestACallbackThatCannotBeSentIsRefused(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		made := answering[yardv1.CreateBatchRequest](t, s, topology.API("shop", "batches.create"), &yardv1.CreateBatchResponse{})
		for path, callback := range map[string]*yard.Task{
			"/callback/payload":     {Type: "x", Tasklist: "y", Payload: func() {}},
			"/callback/on_conflict": {Type: "x", Tasklist: "y", Unique: &yard.Unique{Key: "k", Reject: true, Replace: true}},
		} {
			batch, err := s.client.NewBatch(soon(t), "b", yard.BatchOptions{Callback: callback})
			if e := fault.From(err); batch != nil || e == nil || e.Code != fault.InvalidArgument || e.Path != path {
				t.Errorf("%s: %v, %v", path, batch, err)
			}
		}
		if sent := made.requests(); len(sent) != 0 {
			t.Errorf("sent %v", sent)
		}
	})
}

// A batch is made by a request that may be repeated, so the client repeats it; a batch with other options is no trouble that passes.
func TestABatchIsMadeAgainUntilItIsKnown(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		made := answering[yardv1.CreateBatchRequest](t, s, topology.API("shop", "batches.create"),
			fault.New(fault.Unknown, "no verdict"), fault.New(fault.Unavailable, "no owner"), &yardv1.CreateBatchResponse{}, fault.New(fault.AlreadyExists, "with others"))
		batch, err := s.client.NewBatch(soon(t), "b", yard.BatchOptions{Keep: time.Hour})
		if err != nil || batch.ID != "b" {
			t.Fatal(batch, err)
		}
		sent := made.requests()
		if len(sent) != 3 || !proto.Equal(sent[0], sent[1]) || !proto.Equal(sent[0], sent[2]) {
			t.Errorf("sent %v", sent)
		}
		if batch, err = s.client.NewBatch(soon(t), "b", yard.BatchOptions{}); fault.CodeOf(err) != fault.AlreadyExists || batch != nil || len(made.requests()) != 4 {
			t.Errorf("%v, %v, after %d requests", batch, err, len(made.requests()))
		}
	})
}

// Tasks that are added to a batch are of it, whatever they say, and the caller's own stay as they were.
func TestTasksAreAddedToTheirBatch(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		tasks := []yard.Task{{Type: "a", Tasklist: "x"}, {Type: "b", Tasklist: "y", Batch: "other"}}
		ids, err := s.client.Batch("import").Add(soon(t), tasks)
		if err != nil || len(ids) != 2 || ids[0] == ids[1] {
			t.Fatal(ids, err)
		}
		if tasks[0].Batch != "" || tasks[1].Batch != "other" {
			t.Errorf("the caller's tasks became %+v", tasks)
		}
		sent := s.submits()
		if len(sent) != 1 || len(sent[0].Tasks) != 2 {
			t.Fatalf("sent %v", sent)
		}
		for i, task := range sent[0].Tasks {
			if task.BatchId != "import" || task.Type != tasks[i].Type {
				t.Errorf("task %d is %v", i, task)
			}
		}
		if ids, err := s.client.Batch("import").Add(soon(t), nil); err != nil || len(ids) != 0 || len(s.submits()) != 1 {
			t.Errorf("no tasks: %v, %v, after %d requests", ids, err, len(s.submits()))
		}
	})
}

// The tasks of one request are of one batch, or of none: the engine takes each request whole.
func TestTasksOfSeveralBatchesTravelApart(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		of := func(batch string) yard.Task { return yard.Task{Type: "t", Tasklist: "l", Batch: batch} }
		ids, err := s.client.SubmitMany(soon(t), []yard.Task{of("a"), of("a"), of("b"), of(""), of(""), of("a")})
		if err != nil || len(ids) != 6 {
			t.Fatal(ids, err)
		}
		if id, err := s.client.Submit(soon(t), of("c")); err != nil || id == "" {
			t.Fatal(id, err)
		}
		var got []string
		for _, req := range s.submits() {
			var batches []string
			for _, task := range req.Tasks {
				batches = append(batches, task.BatchId)
			}
			got = append(got, strings.Join(batches, "+"))
		}
		checktest.Equal(t, "requests of", got, []string{"a+a", "b", "+", "a", "c"})
	})
}

// Nor do they travel with others that goroutines submit at the same time, with middleware or without: the engine would refuse them all.
func TestAMemberOfABatchTravelsWithNoOther(t *testing.T) {
	through := yard.WithSubmitMiddleware(func(next yard.SubmitFunc) yard.SubmitFunc { return next })
	for name, opts := range map[string][]yard.ClientOption{"plain": nil, "through middleware": {through}} {
		inBubble(t, func(t *testing.T) {
			s := newStack(t, opts...)
			var g gate
			s.hold(&g, 100)
			const callers = 60
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					checktest.Check(t, checktest.Err(s.client.Submit(soon(t), yard.Task{Type: "t", Tasklist: "l", Batch: []string{"", "a", "b"}[i%3]})))
				})
			}
			eventually(t, func() error {
				if n := len(s.submits()); n < callers*2/3 {
					return fmt.Errorf("%d requests", n)
				}
				return nil
			})
			s.letGo(&g)
			all.Wait()
			for _, req := range s.submits() {
				for _, task := range req.Tasks {
					if task.BatchId != req.Tasks[0].BatchId {
						t.Errorf("%s: tasks of %q and %q are in one request", name, req.Tasks[0].BatchId, task.BatchId)
					}
				}
			}
		})
	}
}

// A batch that takes no more tasks refuses them: the ids are those of the requests before, and the path counts from the caller's first task.
func TestABatchThatIsClosedRefusesTasks(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		s.refuseSubmit(1, fault.At(fault.FailedPrecondition, "/tasks/3/batch_id", "it is closed"))
		tasks := make([]yard.Task, 1010)
		for i := range tasks {
			tasks[i] = yard.Task{Type: "t", Tasklist: "l", Payload: i}
		}
		ids, err := s.client.Batch("import").Add(soon(t), tasks)
		if e := fault.From(err); len(ids) != 1000 || e == nil || e.Code != fault.FailedPrecondition || e.Path != "/tasks/1003/batch_id" {
			t.Errorf("%d ids, %v", len(ids), err)
		}
		if n := len(s.submits()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// All that is known of a batch comes back, and what is not known is nothing: no time of 1970.
func TestABatchComesBackWhole(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		stored := &yardv1.Batch{
			BatchId: "import", State: yardv1.BatchState_BATCH_STATE_COMPLETED, Tasks: 15, Active: 1, Completed: 2, Dead: 3, Cancelled: 4, Expired: 5,
			CreatedAtMs: 1000, ClosedAtMs: 2000, EndedAtMs: 3000, ExpiresAtMs: 4000, KeepMs: 5000, CancelRequested: true,
			CallbackType: "import.done", CallbackTasklist: "imports", CallbackTaskId: "t",
		}
		get := answering[yardv1.GetBatchRequest](t, s, topology.API("shop", "batches.get"),
			&yardv1.GetBatchResponse{Batch: stored}, &yardv1.GetBatchResponse{Batch: &yardv1.Batch{BatchId: "b", State: 99}}, fault.New(fault.NotFound, "none"))
		got, err := s.client.Batch("import").Info(soon(t))
		if err != nil || !proto.Equal(got.Wire(), stored) {
			t.Fatal(got, err)
		}
		ids, times := []string{got.ID, got.CallbackType, got.CallbackTasklist, got.CallbackID}, []time.Time{got.CreatedAt, got.ClosedAt, got.EndedAt, got.ExpiresAt}
		checktest.Equal(t, "counts", []int64{got.Tasks, got.Active, got.Completed, got.Dead, got.Cancelled, got.Expired}, []int64{15, 1, 2, 3, 4, 5})
		if got.State != yard.BatchCompleted || !got.CancelRequested || got.Keep != 5*time.Second || !slices.Equal(ids, []string{"import", "import.done", "imports", "t"}) {
			t.Errorf("%+v", got)
		}
		for i, at := range times {
			if at.UnixMilli() != int64(i+1)*1000 {
				t.Errorf("time %d is %v", i, at)
			}
		}
		got, err = s.client.Batch("b").Info(soon(t))
		if err != nil || !got.CreatedAt.IsZero() || !got.ClosedAt.IsZero() || !got.EndedAt.IsZero() || !got.ExpiresAt.IsZero() || got.CallbackID != "" {
			t.Errorf("%+v, %v", got, err)
		}
		if got.State == "" || got.State.Over() {
			t.Errorf("a state of a newer engine is %q, and a last one: %v", got.State, got.State.Over())
		}
		if got, err := s.client.Batch("c").Info(soon(t)); got != nil || fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%+v, %v", got, err)
		}
		for i, id := range []string{"import", "b", "c"} {
			checktest.Equal(t, "asked for", get.requests()[i].BatchId, id)
		}
	})
}

// The SDK's names of states are those of the API, and both agree on which are last ones.
func TestStatesOfBatchesHaveTheNamesOfTheAPI(t *testing.T) {
	names := map[yardv1.BatchState]yard.BatchState{1: yard.BatchOpen, 2: yard.BatchClosed, 3: yard.BatchCompleted, 4: yard.BatchExpired}
	for n := range yardv1.BatchState_name {
		if s := yardv1.BatchState(n); n != 0 && (names[s] != yard.BatchState(s.Name()) || names[s].Over() != s.Over()) {
			t.Errorf("%v is %q here, over: %v", s, names[s], names[s].Over())
		}
	}
}

// A close is repeated until its answer is known: a repeat changes nothing.
func TestABatchIsClosed(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		closes := answering[yardv1.CloseBatchRequest](t, s, topology.API("shop", "batches.close"), fault.New(fault.Unknown, "no verdict"),
			&yardv1.CloseBatchResponse{Batch: &yardv1.Batch{BatchId: "b", State: yardv1.BatchState_BATCH_STATE_CLOSED, Tasks: 2, Active: 2}},
			fault.New(fault.FailedPrecondition, "it is expired"))
		info, err := s.client.Batch("b").Close(soon(t))
		if err != nil || info.State != yard.BatchClosed || info.Active != 2 || len(closes.requests()) != 2 {
			t.Fatalf("%+v, %v, after %d requests", info, err, len(closes.requests()))
		}
		if info, err := s.client.Batch("b").Close(soon(t)); info != nil || fault.CodeOf(err) != fault.FailedPrecondition || len(closes.requests()) != 3 {
			t.Errorf("%+v, %v, after %d requests", info, err, len(closes.requests()))
		}
		for _, req := range closes.requests() {
			checktest.Equal(t, "asked to close", req.BatchId, "b")
		}
	})
}

// A cancel goes step by step at its rate, as a purge does. What a purge narrows does not narrow it, and there is no preview.
func TestABatchIsCancelledStepByStep(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		steps := answering[yardv1.CancelBatchRequest](t, s, topology.API("shop", "batches.cancel"),
			&yardv1.CancelBatchResponse{Purged: &yardv1.Purged{Found: 50, Cancelled: 48, CancelRequested: 2, NextCursor: "b"}},
			&yardv1.CancelBatchResponse{Purged: &yardv1.Purged{NextCursor: "c"}},
			&yardv1.CancelBatchResponse{Purged: &yardv1.Purged{Found: 2, Cancelled: 1, Ended: 1}})
		told := 0
		got, err := s.client.Batch("import").Cancel(soon(t), yard.PurgeOptions{
			Running: true, Rate: 200, Reason: "wrong file", By: "ann", Cursor: "a", Tasklist: "mail", Type: "x", Group: "g", OlderThan: time.Hour, Preview: true,
			Progress: func(yard.Purged) { told++ },
		})
		if want := (yard.Purged{Found: 52, Cancelled: 49, CancelRequested: 2, Ended: 1}); err != nil || got != want || told != 3 {
			t.Errorf("%+v, %v, after %d steps", got, err, told)
		}
		for i, cursor := range []string{"a", "b", "c"} {
			want := &yardv1.CancelBatchRequest{BatchId: "import", Running: true, Limit: 50, Cursor: cursor, Reason: "wrong file", By: "ann"}
			if !proto.Equal(steps.requests()[i], want) {
				t.Errorf("step %d: %v", i, steps.requests()[i])
			}
		}
		if at := steps.times(); at[1].Sub(at[0]) < 250*time.Millisecond || at[2].Sub(at[1]) < 300*time.Millisecond {
			t.Errorf("steps at %v", at)
		}
	})
}

// A cancel that is given up, or refused on its way, tells where it was.
func TestACancelOfABatchThatIsGivenUpTellsWhereItWas(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		answering[yardv1.CancelBatchRequest](t, s, topology.API("shop", "batches.cancel"),
			&yardv1.CancelBatchResponse{Purged: &yardv1.Purged{Found: 9, Cancelled: 9, NextCursor: "b"}}, fault.New(fault.NotFound, "it is kept no more"),
			&yardv1.CancelBatchResponse{Purged: &yardv1.Purged{Found: 5, Cancelled: 5, NextCursor: "c"}})
		got, err := s.client.Batch("b").Cancel(soon(t), yard.PurgeOptions{})
		if fault.CodeOf(err) != fault.NotFound || got != (yard.Purged{Found: 9, Cancelled: 9, Cursor: "b"}) {
			t.Errorf("%+v, %v", got, err)
		}
		ctx, cancel := context.WithCancelCause(soon(t))
		enough := errors.New("enough")
		got, err = s.client.Batch("b").Cancel(ctx, yard.PurgeOptions{Rate: 1, Progress: func(yard.Purged) { cancel(enough) }})
		if !errors.Is(err, enough) || got != (yard.Purged{Found: 5, Cancelled: 5, Cursor: "c"}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Batches are listed page by page, in the states that are asked for; a page may be empty and not the last.
func TestBatchesAreListedPageByPage(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		page := func(next string, ids ...string) *yardv1.ListBatchesResponse {
			resp := &yardv1.ListBatchesResponse{NextCursor: next}
			for _, id := range ids {
				resp.Batches = append(resp.Batches, &yardv1.Batch{BatchId: id, State: yardv1.BatchState_BATCH_STATE_OPEN})
			}
			return resp
		}
		lists := answering[yardv1.ListBatchesRequest](t, s, topology.API("shop", "batches.list"),
			page("1", "a", "b"), page("2"), page("", "c"))
		var got []string
		for b, err := range s.client.Batches(soon(t), yard.BatchOpen, yard.BatchExpired) {
			checktest.NoError(t, err)
			got = append(got, fmt.Sprint(b.ID, " ", b.State))
		}
		checktest.Equal(t, "listed", got, []string{"a open", "b open", "c open"})
		states := []yardv1.BatchState{yardv1.BatchState_BATCH_STATE_OPEN, yardv1.BatchState_BATCH_STATE_EXPIRED}
		for i, cursor := range []string{"", "1", "2"} {
			if want := (&yardv1.ListBatchesRequest{States: states, Cursor: cursor}); !proto.Equal(lists.requests()[i], want) {
				t.Errorf("page %d: %v", i, lists.requests()[i])
			}
		}
	})
}

// A state that this version does not know is refused by the engine: left out, it would mean all of them.
func TestAListOfBatchesInAnUnknownStateIsRefused(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		lists := answering[yardv1.ListBatchesRequest](t, s, topology.API("shop", "batches.list"), fault.New(fault.InvalidArgument, "no such state"))
		for _, err := range s.client.Batches(soon(t), "OPEN") {
			checktest.Code(t, "error", err, fault.InvalidArgument)
		}
		if asked := lists.requests(); len(asked) != 1 || len(asked[0].States) != 1 || asked[0].States[0] != -1 {
			t.Errorf("asked %v", asked)
		}
	})
}
