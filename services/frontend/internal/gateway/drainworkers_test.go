package gateway

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/drained"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/poll"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

const workerOne, workerTwo = "worker-number-001", "worker-number-002"

// ears are the owners of partitions.
type ears struct {
	mu    sync.Mutex
	known time.Duration
	ids   []string
	// more: the answer is cut. during is called with each question.
	more   bool
	during func()
}

func (e *ears) set(known time.Duration, ids ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known, e.ids = known, ids
}

func (e *ears) locked(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

// hears has the owners of partitions hear workers, with an attempt each in every partition.
func hears(e *ears) func(*Deps) {
	return func(d *Deps) {
		d.Owners.HistoryWorkers = func(_ context.Context, _ int, req *rpcv1.ListWorkersRequest) (*rpcv1.ListWorkersResponse, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			out := &rpcv1.ListWorkersResponse{KnownForMs: e.known.Milliseconds(), More: e.more}
			if e.during != nil {
				e.during()
			}
			for _, id := range e.ids {
				if req.Domain == "shop" && (len(req.WorkerIds) == 0 || strings.Contains(strings.Join(req.WorkerIds, " "), id)) {
					out.Workers = append(out.Workers, &yardv1.LiveWorker{WorkerId: id, AttemptsCount: 1})
				}
			}
			return out, nil
		}
	}
}

// drainRig hears two workers.
func drainRig(t *testing.T) (*rig, *ears) {
	e := &ears{known: time.Hour, ids: []string{workerOne, workerTwo}}
	return newRig(t, hears(e)).running(t), e
}

func (r *rig) drainOne(t *testing.T, id string) *yardv1.LiveWorker {
	t.Helper()
	resp, err := asked(r, "shop", true, r.DrainWorker, &yardv1.DrainWorkerRequest{WorkerId: id, Reason: "why", By: "ann"})
	testkit.NoError(t, err)
	return resp.(*yardv1.DrainWorkerResponse).Worker
}

// pollOfWorker sends a poll of a worker.
func (r *rig) pollOfWorker(id string, wait time.Duration) <-chan reply {
	got := make(chan reply, 2)
	req := &yardv1.PollRequest{Tasklist: "main", MaxTasks: 1, WaitMs: wait.Milliseconds(), WorkerId: id}
	if place, err := r.Run.Admit("shop", 1); err == nil { // as the API does
		defer r.Run.Release(place)
	}
	r.Poll(r.call(), req, func(resp codec.Message, err error) { got <- reply{resp, err, time.Now()} })
	<-got
	return got
}

func drainIn(t *testing.T, o reply) *yardv1.WorkerDrain {
	t.Helper()
	if o.err != nil || len(o.resp.(*yardv1.PollResponse).Tasks) != 0 {
		t.Fatalf("answered %+v", o)
	}
	return o.resp.(*yardv1.PollResponse).Drain
}

// pollsEnded is who was said to get no more tasks, and how often.
func (r *rig) pollsEnded() map[string]int {
	r.bus.mu.Lock()
	defer r.bus.mu.Unlock()
	ended := map[string]int{}
	for _, m := range r.bus.silent {
		for _, w := range m.Workers {
			ended[w.Domain+"/"+w.WorkerId]++
		}
	}
	return ended
}

// TestPollsOfADrainedWorkerAreHeld: none reaches matching, each is answered after a rest, or its wait if that is shorter, and says why; those that wait elsewhere are
// ended. Other workers' polls go on.
func TestPollsOfADrainedWorkerAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := drainRig(t)
		if w := r.drainOne(t, workerOne); w.AttemptsCount != rigPartitions || w.Drain.Reason != "why" || w.Drain.By != "ann" || w.Drain.Stop || w.Drain.SinceMs == 0 {
			t.Errorf("it is %v", w)
		}
		time.Sleep(tickEvery)
		synctest.Wait()
		if ended := r.pollsEnded(); ended["shop/"+workerOne] != 1 || len(ended) != 1 {
			t.Errorf("ended %v", ended)
		}
		began := time.Now()
		long, short, none := r.pollOfWorker(workerOne, time.Minute), r.pollOfWorker(workerOne, time.Second), r.pollOfWorker(workerOne, 0)
		other, nameless := r.pollOfWorker(workerTwo, time.Minute), r.pollOfWorker("", time.Minute)
		testkit.Equal(t, "polls were sent", len(r.bus.sentPolls()), 2)
		for _, c := range []struct {
			got   <-chan reply
			after time.Duration
		}{{none, 0}, {short, time.Second}, {long, poll.DrainedRest}} {
			o := <-c.got
			if d := drainIn(t, o); d.GetReason() != "why" {
				t.Errorf("it says %v", d)
			}
			if took := o.at.Sub(began); took < c.after || took > c.after+2*tickEvery {
				t.Errorf("answered after %v, want %v", took, c.after)
			}
		}
		if len(other)+len(nameless) != 0 || r.kept() != 2 {
			t.Errorf("%d others are answered, %d kept", len(other)+len(nameless), r.kept())
		}
		time.Sleep(2 * drained.SaidFor)
		if ended := r.pollsEnded(); ended["shop/"+workerOne] < 10 || ended["shop/"+workerOne] > 30 {
			t.Errorf("ended %v", ended)
		}
	})
}

// TestAPollOnItsWayIsHeld that was sent before its worker was drained, and comes back here, from where it waited or from matching.
func TestAPollOnItsWayIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := drainRig(t)
		bounced, waits := r.pollOfWorker(workerOne, time.Minute), r.pollOfWorker(workerOne, time.Minute)
		sent := r.bus.sentPolls()
		r.Gateway.Polls.PollBounced(sent[0].id)
		r.drainOne(t, workerOne)
		r.tellMoved(t, sent[1].id, 1)
		for _, got := range []<-chan reply{bounced, waits} {
			if drainIn(t, <-got) == nil {
				t.Error("it does not say why")
			}
		}
		if n := len(r.bus.sentPolls()); n != 2 || r.kept() != 0 {
			t.Errorf("%d were sent, %d are kept", n, r.kept())
		}
	})
}

// TestHeldPollsLearnWhatChanges at once: that their worker is to stop, or is resumed. Those that go on then are sent.
func TestHeldPollsLearnWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := drainRig(t)
		r.drainOne(t, workerOne)
		r.drainOne(t, workerTwo)
		time.Sleep(time.Second)
		first, other := r.pollOfWorker(workerOne, time.Minute), r.pollOfWorker(workerTwo, time.Minute)
		if resp, err := asked(r, "shop", true, r.StopWorker, &yardv1.StopWorkerRequest{WorkerId: workerOne}); err != nil || !resp.(*yardv1.StopWorkerResponse).Worker.Drain.Stop {
			t.Errorf("%v %v", resp, err)
		}
		began := time.Now()
		if o := <-first; !drainIn(t, o).GetStop() || o.at.Sub(began) > 2*tickEvery {
			t.Errorf("answered %+v after %v", o, o.at.Sub(began))
		}
		testkit.Equal(t, "another worker's poll is answered", len(other), 0)
		if resp, err := asked(r, "shop", true, r.ResumeWorker, &yardv1.ResumeWorkerRequest{WorkerId: workerTwo}); err != nil || resp.(*yardv1.ResumeWorkerResponse).Drain.Reason != "why" {
			t.Errorf("%v %v", resp, err)
		}
		if o := <-other; drainIn(t, o) != nil || o.at.Sub(began) > 2*tickEvery {
			t.Errorf("answered %+v", o)
		}
		_ = r.pollOfWorker(workerTwo, time.Minute)
		testkit.Equal(t, "polls were sent", len(r.bus.sentPolls()), 1)
	})
}

// TestAPollMayOnlyAsk whether its worker is drained: it is answered at once, is not sent, and what it says of lost answers is passed on.
func TestAPollMayOnlyAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := drainRig(t)
		ask := func(id string, max int32) (*yardv1.PollResponse, error) {
			resp, err := asked(r, "shop", true, r.Poll, &yardv1.PollRequest{Tasklist: "main", NoTasks: true, WorkerId: id, MaxTasks: max, Unanswered: []string{"lost"}})
			if err != nil {
				return nil, err
			}
			return resp.(*yardv1.PollResponse), nil
		}
		r.drainOne(t, workerOne)
		for id, want := range map[string]string{workerOne: "why", workerTwo: "", "": ""} {
			if resp, err := ask(id, 0); err != nil || resp.Drain.GetReason() != want || (resp.Drain != nil) != (want != "") {
				t.Errorf("%q: %v %v", id, resp, err)
			}
		}
		wantCode(t, testkit.Err(ask(workerOne, 1001)), fault.InvalidArgument)
		if n := len(r.bus.sentPolls()); n != 0 || r.kept() != 0 || len(r.bus.givenUp) != 3 {
			t.Errorf("%d polls were sent, %d kept, %v", n, r.kept(), r.bus.givenUp)
		}
		r.Poll(r.call(), &yardv1.PollRequest{Tasklist: "main", WorkerId: workerOne, MaxTasks: 1, Unanswered: []string{"lost"}}, func(codec.Message, error) {})
		r.Poll(r.call(), &yardv1.PollRequest{Tasklist: "main", WorkerId: workerTwo, MaxTasks: 1, Unanswered: []string{"lost"}}, func(codec.Message, error) {})
		if n := len(r.bus.givenUp); n != 5 {
			t.Errorf("%d times something was given up", n)
		}
		if _, err := asked(r, "shop", true, r.Poll, &yardv1.PollRequest{Tasklist: "main", WorkerId: workerOne}); fault.From(err).Path != "/max_tasks" {
			t.Errorf("got %v", err)
		}
	})
}

// TestWhoMayBeDrained: a worker that is heard in this domain, and only so many.
func TestWhoMayBeDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, e := drainRig(t)
		drain := func(domain, id, reason string) error {
			_, err := asked(r, domain, true, r.DrainWorker, &yardv1.DrainWorkerRequest{WorkerId: id, Reason: reason})
			return err
		}
		add(t, r.catalog, catalog.Domains, "", &yardv1.Domain{Name: "other"})
		for _, c := range []struct {
			domain, id, reason, path string
			code                     fault.Code
		}{
			{"shop", "", "", "/worker_id", fault.InvalidArgument},
			{"shop", "short", "", "/worker_id", fault.InvalidArgument},
			{"shop", workerOne, strings.Repeat("r", validate.WorkerReasonBytesMax+1), "/reason", fault.InvalidArgument},
			{"shop", "worker-not-heard", "", "/worker_id", fault.NotFound},
			{"other", workerOne, "", "/worker_id", fault.NotFound},
			{"absent", workerOne, "", "", fault.NotFound},
		} {
			wantAt(t, drain(c.domain, c.id, c.reason), c.code, c.path)
		}
		e.set(drained.KnownAfter-time.Millisecond, workerOne)
		wantCode(t, drain("shop", "worker-not-heard", ""), fault.Unavailable)
		wantCode(t, testkit.Err(asked(r, "shop", true, r.ResumeWorker, &yardv1.ResumeWorkerRequest{WorkerId: workerOne})), fault.NotFound)
		since := r.drainOne(t, workerOne).Drain.SinceMs
		time.Sleep(time.Second)
		testkit.Equal(t, "a repeat is another drain", r.drainOne(t, workerOne).Drain.SinceMs, since)
		if err := drain("shop", workerOne, "another"); err != nil || r.catalog.DrainedWorker("shop", workerOne).SinceMs == since {
			t.Errorf("another reason replaces nothing: %v", err)
		}
		var ids []string
		for n := range validate.DrainedWorkersMax {
			ids = append(ids, fmt.Sprintf("worker-of-many-%04d", n))
		}
		e.set(time.Hour, ids...)
		r.catalog.drainWorkers(t, "shop", 1, ids[1:]...)
		wantCode(t, drain("shop", ids[0], ""), fault.FailedPrecondition)
		testkit.Check(t, drain("shop", ids[1], ""))
	})
}

// TestListedWorkersSayThatTheyAreDrained, of their own domain.
func TestListedWorkersSayThatTheyAreDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := drainRig(t)
		r.catalog.drainWorkers(t, "other", 1, workerTwo)
		r.drainOne(t, workerOne)
		resp, err := asked(r, "shop", true, r.ListWorkers, &yardv1.ListWorkersRequest{})
		testkit.NoError(t, err)
		all := resp.(*yardv1.ListWorkersResponse).Workers
		if len(all) != 2 || all[0].Drain.GetReason() != "why" || all[1].Drain != nil {
			t.Errorf("listed %v", all)
		}
	})
}

// TestDrainsOfWorkersThatAreGoneAreForgotten, and those of workers that live stay, however long.
func TestDrainsOfWorkersThatAreGoneAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, e := drainRig(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.ForgetDrains(ctx) }()
		r.drainOne(t, workerOne)
		r.drainOne(t, workerTwo)
		drainedNow := func() int { return len(catalog.Workers.Of(r.catalog.Catalog, "", "shop").GetWorkers()) }
		time.Sleep(2 * drained.SilentAfter)
		testkit.Equal(t, "one that lives is forgotten", drainedNow(), 2)
		e.set(0, workerTwo)
		time.Sleep(2 * drained.SilentAfter)
		testkit.Equal(t, "one is forgotten that was not listened to", drainedNow(), 2)
		e.set(time.Hour, workerTwo)
		e.locked(func() { e.more = true })
		time.Sleep(2 * drained.SilentAfter)
		e.locked(func() { e.more = false })
		time.Sleep(drained.SilentAfter - time.Minute)
		testkit.Equal(t, "one is forgotten too early", drainedNow(), 2)
		time.Sleep(2 * time.Minute)
		if drainedNow() != 1 || r.catalog.DrainedWorker("shop", workerTwo) == nil {
			t.Errorf("%d are drained", drainedNow())
		}
		stop()
		testkit.Equal(t, "the end", <-ended, nil)
	})
}

// TestADrainFromMeanwhileStays: one that was put while it was looked whether the worker is gone.
func TestADrainFromMeanwhileStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, e := drainRig(t)
		r.drainOne(t, workerOne)
		e.set(time.Hour)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = r.ForgetDrains(ctx) }()
		const searchEvery = 10 * time.Second
		time.Sleep(drained.SilentAfter + searchEvery/2) // the next search is the first that may find it gone
		e.locked(func() {
			e.during = func() { r.catalog.drainWorkers(t, "shop", 77, workerOne) }
		})
		time.Sleep(searchEvery)
		if r.catalog.DrainedWorker("shop", workerOne) == nil {
			t.Error("it is forgotten")
		}
		e.locked(func() { e.during = nil })
		time.Sleep(searchEvery)
		if r.catalog.DrainedWorker("shop", workerOne) != nil {
			t.Error("it is kept")
		}
	})
}

// TestPollsThatRestSayWhy: those that wait here, for an owner or for work, end when it is said that polls of their worker do, and name the drain.
func TestPollsThatRestSayWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := drainRig(t)
		clear(r.Gateway.Polls.Epochs)
		waits := r.pollOfWorker(workerOne, time.Minute)
		r.drainOne(t, workerOne)
		r.TakeSilent(testkit.Encoded(t, &rpcv1.Silent{Workers: []*rpcv1.SilentWorker{{Domain: "shop", WorkerId: workerOne}}}))
		if len(waits) != 1 || drainIn(t, <-waits).GetReason() != "why" {
			t.Error("it waits, or says nothing")
		}
	})
}

// TestAnEndingFrontendAnswersHeldPolls at once.
func TestAnEndingFrontendAnswersHeldPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := drainRig(t)
		r.drainOne(t, workerOne)
		time.Sleep(time.Second)
		held := r.pollOfWorker(workerOne, time.Minute)
		r.Gateway.Polls.Stop()
		if len(held) != 1 || drainIn(t, <-held) == nil || r.kept() != 0 {
			t.Error("it is held")
		}
		if late := r.pollOfWorker(workerOne, time.Minute); len(late) != 1 || r.kept() != 0 {
			t.Error("a late one is held")
		}
	})
}
