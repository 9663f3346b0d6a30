package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/idle"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/direct"
)

// polled is the answer of a poll, sent to an inbox.
type polled struct {
	to   string
	id   uint64
	resp *yardv1.PollResponse
}

func (b *memBus) AnswerPoll(to string, _ bool, id uint64, resp *yardv1.PollResponse) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unanswerable {
		return errDown
	}
	b.answers = append(b.answers, polled{to, id, resp})
	return nil
}

// onDirect runs a test on a rig whose polls may stay, and whose owner of matching knows the worker of pollHere.
func onDirect(t *testing.T, test func(t *testing.T, r *rig), change ...func(*Deps)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, append(change, func(d *Deps) { d.Config.DirectStarts = true })...).running(t)
		r.pollHere(t, "first")
		if n := len(r.bus.sentPolls()); n != 1 {
			t.Fatalf("the first poll of a worker goes to matching: %d are sent", n)
		}
		r.tellAnswered(t, r.bus.sentPolls()[0].id)
		test(t, r)
	})
}

// called has matching name how many triggers wait for main.
func (r *rig) called(t *testing.T, triggers int64) {
	t.Helper()
	r.TakeTasklistLoad(testkit.Encoded(t, &rpcv1.TasklistLoad{Partitions: []*rpcv1.PartitionLoad{{Domain: "shop", Tasklist: "main", Triggers: triggers}}}))
}

// givesUp has the asker of a poll of domain shop give it up.
func (r *rig) givesUp(t *testing.T, inbox string) {
	t.Helper()
	r.Gateway.Polls.TakeGivenUp(testkit.Encoded(t, &rpcv1.GivenUp{Domain: "shop", Inboxes: []string{inbox}}))
}

// ofLength is a task with so long a payload.
func ofLength(n int) *yardv1.NewTask {
	return &yardv1.NewTask{Type: "mail", Payload: &yardv1.Payload{Data: make([]byte, n)}}
}

// pollHere polls main with an inbox.
func (r *rig) pollHere(t *testing.T, inbox string, types ...string) {
	t.Helper()
	c := r.call()
	c.Reply = inbox
	r.Poll(c, &yardv1.PollRequest{Tasklist: "main", MaxTasks: 10, WaitMs: 30_000, Worker: "w", Types: types}, func(resp codec.Message, err error) {
		if err != nil {
			t.Errorf("poll %s: %v", inbox, err)
		}
		if resp != nil {
			r.bus.mu.Lock()
			defer r.bus.mu.Unlock()
			r.bus.answers = append(r.bus.answers, polled{to: inbox, resp: resp.(*yardv1.PollResponse)})
		}
	})
}

// submitNow submits tasks to main, and returns their ids.
func (r *rig) submitNow(t *testing.T, tasks ...*yardv1.NewTask) []string {
	t.Helper()
	resp, err := asked(r, "shop", true, r.Submit, &yardv1.SubmitRequest{Tasklist: "main", Tasks: tasks})
	testkit.NoError(t, err)
	var all []string
	for _, one := range resp.(*yardv1.SubmitResponse).Results {
		all = append(all, one.TaskId)
	}
	return all
}

// given are the answers of polls so far.
func (r *rig) given() []polled {
	synctest.Wait()
	r.bus.mu.Lock()
	defer r.bus.mu.Unlock()
	return append([]polled(nil), r.bus.answers...)
}

// releases are the attempts that were handed back.
func (r *rig) releases() (all []string) {
	synctest.Wait()
	for _, e := range r.bus.sentEvents() {
		for _, ev := range e.batch.Events {
			if ev.Kind == logv1.EventKind_EVENT_KIND_RELEASED {
				id, _ := ids.TaskIDFromBytes(ev.TaskId)
				all = append(all, id.String())
			}
		}
	}
	return all
}

// starts are those that the log has.
func (r *rig) starts() (n int) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	for _, all := range r.log.partitions {
		for _, m := range all {
			var b logv1.Batch
			if err := b.UnmarshalVT(m.Data); err != nil {
				panic(err)
			}
			for _, task := range b.Tasks {
				if task.Start != nil {
					n++
				}
			}
		}
	}
	return n
}

func one() *yardv1.NewTask {
	return &yardv1.NewTask{Type: "mail", Payload: &yardv1.Payload{Data: []byte("x")}}
}

// TestATaskStartsWithItsSubmit: the poll that waits here has the task once the log has it, with a token that names that place.
func TestATaskStartsWithItsSubmit(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		id := r.submitNow(t, one())[0]
		got := r.given()
		if len(got) != 1 || got[0].to != "a" || len(got[0].resp.Tasks) != 1 {
			t.Fatalf("answered %v", got)
		}
		task := got[0].resp.Tasks[0]
		parsed, err := ids.ParseTaskID(id)
		testkit.NoError(t, err)
		token, err := rigTokens.Read(parsed, task.Token)
		testkit.NoError(t, err)
		if task.TaskId != id || task.Type != "mail" || task.Tasklist != "main" || string(task.Payload.Data) != "x" || task.Attempt != 1 || task.TimeoutMs <= 0 || task.CreatedAtMs == 0 {
			t.Errorf("got %v", task)
		}
		if token.Version != 1 || token.Position.Seq() == 0 || token.Position.Lane() != ids.LaneFirst || !token.Position.Shared() {
			t.Errorf("token %+v", token)
		}
		if r.starts() != 1 || len(r.bus.sentPolls()) != 1 || r.kept() != 0 {
			t.Errorf("%d starts, %d polls sent, %d kept", r.starts(), len(r.bus.sentPolls()), r.kept())
		}
	})
}

// TestTasksAreDealt: each poll gets its part, and one that gets nothing waits on.
func TestTasksAreDealt(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		r.pollHere(t, "b")
		r.pollHere(t, "other", "other")
		r.submitNow(t, one(), one(), one(), one())
		got := r.given()
		if len(got) != 2 || len(got[0].resp.Tasks) != 2 || len(got[1].resp.Tasks) != 2 || got[0].to == got[1].to {
			t.Fatalf("answered %v", got)
		}
		r.submitNow(t, &yardv1.NewTask{Type: "other"})
		if got = r.given(); len(got) != 3 || got[2].to != "other" {
			t.Errorf("answered %v", got)
		}
	})
}

// TestWhatDoesNotStartWithItsSubmit has something between it and its start, or no second attempt.
func TestWhatDoesNotStartWithItsSubmit(t *testing.T) {
	for what, c := range map[string]struct {
		task *yardv1.NewTask
		set  func(t *testing.T, r *rig)
	}{
		"delayed":     {task: &yardv1.NewTask{Type: "mail", DelayMs: 1000}},
		"ordered":     {task: &yardv1.NewTask{Type: "mail", OrderKey: "k"}},
		"one attempt": {task: &yardv1.NewTask{Type: "mail", Retry: &yardv1.RetryPolicy{MaxAttempts: 1}}},
		"a type with a limit": {task: one(), set: func(t *testing.T, r *rig) {
			add(t, r.catalog, catalog.Types, "shop", &yardv1.TaskType{Name: "mail", MaxConcurrency: 1})
		}},
		"a type of a shared limit": {task: one(), set: func(t *testing.T, r *rig) {
			add(t, r.catalog, catalog.Types, "shop", &yardv1.TaskType{Name: "mail", Limits: []string{"both"}})
		}},
		"a tasklist with a rate": {task: one(), set: func(t *testing.T, r *rig) {
			add(t, r.catalog, catalog.Tasklists, "shop", &yardv1.Tasklist{Name: "main", Rate: &yardv1.Rate{Tasks: 1}})
		}},
		"a domain with a limit": {task: one(), set: func(t *testing.T, r *rig) {
			add(t, r.catalog, catalog.Domains, "", &yardv1.Domain{Name: "shop", MaxConcurrencyPerGroup: 1})
		}},
		"a paused type": {task: one(), set: func(t *testing.T, r *rig) {
			testkit.NoError(t, testkit.Err(catalog.Pauses.Types.PutAs(t.Context(), r.catalog.kv, "shop", "mail", &yardv1.Pause{SinceMs: 1})))
			synctest.Wait()
		}},
	} {
		t.Run(what, func(t *testing.T) {
			onDirect(t, func(t *testing.T, r *rig) {
				r.pollHere(t, "a")
				if c.set != nil {
					c.set(t, r)
				}
				r.submitNow(t, c.task)
				if got := r.given(); len(got) > 0 || r.starts() > 0 {
					t.Errorf("answered %v, %d starts", got, r.starts())
				}
			})
		})
	}
}

// TestPollsGoWhereTasksWait: matching calls them; and one that has waited here for long goes there.
func TestPollsGoWhereTasksWait(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		r.pollHere(t, "b")
		testkit.Equal(t, "sent", len(r.bus.sentPolls()), 1)
		r.called(t, 10)
		testkit.Equal(t, "sent for as many as a poll takes", len(r.bus.sentPolls()), 2)
		r.called(t, 11)
		testkit.Equal(t, "sent", len(r.bus.sentPolls()), 3)
		r.pollHere(t, "c") // for the eleventh
		testkit.Equal(t, "sent as it comes", len(r.bus.sentPolls()), 4)
		r.called(t, 0)
		r.pollHere(t, "d")
		testkit.Equal(t, "sent", len(r.bus.sentPolls()), 4)
		time.Sleep(idle.WaitMax + time.Second)
		sent := r.bus.sentPolls()
		if len(sent) != 5 || sent[4].poll.WaitMs > 20_000 || sent[4].poll.WaitMs < 18_000 {
			t.Errorf("sent %v", sent)
		}
	})
}

// TestASubmitThatIsNotStoredStartsNothing: its poll waits on, and the next one has it.
func TestASubmitThatIsNotStoredStartsNothing(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		fails := 1
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if fails--; fails >= 0 {
				return false, natslog.ErrNotStored
			}
			return true, nil
		}
		id := r.submitNow(t, one())[0]
		if got := r.given(); len(got) != 1 || len(got[0].resp.Tasks) != 1 || got[0].resp.Tasks[0].TaskId != id {
			t.Errorf("answered %v", got)
		}
	})
}

// TestALateAcknowledgementHandsBack: the log may have stored the submit too late for its start.
func TestALateAcknowledgementHandsBack(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		began := time.Now()
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if time.Since(began) < direct.HandedWithin {
				return true, natslog.ErrOutcomeUnknown
			}
			return true, nil
		}
		id := r.submitNow(t, one())[0]
		if got := r.given(); len(got) > 0 {
			t.Errorf("answered %v", got)
		}
		if back := r.releases(); len(back) != 1 || back[0] != id {
			t.Errorf("handed back %v, want %s", back, id)
		}
		r.log.heals()
		id = r.submitNow(t, one())[0]
		if got := r.given(); len(got) != 1 || got[0].resp.Tasks[0].TaskId != id {
			t.Errorf("the poll waits on: answered %v", got)
		}
	})
}

// TestAnUnknownAppendHoldsNoPoll: the poll is there for the next submit at once, and what the log has all the same is handed back.
func TestAnUnknownAppendHoldsNoPoll(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		lost := true
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if lost {
				lost = false
				return true, natslog.ErrOutcomeUnknown
			}
			return true, nil
		}
		first := sent(t, r, r.Submit, &yardv1.SubmitRequest{Tasklist: "main", Tasks: []*yardv1.NewTask{one()}})
		synctest.Wait()
		id := r.submitNow(t, one())[0]
		if got := r.given(); len(got) != 1 || len(got[0].resp.Tasks) != 1 || got[0].resp.Tasks[0].TaskId != id {
			t.Fatalf("answered %v, want %s alone", got, id)
		}
		resp := (<-first).resp.(*yardv1.SubmitResponse)
		if back := r.releases(); len(back) != 1 || back[0] != resp.Results[0].TaskId {
			t.Errorf("handed back %v, want %v", back, resp)
		}
	})
}

// TestWhatTheLogMayIgnoreIsNotHandedOver: a request that was sent late in its time may be void where the log took it, and its repeat runs then.
func TestWhatTheLogMayIgnoreIsNotHandedOver(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		r.log.gate = make(chan struct{}, 1)
		id := ids.NewRequestID(time.Now().Add(10*time.Millisecond - tries.FreshFor)).String()
		sent(t, r, r.Submit, &yardv1.SubmitRequest{RequestId: id, Tries: 1, Tasklist: "main", Tasks: []*yardv1.NewTask{one()}})
		time.Sleep(direct.HandedWithin - 100*time.Millisecond)
		r.log.gate <- struct{}{}
		if got := r.given(); len(got) > 0 || r.starts() != 1 || len(r.releases()) != 1 {
			t.Errorf("answered %v, %d starts, handed back %v", got, r.starts(), r.releases())
		}
	})
}

// verdict answers the last events as history does, and waits until they may be repeated.
func verdict(t *testing.T, r *rig, code fault.Code) {
	t.Helper()
	synctest.Wait()
	all := r.bus.sentEvents()
	r.TakeVerdicts(testkit.Encoded(t, &logv1.VerdictBatch{RequestId: all[len(all)-1].id, Verdicts: []*logv1.EventVerdict{{Code: string(code)}}}))
	time.Sleep(handBackAgain)
}

// TestHandingBackIsRepeated where history has not admitted the task, for some time.
func TestHandingBackIsRepeated(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		r.submitNow(t, one())
		r.Gateway.Polls.TasksBounced(r.given()[0].id)
		verdict(t, r, fault.Unavailable)
		testkit.Equal(t, "sent after a refusal that passes", len(r.releases()), 2)
		verdict(t, r, fault.Stale)
		time.Sleep(handBackWithin)
		testkit.Equal(t, "sent after another", len(r.releases()), 2)
	})
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		r.submitNow(t, one())
		r.Gateway.Polls.TasksBounced(r.given()[0].id)
		for range 2 * handBackWithin / handBackAgain {
			verdict(t, r, fault.Unavailable)
		}
		testkit.Equal(t, "sent while history refuses", len(r.releases()), int(handBackWithin/handBackAgain))
	})
}

// TestANewOwnerOfMatchingHearsOfWorkers: it knows of no task that waits there until a poll comes, and of no worker that has none there.
func TestANewOwnerOfMatchingHearsOfWorkers(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		r.pollHere(t, "b")
		testkit.Equal(t, "sent", len(r.bus.sentPolls()), 1)
		first := r.bus.sentPolls()[0]
		r.Opened((first.shard+1)%rigShards, rigEpoch+1)
		testkit.Equal(t, "sent when another shard has a new owner", len(r.bus.sentPolls()), 1)
		r.Opened(first.shard, rigEpoch+1)
		r.Opened(first.shard, rigEpoch+1)
		got := r.bus.sentPolls()
		if len(got) != 2 || got[1].epoch != rigEpoch+1 || got[1].poll.ReplyTo != "a" {
			t.Fatalf("sent %v", got)
		}
		testkit.Equal(t, "answered", len(r.given()), 0)
	})
}

// TestPollsOfADrainedWorkerDoNotStayHere: the frontend knows of the drain itself, and no word of others has to reach it.
func TestPollsOfADrainedWorkerDoNotStayHere(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollOfWorker(workerOne, time.Minute) // it goes to matching
		drained, other := r.pollOfWorker(workerOne, time.Minute), r.pollOfWorker(workerTwo, time.Minute)
		r.catalog.drainWorkers(t, "shop", 1, workerOne)
		time.Sleep(tickEvery)
		if d := drainIn(t, <-drained); d.GetSinceMs() != 1 {
			t.Errorf("it says %v", d)
		}
		r.submitNow(t, one())
		if got := r.given(); len(got) != 1 || len(got[0].resp.Tasks) != 1 || len(other) > 0 {
			t.Errorf("answered %v: the poll of the other worker stays", got)
		}
	})
}

// TestADrainedWorkerGetsNothing from the moment at which the frontend knows of the drain.
func TestADrainedWorkerGetsNothing(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollOfWorker(workerOne, time.Minute) // it goes to matching
		drained := r.pollOfWorker(workerOne, time.Minute)
		r.catalog.drainWorkers(t, "shop", 1, workerOne)
		r.submitNow(t, one())
		if r.starts() != 0 || len(r.given()) != 0 {
			t.Fatalf("%d starts, answered %v", r.starts(), r.given())
		}
		if d := drainIn(t, <-drained); d.GetSinceMs() != 1 {
			t.Errorf("it says %v", d)
		}
	})
}

// TestAPollThatIsGivenUpGetsNothing, also if a submit is being stored for it: its asker may hear nothing more, though its inbox has a subscriber.
func TestAPollThatIsGivenUpGetsNothing(t *testing.T) {
	giveUp := func(r *rig, domain string) {
		data, _ := (&rpcv1.GivenUp{Domain: domain, Inboxes: []string{"a"}}).MarshalVT()
		r.Gateway.Polls.TakeGivenUp(data)
	}
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		r.pollHere(t, "b")
		giveUp(r, "other")
		testkit.Equal(t, "kept", r.kept(), 2)
		giveUp(r, "shop")
		testkit.Equal(t, "kept", r.kept(), 1)
		r.submitNow(t, one(), one())
		if got := r.given(); len(got) != 2 || len(got[0].resp.Tasks) != 0 || got[1].to != "b" || len(got[1].resp.Tasks) != 2 {
			t.Errorf("answered %v", got)
		}
	})
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		r.log.gate = make(chan struct{}, 1)
		sent(t, r, r.Submit, &yardv1.SubmitRequest{Tasklist: "main", Tasks: []*yardv1.NewTask{one()}})
		synctest.Wait()
		giveUp(r, "shop")
		r.log.gate <- struct{}{}
		if got := r.given(); len(got) != 1 || len(got[0].resp.Tasks) != 0 || len(r.releases()) != 1 || r.kept() != 0 {
			t.Errorf("answered %v, handed back %v, %d kept", got, r.releases(), r.kept())
		}
	})
}

// TestAFrontendThatStopsEndsPolls also where a submit was to start on one and did not.
func TestAFrontendThatStopsEndsPolls(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		r.log.gate = make(chan struct{}, 2)
		r.log.fault = func(int, natslog.Msg) (bool, error) { return false, natslog.ErrNotStored }
		sent(t, r, r.Submit, &yardv1.SubmitRequest{Tasklist: "main", Tasks: []*yardv1.NewTask{one()}})
		synctest.Wait()
		r.Gateway.Polls.Stop()
		testkit.Equal(t, "answered while it may yet get a task", len(r.given()), 0)
		r.log.gate <- struct{}{}
		if got := r.given(); len(got) != 1 || len(got[0].resp.Tasks) > 0 || len(r.bus.sentPolls()) != 1 || r.kept() != 0 {
			t.Errorf("answered %v, %d polls sent, %d kept", got, len(r.bus.sentPolls()), r.kept())
		}
	})
}

// TestWhatNoOneReceivesIsHandedBack, once: the answer found no subscriber, or the worker says that it has not got it.
func TestWhatNoOneReceivesIsHandedBack(t *testing.T) {
	for what, lose := range map[string]func(r *rig, a polled){
		"no subscriber": func(r *rig, a polled) { r.Gateway.Polls.TasksBounced(a.id) },
		"given up": func(r *rig, a polled) {
			data, _ := (&rpcv1.GivenUp{Domain: "shop", Inboxes: []string{"x", a.to}}).MarshalVT()
			r.Gateway.Polls.TakeGivenUp(data)
		},
	} {
		t.Run(what, func(t *testing.T) {
			onDirect(t, func(t *testing.T, r *rig) {
				r.pollHere(t, "a")
				id := r.submitNow(t, one())[0]
				a := r.given()[0]
				r.Gateway.Polls.TasksBounced(a.id + 1)
				lose(r, a)
				lose(r, a)
				if back := r.releases(); len(back) != 1 || back[0] != id {
					t.Errorf("handed back %v, want %s", back, id)
				}
			})
		})
	}
}
