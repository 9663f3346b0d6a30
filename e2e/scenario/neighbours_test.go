package scenario_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// flood sends many requests at once and notes what becomes of each. As clients do, it sends those again
// that are answered without a result: on a slow machine, polls whose shard is given to a new owner.
type flood struct {
	w *world

	mu      sync.Mutex
	refused int
	ended   int      // with a result
	other   []string // what was answered else
}

func (w *world) flood() *flood { return &flood{w: w} }

// send sends the same request n times and returns once the rest beyond room is refused. The others wait
// for a result.
func (f *flood) send(n, room int, endpoint string, req codec.Message, result func([]byte) bool) {
	f.w.t.Helper()
	body, err := codec.Marshal(codec.JSON, req)
	testkit.NoError(f.w.t, err)
	f.mu.Lock()
	before := f.refused
	f.mu.Unlock()
	nc, subject := f.w.nc, topology.API(f.w.domain, endpoint)
	inbox := nc.NewInbox() + "."
	admitted := map[string]bool{} // by inbox: those that had a place once
	_, err = nc.Subscribe(inbox+"*", func(m *nats.Msg) {
		e := fault.Decode(m.Header.Get(fault.HeaderCode), m.Header.Get(fault.HeaderDescription), m.Data)
		again := func() { _ = nc.PublishRequest(subject, m.Subject, body) } // fails where the connection is closed
		f.mu.Lock()
		defer f.mu.Unlock()
		switch full := e != nil && e.Code == fault.ResourceExhausted && e.RetryAfter > 0; {
		case full && !admitted[m.Subject]:
			f.refused++
		case full, e != nil && e.Code == fault.Unavailable:
			time.AfterFunc(e.RetryAfter, again)
		case e != nil:
			f.other = append(f.other, e.Error())
		case result(m.Data):
			f.ended++
		default:
			admitted[m.Subject] = true
			again()
		}
	})
	testkit.NoError(f.w.t, err)
	for i := range n {
		testkit.NoError(f.w.t, nc.PublishRequest(subject, inbox+fmt.Sprint(i), body))
	}
	f.w.eventually(func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.refused-before != n-room || f.ended > 0 || len(f.other) > 0 {
			return fmt.Errorf("%s: %d of %d were refused, want %d; %d ended; else came %.200q", endpoint, f.refused-before, n, n-room, f.ended, f.other)
		}
		return nil
	})
}

// ends waits until so many requests have ended, with a result each.
func (f *flood) ends(n int) {
	f.w.t.Helper()
	f.w.eventually(func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.ended != n || len(f.other) > 0 {
			return fmt.Errorf("%d of %d have ended; else came %.200q", f.ended, n, f.other)
		}
		return nil
	})
}

// finished tells whether a get has found the end of its task.
func finished(body []byte) bool {
	var resp yardv1.GetResponse
	return codec.Unmarshal(codec.JSON, body, &resp) == nil && resp.Task.GetState().Finished()
}

// brought tells whether a poll has brought tasks.
func brought(body []byte) bool {
	var resp yardv1.PollResponse
	return codec.Unmarshal(codec.JSON, body, &resp) == nil && len(resp.Tasks) > 0
}

// TestI14_AFloodIsAloneWithItsRefusals (R3): one domain opens more waits and polls than it may.
// It is refused, and everything that another domain and the administration ask goes on.
func TestI14_AFloodIsAloneWithItsRefusals(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "floods the system")
	services := stack.DefaultServices()
	services.Frontend.Gateway.WaitsMax, services.Frontend.Gateway.QueriesMax = 64, 64
	services.Frontend.Gateway.PollsMax = 400
	services.Matching.Shard.PollsMax = 64
	s := own(t, stack.Config{Tables: stack.TablesMemory, Services: &services, Partitioning: topology.Partitioning{History: 1, Matching: 1}})
	loud, quiet := enter(t, s), enter(t, s)

	stays := loud.submitOne(&yardv1.NewTask{Type: "x"})
	loud.reach(stays, "ready")
	f := loud.flood()
	f.send(100, 48, "tasks.get", &yardv1.GetRequest{TaskId: stays, WaitMs: 60_000}, finished)
	f.send(100, 48, "tasks.poll", &yardv1.PollRequest{Tasklist: "empty", MaxTasks: 1, WaitMs: 60_000}, brought)
	late := must[yardv1.SubmitResponse](loud, "tasks.submit", &yardv1.SubmitRequest{Tasklist: "other", Tasks: []*yardv1.NewTask{{Type: "x"}}, Wait: true, WaitMs: 60_000})
	equal(t, "the wait of a submit that found no room", late.WaitCode, string(fault.ResourceExhausted))
	loud.reach(late.TaskIDs()[0], "ready") // stored all the same, and a get without a wait has room

	quiet.lives(t)
	for i := range 20 {
		name := fmt.Sprint("new", i)
		testkit.NoError(t, testkit.Err(quiet.admin.PutDomain(quiet.soon(), yard.Domain{Name: name})))
	}
	f.send(1, 0, "tasks.get", &yardv1.GetRequest{TaskId: stays, WaitMs: 60_000}, finished) // it is full still
	equal(t, "cancel", loud.cancel(stays).Code, "OK")                                      // which ends its waits
	f.ends(48)
	must[yardv1.GetResponse](loud, "tasks.get", &yardv1.GetRequest{TaskId: stays, WaitMs: 1000}) // there is room again
}

// lives does what a tenant does: all verbs, with a wait too.
func (w *world) lives(t *testing.T) {
	t.Helper()
	w.putType(yard.TaskType{Name: "x", MaxConcurrency: 5})
	id := w.submitOne(&yardv1.NewTask{Type: "x"})
	ended := make(chan *yardv1.SubmitResponse, 1)
	go func() {
		resp, err := call[yardv1.SubmitResponse](w, "tasks.submit", &yardv1.SubmitRequest{
			Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "x"}}, Wait: true, WaitMs: 60_000,
		})
		testkit.Check(t, err)
		ended <- resp
	}()
	for _, p := range w.take(2) {
		equal(t, "beat", w.beat(p).Code, "OK")
		equal(t, "complete", w.complete(p), "OK")
	}
	if resp := <-ended; resp.GetWaitCode() != "" || !resp.GetTask().GetState().Finished() {
		t.Errorf("the wait of a submit ended with %v", resp)
	}
	want(t, w.ended(id), "completed", "submitted started completed")
	must[yardv1.ListResponse](w, "tasks.list", &yardv1.ListRequest{})
	must[yardv1.DescribeTasklistResponse](w, "tasklists.describe", &yardv1.DescribeTasklistRequest{Tasklist: list})
	must[yardv1.GetTypeResponse](w, "types.get", &yardv1.GetTypeRequest{Name: "x"})
	cancelled := w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 3_600_000})
	equal(t, "cancel", w.cancel(cancelled).Code, "OK")
}
