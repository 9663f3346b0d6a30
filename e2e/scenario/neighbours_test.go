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
)

// flood sends many requests at once and notes which were refused.
type flood struct {
	w       *world
	inbox   *nats.Subscription
	mu      sync.Mutex
	refused int
	other   []string // what was answered else
}

func (w *world) flood() *flood {
	w.t.Helper()
	f := &flood{w: w}
	var err error
	f.inbox, err = w.nc.Subscribe(w.nc.NewInbox(), func(m *nats.Msg) {
		e := fault.Decode(m.Header.Get(fault.HeaderCode), m.Header.Get(fault.HeaderDescription), m.Data)
		f.mu.Lock()
		defer f.mu.Unlock()
		if e != nil && e.Code == fault.ResourceExhausted && e.RetryAfter > 0 {
			f.refused++
		} else {
			f.other = append(f.other, string(m.Data))
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// send sends the same request n times and returns once the rest beyond room is refused.
func (f *flood) send(n, room int, endpoint string, req codec.Message) {
	f.w.t.Helper()
	body, err := codec.Marshal(codec.JSON, req)
	if err != nil {
		f.w.t.Fatal(err)
	}
	f.mu.Lock()
	before := f.refused
	f.mu.Unlock()
	for range n {
		if err := f.w.nc.PublishRequest(topology.API(f.w.domain, endpoint), f.inbox.Subject, body); err != nil {
			f.w.t.Fatal(err)
		}
	}
	f.w.eventually(func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.refused-before != n-room || len(f.other) > 0 {
			return fmt.Errorf("%s: %d of %d were refused, want %d; else came %.200q", endpoint, f.refused-before, n, n-room, f.other)
		}
		return nil
	})
}

// TestI14_AFloodIsAloneWithItsRefusals (R3): one domain opens more waits and polls than it may.
// It is refused, and everything that another domain and the administration ask goes on.
func TestI14_AFloodIsAloneWithItsRefusals(t *testing.T) {
	t.Parallel()
	services := stack.DefaultServices()
	services.Frontend.Gateway.WaitsMax, services.Frontend.Gateway.QueriesMax = 64, 64
	services.Frontend.Gateway.PollsMax = 400
	services.Matching.Shard.PollsMax = 64
	s := own(t, stack.Config{Tables: stack.TablesMemory, Services: &services, Partitioning: topology.Partitioning{History: 1, Matching: 1}})
	loud, quiet := enter(t, s), enter(t, s)

	stays := loud.submitOne(&yardv1.NewTask{Type: "x"})
	loud.reach(stays, "ready")
	f := loud.flood()
	f.send(100, 48, "tasks.get", &yardv1.GetRequest{TaskId: stays, WaitMs: 60_000})
	f.send(100, 48, "tasks.poll", &yardv1.PollRequest{Tasklist: "empty", MaxTasks: 1, WaitMs: 60_000})
	late := must[yardv1.SubmitResponse](loud, "tasks.submit", &yardv1.SubmitRequest{Tasklist: "other", Tasks: []*yardv1.NewTask{{Type: "x"}}, Wait: true, WaitMs: 60_000})
	equal(t, "the wait of a submit that found no room", late.WaitCode, string(fault.ResourceExhausted))
	loud.reach(late.TaskIds[0], "ready") // stored all the same, and a get without a wait has room

	quiet.lives(t)
	for i := range 20 {
		name := fmt.Sprint("new", i)
		if _, err := quiet.client.Admin().PutDomain(quiet.soon(), yard.Domain{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	f.send(1, 0, "tasks.get", &yardv1.GetRequest{TaskId: stays, WaitMs: 60_000}) // it is full still
	equal(t, "cancel", loud.cancel(stays).Code, "OK")                            // which ends its waits
	loud.eventually(func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.other) != 48 {
			return fmt.Errorf("%d of 48 waits have ended", len(f.other))
		}
		return nil
	})
	must[yardv1.GetResponse](loud, "tasks.get", &yardv1.GetRequest{TaskId: stays, WaitMs: 1000}) // there is room again
}

// lives does what a tenant does: all verbs, with a wait too.
func (w *world) lives(t *testing.T) {
	t.Helper()
	w.setType(yard.TaskType{Name: "x", MaxConcurrency: 5})
	id := w.submitOne(&yardv1.NewTask{Type: "x"})
	ended := make(chan *yardv1.SubmitResponse, 1)
	go func() {
		resp, err := call[yardv1.SubmitResponse](w, "tasks.submit", &yardv1.SubmitRequest{
			Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "x"}}, Wait: true, WaitMs: 20_000,
		})
		if err != nil {
			t.Error(err)
		}
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

// The waits of a client that is gone give their places back once their time is over, and those of
// one that heard of the end at once.
func TestWaitsGiveTheirPlacesBack(t *testing.T) {
	t.Parallel()
	services := stack.DefaultServices()
	services.Frontend.Gateway.WaitsMax = 4
	s := own(t, stack.Config{Tables: stack.TablesMemory, Services: &services, Partitioning: topology.Partitioning{History: 1, Matching: 1}})
	w := enter(t, s)
	id := w.submitOne(&yardv1.NewTask{Type: "x"})
	gone := join(t, s, w.domain)
	f := gone.flood()
	f.send(5, 3, "tasks.get", &yardv1.GetRequest{TaskId: id, WaitMs: 4000})
	gone.nc.Close()
	w.eventually(func() error { // none of these is refused for good
		_, err := call[yardv1.GetResponse](w, "tasks.get", &yardv1.GetRequest{TaskId: id, WaitMs: 1})
		return err
	})
	f = w.flood()
	f.send(4, 3, "tasks.get", &yardv1.GetRequest{TaskId: id, WaitMs: 60_000})
	equal(t, "complete", w.complete(w.takeOne()), "OK")
	began := time.Now()
	w.eventually(func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.other) != 3 {
			return fmt.Errorf("%d of 3 waits have ended after %v", len(f.other), time.Since(began))
		}
		return nil
	})
	want(t, w.ended(id), "completed", "submitted started completed")
}

// Polls that share one inbox are told apart: each gives its place back once it is answered.
func TestPollsOfOneInboxGiveTheirPlacesBack(t *testing.T) {
	t.Parallel()
	const together, rounds = 20, 10
	services := stack.DefaultServices()
	services.Frontend.Gateway.PollsMax = 5 * together // of which one domain has three quarters
	s := own(t, stack.Config{Tables: stack.TablesMemory, Services: &services, Partitioning: topology.Partitioning{History: 1, Matching: 1}})
	w := enter(t, s)
	f := w.flood()
	body, err := codec.Marshal(codec.JSON, &yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WaitMs: 60_000})
	if err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		for range together {
			if err := w.nc.PublishRequest(topology.API(w.domain, "tasks.poll"), f.inbox.Subject, body); err != nil {
				t.Fatal(err)
			}
		}
		w.eventually(func() error { // all of them wait
			resp := must[yardv1.DescribeTasklistResponse](w, "tasklists.describe", &yardv1.DescribeTasklistRequest{Tasklist: list})
			if resp.WaitingPolls != together {
				return fmt.Errorf("round %d: %d polls wait", round, resp.WaitingPolls)
			}
			return nil
		})
		for range together {
			w.submitOne(&yardv1.NewTask{Type: "x"})
		}
		w.eventually(func() error {
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.other) != (round+1)*together {
				return fmt.Errorf("round %d: %d polls are answered, %d were refused", round, len(f.other), f.refused)
			}
			return nil
		})
	}
}
