package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// crew is a worker whose handlers of "held" tasks return when they are let go, and what it began.
type crew struct {
	w     *world
	name  string
	gate  chan struct{}
	ended chan error

	mu    sync.Mutex
	begun map[string]bool
}

// crewOf runs a worker with a name.
func (w *world) crewOf(name string, opts ...yard.WorkerOption) *crew {
	w.t.Helper()
	c := &crew{w: w, name: name, gate: make(chan struct{}), ended: make(chan error, 1), begun: map[string]bool{}}
	worker := yard.NewWorker(w.client, list, append([]yard.WorkerOption{
		yard.WithIdentity(name), yard.WithSignsOfLife(500 * time.Millisecond), yard.WithPollWait(time.Minute), yard.WithDrainTimeout(within),
	}, opts...)...)
	worker.HandleRest(func(ctx context.Context, a *yard.Attempt) (yard.Payload, error) {
		c.mu.Lock()
		c.begun[a.TaskID] = true
		c.mu.Unlock()
		if a.Type == "held" {
			select {
			case <-c.gate:
			case <-ctx.Done():
				return yard.Payload{}, ctx.Err()
			}
		}
		return yard.Payload{}, nil
	})
	ctx, stop := context.WithCancel(context.Background())
	go func() { c.ended <- worker.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-c.ended; err != nil {
			w.t.Errorf("%s ended with %v", name, err)
		}
	})
	return c
}

func (c *crew) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.begun)
}

// live is what the engine says of it.
func (c *crew) live() yard.LiveWorker {
	c.w.t.Helper()
	var one yard.LiveWorker
	c.w.eventually(func() error {
		found := false
		if one, found = c.w.worker(c.name); !found {
			return fmt.Errorf("%s is not heard", c.name)
		}
		return nil
	})
	return one
}

// drainSeen is what a poll of a worker is answered with that asks for nothing else.
func (w *world) drainSeen(id string) *yardv1.PollResponse {
	w.t.Helper()
	return must[yardv1.PollResponse](w, "tasks.poll", &yardv1.PollRequest{Tasklist: list, NoTasks: true, WorkerId: id})
}

// TestADrainedWorkerGetsNothingNew: what it runs goes on to its end, its polls that wait end at once, another worker gets all that comes, and after a resume it
// gets tasks again.
func TestADrainedWorkerGetsNothingNew(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		const n = 5
		first := w.crewOf("first", yard.WithConcurrency(2*n))
		all := w.submit(many(n, &yardv1.NewTask{Type: "held"})...)
		w.eventually(func() error {
			if one, found := w.worker("first"); !found || one.AttemptsCount != n {
				return fmt.Errorf("first has %d attempts", one.AttemptsCount)
			}
			return nil
		})
		id := first.live().ID
		for range 2 { // a repeat changes nothing
			said, err := w.client.DrainWorker(w.soon(), id, yard.WorkerDrain{Reason: "its disk fails", By: "ann"})
			testkit.NoError(t, err)
			if said.AttemptsCount != n || said.Drain == nil || said.Drain.Stop || said.Drain.Reason != "its disk fails" || said.Drain.By != "ann" {
				t.Errorf("it is %+v", said)
			}
		}
		since := w.drainSeen(id).Drain.GetSinceMs()
		w.noPollWaits()
		waiting := w.submit(many(n, &yardv1.NewTask{Type: "quick"})...)
		began := time.Now()
		resp := must[yardv1.PollResponse](w, "tasks.poll", &yardv1.PollRequest{Tasklist: list, MaxTasks: 10, WaitMs: 20_000, WorkerId: id})
		if len(resp.Tasks) != 0 || resp.Drain == nil || time.Since(began) > 10*time.Second {
			t.Errorf("a poll of the drained worker brought %v after %v", resp, time.Since(began))
		}
		for _, one := range waiting {
			equal(t, "state", stateOf(w.get(one)), "ready")
		}
		equal(t, "begun", first.count(), n)

		second := w.crewOf("second", yard.WithConcurrency(2*n))
		for _, one := range waiting {
			want(t, w.ended(one), "completed", "submitted started completed")
		}
		equal(t, "begun", second.count(), n)
		close(first.gate)
		for _, one := range all {
			want(t, w.ended(one), "completed", "submitted started completed")
		}
		w.eventually(func() error {
			if one := first.live(); one.AttemptsCount != 0 || one.Drain == nil || one.Drain.Since.UnixMilli() != since {
				return fmt.Errorf("it is %+v", one)
			}
			return nil
		})

		w.stopCrew(second, "")
		again := w.submitOne(&yardv1.NewTask{Type: "quick"})
		was, err := w.client.ResumeWorker(w.soon(), id)
		if err != nil || was.Reason != "its disk fails" {
			t.Errorf("%+v %v", was, err)
		}
		want(t, w.ended(again), "completed", "submitted started completed")
		equal(t, "begun", first.count(), n+1)
		if first.live().Drain != nil || w.drainSeen(id).Drain != nil {
			t.Error("it is drained still")
		}
		_, err = w.client.ResumeWorker(w.soon(), id)
		refused(t, err, fault.NotFound)
		w.examined()
	})
}

// noPollWaits waits until matching has no polls any more.
func (w *world) noPollWaits() {
	w.t.Helper()
	w.eventually(func() error {
		pollers := must[yardv1.TasklistPollersResponse](w, "tasklists.pollers", &yardv1.TasklistPollersRequest{Tasklist: list})
		for _, p := range pollers.Pollers {
			if p.WaitingPolls > 0 {
				return fmt.Errorf("%d polls of %s wait", p.WaitingPolls, p.Worker)
			}
		}
		return nil
	})
}

// stopCrew stops a worker, and waits until its Run has returned and it is not known any more.
func (w *world) stopCrew(c *crew, reason string) {
	w.t.Helper()
	testkit.NoError(w.t, testkit.Err(w.client.StopWorker(w.soon(), c.live().ID, yard.WorkerDrain{Reason: reason, By: "ann"})))
	c.stopped(reason)
}

func (c *crew) stopped(reason string) {
	c.w.t.Helper()
	select {
	case err := <-c.ended:
		c.ended <- nil
		stopped, left := new(yard.StoppedError), new(yard.DrainError)
		if !errors.As(err, &stopped) || errors.As(err, &left) || stopped.By != "ann" || stopped.Reason != reason {
			c.w.t.Errorf("%s ended with %v", c.name, err)
		}
	case <-time.After(within):
		c.w.t.Fatalf("%s did not end", c.name)
	}
	c.w.eventually(func() error {
		if one, found := c.w.worker(c.name); found {
			return fmt.Errorf("it is listed: %+v", one)
		}
		return nil
	})
}

// TestAStoppedWorkerEnds: also one that has no room for tasks, and so no polls: it lets its handlers finish, and nothing is lost.
func TestAStoppedWorkerEnds(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		full := w.crewOf("full", yard.WithConcurrency(1))
		running := w.submitOne(&yardv1.NewTask{Type: "held"})
		w.reach(running, "running")
		idle := w.crewOf("idle")
		w.stopCrew(idle, "scaled down")
		waiting := w.submitOne(&yardv1.NewTask{Type: "quick"})
		id := full.live().ID
		testkit.NoError(t, testkit.Err(w.client.StopWorker(w.soon(), id, yard.WorkerDrain{Reason: "an upgrade", By: "ann"})))
		if one := full.live(); one.Drain == nil || !one.Drain.Stop || one.AttemptsCount != 1 {
			t.Errorf("it is %+v", one)
		}
		w.eventually(func() error { // it has asked
			if !w.drainSeen(id).Drain.GetStop() {
				return errors.New("it is not to stop")
			}
			return nil
		})
		close(full.gate)
		full.stopped("an upgrade")
		want(t, w.ended(running), "completed", "submitted started completed")
		equal(t, "state", stateOf(w.get(waiting)), "ready")
		equal(t, "begun", full.count(), 1)
		w.crewOf("next")
		want(t, w.ended(waiting), "completed", "submitted started completed")
		w.examined()
	})
}

// TestI14_NoOtherTenantDrainsAWorker, nor learns of it.
func TestI14_NoOtherTenantDrainsAWorker(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		mine := w.crewOf("mine")
		other := enter(t, w.stack)
		id := mine.live().ID
		for _, verb := range []string{"drain", "stop", "resume"} {
			answer, err := other.nc.RequestWithContext(w.soon(), topology.API(other.domain, "workers."+verb), []byte(`{"worker_id":"`+id+`"}`))
			testkit.NoError(t, err)
			e := fault.Decode(answer.Header.Get(fault.HeaderCode), answer.Header.Get(fault.HeaderDescription), answer.Data)
			if code := fault.CodeOf(e); code != fault.NotFound && (code != fault.Unavailable || verb == "resume") { // who is not heard may not be known yet
				t.Errorf("workers.%s: %v", verb, e)
			}
		}
		if w.drainSeen(id).Drain != nil || mine.live().Drain != nil {
			t.Error("it is drained")
		}
		testkit.NoError(t, testkit.Err(w.client.DrainWorker(w.soon(), id, yard.WorkerDrain{})))
		if w.drainSeen(id).Drain == nil || other.drainSeen(id).Drain != nil {
			t.Error("the other tenant learns of it, or its own worker does not")
		}
		for body, path := range map[string]string{
			`{}`: "/worker_id", `{"worker_id":"short"}`: "/worker_id", `{"worker_id":"` + id + `","reason":"` + strings.Repeat("r", 257) + `"}`: "/reason",
		} {
			_, err := w.raw("workers.drain", body)
			refusedAt(t, err, fault.InvalidArgument, path)
		}
		var resp yardv1.PollResponse
		answer, err := w.raw("tasks.poll", `{"tasklist":"work","no_tasks":true,"worker_id":"`+id+`"}`)
		if err != nil || codec.Unmarshal(codec.JSON, []byte(answer), &resp) != nil || resp.Drain == nil || strings.Contains(answer, id) {
			t.Errorf("%s %v", answer, err)
		}
	})
}
