package scenario_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestABatchIsRefused with what it names wrong, by the path of it; nothing is stored then.
func TestABatchIsRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		task := func(change func(*yardv1.NewTask)) *yardv1.NewTask {
			one := &yardv1.NewTask{Type: "callback", Tasklist: list}
			change(one)
			return one
		}
		headers := func(n, size int) map[string]string {
			all := map[string]string{}
			for i := range n {
				all[fmt.Sprint("h", i)] = strings.Repeat("x", size)
			}
			return all
		}
		for path, req := range map[string]*yardv1.CreateBatchRequest{
			"/batch_id":            {BatchId: strings.Repeat("b", 129)},
			"/expires_in_ms":       {BatchId: "a", ExpiresInMs: -1},
			"/keep_ms":             {BatchId: "a", KeepMs: 1 << 62},
			"/callback/type":       {BatchId: "a", Callback: task(func(c *yardv1.NewTask) { c.Type = "" })},
			"/callback/tasklist":   {BatchId: "a", Callback: task(func(c *yardv1.NewTask) { c.Tasklist = "" })},
			"/callback/unique_key": {BatchId: "a", Callback: task(func(c *yardv1.NewTask) { c.UniqueKey = "u" })},
			"/callback/order_key":  {BatchId: "a", Callback: task(func(c *yardv1.NewTask) { c.OrderKey = "o" })},
			"/callback/batch_id":   {BatchId: "a", Callback: task(func(c *yardv1.NewTask) { c.BatchId = "a" })},
			"/callback/delay_ms":   {BatchId: "a", Callback: task(func(c *yardv1.NewTask) { c.DelayMs = 1 })},
			"/callback/run_at_ms":  {BatchId: "a", Callback: task(func(c *yardv1.NewTask) { c.RunAtMs = 1 })},
			"/callback/headers":    {BatchId: "a", Callback: task(func(c *yardv1.NewTask) { c.Headers = headers(32, 1) })},
			"/callback/priority":   {BatchId: "a", Callback: task(func(c *yardv1.NewTask) { c.Priority = 99 })},
			"/callback/payload": {BatchId: "a", Callback: task(func(c *yardv1.NewTask) {
				c.Payload = &yardv1.Payload{Data: []byte(`"` + strings.Repeat("p", 256<<10) + `"`)}
			})},
			"/callback/headers/yard-a": {BatchId: "a", Callback: task(func(c *yardv1.NewTask) { c.Headers = map[string]string{"yard-a": "mine"} })},
		} {
			_, err := call[yardv1.CreateBatchResponse](w, "batches.create", req)
			if e := fault.From(err); err == nil || e.Code != fault.InvalidArgument || !strings.HasPrefix(e.Path, strings.TrimSuffix(path, "/yard-a")) {
				t.Errorf("%s: %v at %q", path, err, e.Path)
			}
		}
		_, err := w.client.Batch("a").Info(w.soon())
		equal(t, "what was refused", fault.CodeOf(err), fault.NotFound)
		for _, cursor := range []string{"x", "-1.0", "99.1", "0", "0.x", "1.-1", "0.99999999999999999999999", "0.18446744073709551615"} {
			_, err := call[yardv1.ListBatchesResponse](w, "batches.list", &yardv1.ListBatchesRequest{Cursor: cursor})
			equal(t, "cursor "+cursor, fault.CodeOf(err), fault.InvalidArgument)
		}
		for _, wait := range []int64{-1, 60_001, 1 << 62} {
			_, err := call[yardv1.WaitBatchResponse](w, "batches.wait", &yardv1.WaitBatchRequest{BatchId: "a", WaitMs: wait})
			equal(t, fmt.Sprint("wait ", wait), fault.CodeOf(err), fault.InvalidArgument)
		}
	})
}

// TestABatchOfAnotherDomain is none.
func TestABatchOfAnotherDomain(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		b := w.batch("mine")
		w.submitOne(member(b, &yardv1.NewTask{Type: "x"}))
		other := <-w.tenants(1)
		foreign := other.client.Batch(b.ID)
		_, info := foreign.Info(w.soon())
		_, closed := foreign.Close(w.soon())
		_, cancelled := foreign.Cancel(w.soon(), yard.PurgeOptions{})
		_, waited := foreign.Wait(w.soon())
		_, added := foreign.Add(w.soon(), []yard.Task{{Type: "x", Tasklist: list}})
		for what, err := range map[string]error{"get": info, "close": closed, "cancel": cancelled, "wait": waited, "submit": added} {
			equal(t, what, fault.CodeOf(err), fault.NotFound)
		}
		testkit.Check(t, testkit.Err(other.client.NewBatch(w.soon(), b.ID, yard.BatchOptions{})))
		testkit.Check(t, testkit.Err(foreign.Cancel(w.soon(), yard.PurgeOptions{Running: true})))
		other.counts(foreign, yard.BatchCompleted, 0, 0, 0, 0, 0, 0)
		for one, err := range other.client.Batches(w.soon()) {
			if err != nil || one.State == yard.BatchOpen {
				t.Errorf("the other one sees %+v: %v", one, err)
			}
		}
		w.counts(b, yard.BatchOpen, 1, 1, 0, 0, 0, 0)
	})
}

// TestTheLargestCallback, of a batch with any text as its name, fits beside what tells of the batch; and it is submitted where no one else may.
func TestTheLargestCallback(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := strings.Repeat("é\n\x00\"", 25)
		headers := map[string]string{}
		for i := range 20 {
			headers[fmt.Sprint("h", i)] = strings.Repeat("x", 50)
		}
		_, err := w.client.Wire().CreateBatch(w.soon(), &yardv1.CreateBatchRequest{
			BatchId: id, Callback: &yardv1.NewTask{Type: "callback", Tasklist: list, Payload: &yardv1.Payload{Data: []byte(`"` + strings.Repeat("p", 256<<10-2) + `"`)}, Headers: headers},
		})
		testkit.NoError(t, err)
		b := w.client.Batch(id)
		testkit.NoError(t, testkit.Err(w.client.Drain(w.soon(), yard.OfTasklist(list), yard.PauseOptions{})))
		w.closed(b)
		info := w.counts(b, yard.BatchCompleted, 0, 0, 0, 0, 0, 0)
		p := w.takeOne("callback")
		equal(t, "the callback", p.TaskId, info.CallbackID)
		equal(t, "its batch", p.Headers["yard-batch-id"], id)
		equal(t, "its headers", len(p.Headers), 26)
		equal(t, "complete", w.complete(p), "OK")
	})
}

// TestABatchIsClosedAndCancelledAtOnce, many times, and takes members meanwhile: each is counted, or was refused, and it calls back once.
func TestABatchIsClosedAndCancelledAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		b := w.batch("contended")
		var mu sync.Mutex
		accepted := int64(0)
		var all sync.WaitGroup
		for n := range 12 {
			all.Go(func() {
				for range 10 {
					ids, err := b.Add(w.soon(), []yard.Task{{Type: "x", Tasklist: list, Delay: time.Hour}, {Type: "x", Tasklist: list, Delay: time.Hour}})
					mu.Lock()
					accepted += int64(len(ids))
					mu.Unlock()
					if code := fault.CodeOf(err); err != nil && code != fault.FailedPrecondition {
						t.Errorf("add: %v", err)
					}
					switch {
					case n == 0:
						w.closed(b)
					case n < 3:
						testkit.Check(t, testkit.Err(b.Cancel(w.soon(), yard.PurgeOptions{})))
					}
				}
			})
		}
		all.Wait()
		testkit.Check(t, testkit.Err(b.Cancel(w.soon(), yard.PurgeOptions{})))
		w.counts(b, yard.BatchCompleted, accepted, 0, 0, 0, accepted, 0)
		w.calledBack(b, accepted, 0, 0, accepted, 0)
		w.examined()
	})
}
