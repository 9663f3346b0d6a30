package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/poll"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/outcome"
)

// free is how many queries, or waits, of a domain that has none find a place.
func free(run func(string, time.Time, call.Answer, call.Work)) (n int) {
	end := make(chan struct{})
	answered := make(chan struct{}, 1000)
	for len(answered) == 0 {
		run("probe", time.Now().Add(time.Second), func(codec.Message, error) { answered <- struct{}{} }, func(context.Context) (codec.Message, error) {
			<-end
			return nil, nil
		})
		n++
	}
	close(end)
	for range n {
		<-answered
	}
	return n - 1
}

// freeRequests is how many requests of so many bytes of a domain that has none find a place.
func freeRequests(r *rig, domain string, bytes int) int {
	var all []call.Place
	for {
		p, err := r.Run.Admit(domain, bytes)
		if err != nil {
			break
		}
		all = append(all, p)
	}
	for _, p := range all {
		r.Run.Release(p)
	}
	return len(all)
}

// from is a call of a domain.
func (r *rig) from(domain string) call.Call {
	c := r.call()
	c.Domain = domain
	return c
}

// small makes all pools small: 12 places for one domain, and one for each other.
func small(d *Deps) {
	d.Config.RequestsMax, d.Config.QueriesMax, d.Config.WaitsMax, d.Config.PollsMax = 16, 16, 16, 16
}

// roomy is small but for the requests, which are counted before all else.
func roomy(d *Deps) {
	small(d)
	d.Config.RequestsMax = 1000
}

const poolOfOne = 12

// flooded is a rig with a second domain.
func flooded(t *testing.T, change ...func(*Deps)) *rig {
	t.Helper()
	r := newRig(t, change...)
	add(t, r.catalog, catalog.Domains, "", &yardv1.Domain{Name: "flood"})
	return r
}

// heldUp has every get at history held up until open is closed, or its context ends.
func heldUp(open <-chan struct{}) func(*Deps) {
	return func(d *Deps) {
		d.Owners.HistoryGet = func(ctx context.Context, _ int, _ *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
			select {
			case <-open:
				return &rpcv1.GetTaskResponse{Task: &yardv1.Task{State: yardv1.TaskState_TASK_STATE_COMPLETED}}, nil
			case <-ctx.Done():
				return nil, fault.New(fault.Unavailable, "gone")
			}
		}
	}
}

// ask sends a get of a domain, with or without a wait.
func (r *rig) ask(t *testing.T, domain string, wait time.Duration) <-chan reply {
	answer, got := r.answers(t)
	r.Get(r.from(domain), &yardv1.GetRequest{TaskId: ids.NewTaskID(time.Now(), 1, 1).String(), WaitMs: wait.Milliseconds()}, answer)
	return got
}

// R3: a domain that fills the queries or the waits leaves the others theirs; waits take no
// place from queries, and neither takes one from the administration (I14).
func TestI14_QueriesAndWaitsLeaveRoomForOthers(t *testing.T) {
	for name, c := range map[string]struct {
		wait, other time.Duration
		room        func(*rig) func(string, time.Time, call.Answer, call.Work)
	}{
		"queries": {0, time.Minute, func(r *rig) func(string, time.Time, call.Answer, call.Work) { return r.Run.Query }},
		"waits":   {time.Minute, 0, func(r *rig) func(string, time.Time, call.Answer, call.Work) { return r.Run.Wait }},
	} {
		inBubble(t, name, func(t *testing.T) {
			open := make(chan struct{})
			r := flooded(t, roomy, heldUp(open)).running(t)
			var held []<-chan reply
			for range poolOfOne {
				held = append(held, r.ask(t, "flood", c.wait))
			}
			wantLater(t, (<-r.ask(t, "flood", c.wait)).err, fault.ResourceExhausted)
			held = append(held, r.ask(t, "shop", c.wait), r.ask(t, "flood", c.other))
			put := make(chan reply, 1)
			r.PutDomain(r.from(topology.ReservedDomain), &yardv1.PutDomainRequest{Domain: &yardv1.Domain{Name: "new"}},
				func(resp codec.Message, err error) { put <- reply{resp: resp, err: err} })
			if o := <-put; o.err != nil {
				t.Errorf("the administration was refused: %v", o.err)
			}
			close(open)
			for _, one := range held {
				if o := <-one; o.err != nil {
					t.Errorf("got %v", o.err)
				}
			}
			testkit.Equal(t, "places are free in the end", free(c.room(r)), poolOfOne)
		})
	}
}

// R3: no way out of a query keeps its place.
func TestQueriesAndWaitsLeaveTheirPlaces(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, r *rig, stop func()){
		"its time is over": func(*testing.T, *rig, func()) { time.Sleep(2 * time.Minute) },
		"the gateway gives up": func(_ *testing.T, r *rig, stop func()) {
			stop()
			time.Sleep(r.config.DrainTimeout + time.Second)
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			r := flooded(t, roomy, heldUp(nil))
			stop, ended := r.started()
			for range 5 {
				r.ask(t, "shop", 0)
				r.ask(t, "shop", time.Minute)
			}
			synctest.Wait()
			if q, w := free(r.Run.Query), free(r.Run.Wait); q != poolOfOne-5 || w != poolOfOne-5 {
				t.Fatalf("%d and %d places are free beside five", q, w)
			}
			end(t, r, stop)
			synctest.Wait()
			if q, w := free(r.Run.Query), free(r.Run.Wait); q != poolOfOne || w != poolOfOne {
				t.Errorf("%d and %d places are free in the end", q, w)
			}
			testkit.Equal(t, "requests may come in the end", freeRequests(r, "probe", 0), 750)
			stop()
			testkit.Equal(t, "the end", <-ended, nil)
		})
	}
}

// R3: a domain's polls leave places to others, and give theirs back: answered, ended by a new
// owner, when their time is over, heard or not, and when the gateway stops.
func TestI14_PollsLeaveRoomForOthers(t *testing.T) {
	for name, end := range map[string]func(r *rig, stop func()){
		"answered": func(r *rig, _ func()) {
			for _, s := range r.bus.sentPolls() {
				r.tellAnswered(t, s.id)
			}
		},
		"ended by a new owner": func(r *rig, _ func()) {
			r.opened(rigEpoch + 1)
		},
		"over":        func(*rig, func()) { time.Sleep(10*time.Second + 2*poll.OverAfter) },
		"never heard": func(r *rig, _ func()) { bounced(r, 11*time.Second) },
		"at a stop":   func(_ *rig, stop func()) { stop() },
	} {
		inBubble(t, name, func(t *testing.T) {
			r := flooded(t, roomy)
			stop, ended := r.started()
			ask := func(domain string) error {
				got := make(chan error, 2)
				r.Poll(r.from(domain), &yardv1.PollRequest{Tasklist: "main", MaxTasks: 1, WaitMs: 10_000}, func(_ codec.Message, err error) { got <- err })
				return <-got
			}
			for range poolOfOne {
				testkit.NoError(t, ask("flood"))
			}
			wantLater(t, ask("flood"), fault.ResourceExhausted)
			testkit.Check(t, ask("shop"))
			if name == "at a stop" {
				bounced(r, poll.RetryEvery/2)
			}
			end(r, stop)
			if name == "at a stop" {
				testkit.Equal(t, "the end", <-ended, nil)
				return // no poll waits any more
			}
			for range poolOfOne {
				testkit.Check(t, ask("flood"))
			}
			stop()
			testkit.Equal(t, "the end", <-ended, nil)
		})
	}
}

// bounced tells for so long that no one took what is sent.
func bounced(r *rig, lasts time.Duration) {
	told := 0
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(tickEvery) {
		synctest.Wait()
		sent := r.bus.sentPolls()
		for _, s := range sent[told:] {
			r.Gateway.Polls.PollBounced(s.id)
		}
		told = len(sent)
	}
}

// A poll counts for what it takes: one with many types is many.
func TestLongPollsTakeMorePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := flooded(t, roomy)
		req := &yardv1.PollRequest{Tasklist: "main", MaxTasks: 1}
		for i := range 100 {
			req.Types = append(req.Types, ids.NewTaskID(time.Now(), 1, uint64(i)).String())
		}
		r.Poll(r.from("flood"), req, func(codec.Message, error) {})
		n, full := 0, false
		for ; !full; n++ {
			r.Poll(r.from("flood"), &yardv1.PollRequest{Tasklist: "main", MaxTasks: 1}, func(_ codec.Message, err error) { full = full || err != nil })
		}
		if n--; n >= poolOfOne-1 {
			t.Errorf("%d polls find a place beside one of %d B", n, req.SizeVT())
		}
	})
}

// R3: neither the number nor the bytes of one domain's requests shut others out, nor the
// administration; domains that do not exist share what one may have.
func TestI14_RequestsLeaveRoomForOthers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Deps)
		bytes  int
	}{
		"many":  {small, 1},
		"large": {func(d *Deps) { d.Config.RequestBytesMax = 1600 }, 100},
	} {
		t.Run(name, func(t *testing.T) {
			r := flooded(t, c.change)
			var all []call.Place
			admit := func(domain string) error {
				p, err := r.Run.Admit(domain, c.bytes)
				if err == nil {
					all = append(all, p)
				}
				return err
			}
			for _, made := range []string{"made", "up"} {
				for range poolOfOne / 2 {
					testkit.NoError(t, admit(made))
				}
			}
			for _, full := range []string{"made", "another", "flood"} {
				if err := admit(full); (err == nil) != (full == "flood") {
					t.Errorf("%s: %v", full, err)
				}
			}
			wantCode(t, admit("flood"), fault.ResourceExhausted) // it has the one of a domain with few
			for _, other := range []string{"shop", topology.ReservedDomain} {
				if err := admit(other); err != nil {
					t.Errorf("%s: %v", other, err)
				}
			}
			for _, p := range all {
				r.Run.Release(p)
			}
			testkit.Equal(t, "places are free in the end", freeRequests(r, "probe", 0), r.config.RequestsMax*3/4)
			testkit.Equal(t, "requests find place for their bytes", freeRequests(r, "probe", r.config.RequestBytesMax*3/4), 1)
			testkit.Equal(t, "places are free for the administration", freeRequests(r, topology.ReservedDomain, 0), adminMax*3/4)
			testkit.Check(t, r.Run.Drain(nil, 0)) // none is open
		})
	}
}

// R3: outcomes that wait for a partition are bounded for each domain, not for all together.
func TestI14_OutcomesThatWaitLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := flooded(t).running(t)
		complete := func(domain string) <-chan reply {
			answer, got := r.answers(t)
			done := completion(1, 1)
			done.Result = &yardv1.Payload{Data: make([]byte, 200<<10), Encoding: yardv1.Encoding_ENCODING_BINARY}
			r.Complete(r.from(domain), &yardv1.CompleteRequest{Tasks: []*yardv1.Completion{done}}, answer)
			return got
		}
		var waiting []<-chan reply
		var full <-chan reply
		for full == nil { // history stands still
			if got := complete("flood"); len(got) > 0 {
				full = got
			} else {
				waiting = append(waiting, got)
			}
		}
		if v := verdicts(t, <-full)[0]; v.Code != string(fault.ResourceExhausted) || len(waiting) < 100 {
			t.Errorf("the domain that has its share of %d: %v", len(waiting), v)
		}
		waiting = append(waiting, complete("shop"))
		for sent := 0; ; {
			synctest.Wait()
			all := r.bus.sentEvents()
			if len(all) == sent {
				break
			}
			for ; sent < len(all); sent++ {
				r.verdict(t, all[sent], 0, len(all[sent].batch.Events))
			}
		}
		for _, got := range waiting {
			if v := verdicts(t, <-got)[0]; v.Code != outcome.CodeOK {
				t.Errorf("one that waited: %v", v)
			}
		}
		if got := complete("flood"); len(got) > 0 {
			t.Error("what was sent still counts as waiting")
		}
	})
}

// R3: a submit that found no room to wait is stored, and says so; one whose time ran out does not.
func TestSubmitThatFindsNoRoomToWaitSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := flooded(t, roomy, heldUp(nil)).running(t)
		wait := func() <-chan reply {
			req := tasks(1)
			req.Wait, req.WaitMs = true, 5000
			return r.submit(t, req)
		}
		began := time.Now()
		var held []<-chan reply
		for range poolOfOne {
			held = append(held, wait())
		}
		synctest.Wait()
		o := <-wait()
		if accepted(t, o); o.at != began {
			t.Errorf("answered after %v", o.at.Sub(began))
		}
		resp := o.resp.(*yardv1.SubmitResponse)
		if resp.WaitCode != string(fault.ResourceExhausted) || resp.WaitRetryAfterMs <= 0 || resp.Task.GetTaskId() != resp.TaskIDs()[0] {
			t.Errorf("got %v", resp)
		}
		for _, one := range held {
			o := <-one
			if accepted(t, o); o.at.Sub(began) < 5*time.Second || o.resp.(*yardv1.SubmitResponse).WaitCode != "" {
				t.Errorf("a wait whose time ran out, after %v: %v", o.at.Sub(began), o.resp)
			}
		}
		testkit.Equal(t, "tasks are stored", len(r.log.tasks(t)), poolOfOne+1)
		testkit.Equal(t, "places are free in the end", free(r.Run.Wait), poolOfOne)
	})
}
