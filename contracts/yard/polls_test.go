package yard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// silent has the engine answer no poll by itself.
func silent(s *stack) {
	s.engine.locked(func() {
		s.engine.script = func(endpoint string, _ int, _ *nats.Msg) bool { return endpoint == "tasks.poll" }
	})
}

// polls are the polls that the engine has heard.
func (s *stack) polls() (all []*yardv1.PollRequest) {
	synctest.Wait()
	s.engine.locked(func() {
		for _, msg := range s.engine.heard["tasks.poll"] {
			all = append(all, read[yardv1.PollRequest](s.engine, msg))
		}
	})
	return all
}

// inboxes are where answers to polls are waited for.
func (s *stack) inboxes() (all []string) {
	synctest.Wait()
	for _, subject := range s.nats.subscriptions("_INBOX.") {
		if !strings.HasSuffix(subject, ".*") { // that of all requests
			all = append(all, subject)
		}
	}
	return all
}

var ten = &yardv1.PollRequest{Tasklist: "mail", MaxTasks: 10, WaitMs: 5000, Worker: "me"}

func TestAPollIsSentWholeAndLeavesNothing(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		began := time.Now()
		tasks, err := s.client.Wire().Poll(soon(t), ten)
		if err != nil || len(tasks) != 0 || time.Since(began) != 5*time.Second {
			t.Errorf("%v %v after %v", tasks, err, time.Since(began))
		}
		polls := s.polls()
		if len(polls) != 1 || polls[0].Tasklist != "mail" || polls[0].MaxTasks != 10 || polls[0].WaitMs != 5000 || polls[0].Worker != "me" || len(polls[0].Unanswered) != 0 {
			t.Errorf("polls %v", polls)
		}
		if left := s.inboxes(); len(left) != 0 {
			t.Errorf("answers are waited for at %v", left)
		}
		if _, err := s.client.Wire().Poll(soon(t), &yardv1.PollRequest{Tasklist: "a.b"}); fault.From(err).Path != "/tasklist" || fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("a name that would be another subject: %v", err)
		}
	})
}

// A poll has 3 s more than its wait for an answer. One that got none is named in the next polls of its tasklist, until
// one is answered, and for 10 s after.
func TestAPollWithoutAnswerIsNamed(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		silent(s)
		began := time.Now()
		if _, err := s.client.Wire().Poll(soon(t), ten); fault.CodeOf(err) != fault.Unavailable || time.Since(began) != 8*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		var inbox string
		s.engine.locked(func() {
			inbox = s.engine.heard["tasks.poll"][0].Reply
			s.engine.script = nil
		})
		if left := s.inboxes(); len(left) != 0 {
			t.Errorf("answers are waited for at %v", left)
		}
		other := &yardv1.PollRequest{Tasklist: "other", MaxTasks: 1, WaitMs: 100}
		for _, req := range []*yardv1.PollRequest{other, ten, ten} {
			checktest.NoError(t, checktest.Err(s.client.Wire().Poll(soon(t), req)))
		}
		var named [][]string
		for _, p := range s.polls() {
			named = append(named, p.Unanswered)
		}
		if want := [][]string{nil, nil, {inbox}, {inbox}}; !slices.EqualFunc(named, want, slices.Equal) || len(ten.Unanswered) != 0 {
			t.Errorf("the polls name %v, want %v", named, want)
		}
	})
}

// A caller that gives up withdraws its poll. A task that came by then is its own; later ones find no one.
func TestAPollIsWithdrawn(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		ctx, cancel := context.WithCancel(soon(t))
		time.AfterFunc(time.Second, cancel)
		if _, err := s.client.Wire().Poll(ctx, ten); fault.CodeOf(err) != fault.Unavailable || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if left := s.inboxes(); len(left) != 0 {
			t.Errorf("answers are waited for at %v", left)
		}
		checktest.NoError(t, checktest.Err(s.client.Submit(soon(t), one)))
		tasks, err := s.client.Wire().Poll(soon(t), ten)
		if err != nil || len(tasks) != 1 || tasks[0].Failures != 0 {
			t.Errorf("the next poll got %v, %v", tasks, err)
		}
	})
	// The answer and the end come at one instant: the tasks are not dropped.
	onStack(t, func(t *testing.T, s *stack) {
		ctx, cancel := context.WithCancel(soon(t))
		s.engine.locked(func() {
			s.engine.script = func(endpoint string, _ int, msg *nats.Msg) bool {
				if endpoint != "tasks.poll" {
					return false
				}
				s.engine.answer(msg.Reply, &yardv1.PollResponse{Tasks: []*yardv1.PolledTask{{TaskId: "a"}}})
				_ = s.engine.nc.FlushWithContext(ctx) // fails where the poll has its answer, and the test is over
				cancel()                              // the answer is at the server, or further
				return true
			}
		})
		if tasks, err := s.client.Wire().Poll(ctx, ten); err != nil || len(tasks) != 1 {
			t.Errorf("got %v, %v", tasks, err)
		}
	})
}

func TestAPollThatCannotBeServedSaysSo(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		s.engine.stop()
		synctest.Wait()
		began := time.Now()
		if _, err := s.client.Wire().Poll(soon(t), ten); fault.CodeOf(err) != fault.Unavailable || time.Since(began) > time.Second {
			t.Errorf("without an engine: %v after %v", err, time.Since(began))
		}
		answering[yardv1.PollRequest](t, s, topology.PollOf("shop", "mail"), fault.At(fault.NotFound, "/tasklist", "is unknown"))
		checktest.Code(t, "refused", checktest.Err(s.client.Wire().Poll(soon(t), ten)), fault.NotFound)
		s.nats.stop()
		synctest.Wait()
		checktest.Code(t, "without a server", checktest.Err(s.client.Wire().Poll(soon(t), ten)), fault.Unavailable)
	})
}

// A connection that breaks ends a poll within its checks of half a second, and its answer may be lost. No server takes what comes there later for delivered.
func TestAPollEndsWithItsConnection(t *testing.T) {
	for _, away := range []time.Duration{0, 2 * time.Second} {
		onStack(t, func(t *testing.T, s *stack) { pollEndsWithItsConnection(t, s, away) })
	}
}

func pollEndsWithItsConnection(t *testing.T, s *stack, away time.Duration) {
	got := make(chan error, 1)
	go func() {
		_, err := s.client.Wire().Poll(soon(t), ten)
		got <- err
	}()
	time.Sleep(time.Second)
	broke := time.Now()
	s.nats.stop()
	time.Sleep(away)
	s.nats.start()
	if err := <-got; fault.CodeOf(err) != fault.Unavailable || time.Since(broke) > 3*time.Second {
		t.Errorf("%v after %v", err, time.Since(broke))
	}
	time.Sleep(5 * time.Second) // all are connected again
	if left := s.inboxes(); len(left) != 0 {
		t.Errorf("answers are waited for at %v", left)
	}
	checktest.NoError(t, checktest.Err(s.client.Wire().Poll(soon(t), ten)))
	if polls := s.polls(); len(polls[len(polls)-1].Unanswered) != 1 {
		t.Errorf("the next poll names %v", polls[len(polls)-1].Unanswered)
	}
}

// The outcomes of the low-level API are one request each, with a verdict for each entry.
func TestOutcomesHaveAVerdictForEachEntry(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		calls := map[string]func(n int) ([]*yardv1.Verdict, error){
			"tasks.complete": func(n int) ([]*yardv1.Verdict, error) {
				return s.client.Wire().Complete(soon(t), slices.Repeat([]*yardv1.Completion{{TaskId: "a", Token: "t"}}, n))
			},
			"tasks.fail": func(n int) ([]*yardv1.Verdict, error) {
				return s.client.Wire().Fail(soon(t), slices.Repeat([]*yardv1.Failure{{TaskId: "a", Token: "t"}}, n))
			},
			"tasks.heartbeat": func(n int) ([]*yardv1.Verdict, error) {
				return s.client.Wire().Heartbeat(soon(t), slices.Repeat([]*yardv1.Beat{{TaskId: "a", Token: "t"}}, n))
			},
		}
		for endpoint, call := range calls {
			verdicts, err := call(3)
			if err != nil || len(verdicts) != 3 || verdicts[0].Code != string(fault.NotFound) || s.engine.requests(endpoint) != 1 {
				t.Errorf("%s: %v %v", endpoint, verdicts, err)
			}
		}
		s.engine.locked(func() {
			s.engine.script = func(_ string, _ int, msg *nats.Msg) bool {
				s.engine.answer(msg.Reply, &yardv1.OutcomeResponse{Verdicts: []*yardv1.Verdict{{TaskId: "a", Code: "OK"}}})
				return true
			}
		})
		for endpoint, call := range calls {
			if _, err := call(2); fault.CodeOf(err) != fault.Internal {
				t.Errorf("%s: one verdict for two entries: %v", endpoint, err)
			}
		}
	})
}

// A worker's outcome that no one answers is sent again after 4 s, to a frontend that is there then.
func TestAnOutcomeWithoutAnswerIsSentAgainSoon(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		var sent []time.Time
		s.engine.locked(func() {
			s.engine.script = func(endpoint string, call int, _ *nats.Msg) bool {
				if endpoint == "tasks.complete" {
					sent = append(sent, time.Now())
				}
				return endpoint == "tasks.complete" && call == 0
			}
		})
		w := yard.NewWorker(s.client, "mail", quiet())
		yard.Handle(w, "x", func(context.Context, yard.Payload) (struct{}, error) { return struct{}{}, nil })
		run(t, w)
		checktest.NoError(t, checktest.Err(s.client.Run(soon(t), one)))
		s.engine.locked(func() {
			if len(sent) != 2 || sent[1].Sub(sent[0]) < 4*time.Second || sent[1].Sub(sent[0]) > 5*time.Second {
				t.Errorf("sent at %v", sent)
			}
		})
	})
}

// A cancel is repeated for the tasks whose verdict may yet change, and for no others.
func TestACancelIsRepeatedForWhatIsNotCertain(t *testing.T) {
	verdict := func(id string, code any) *yardv1.Verdict {
		return &yardv1.Verdict{TaskId: id, Code: fmt.Sprint(code), Message: "for " + id}
	}
	onStack(t, func(t *testing.T, s *stack) {
		s.engine.locked(func() {
			s.engine.script = func(endpoint string, _ int, _ *nats.Msg) bool { return endpoint == "tasks.cancel" }
		})
		e := answering[yardv1.CancelRequest](t, s, topology.API("shop", "tasks.cancel"),
			&yardv1.OutcomeResponse{Verdicts: []*yardv1.Verdict{verdict("a", "OK"), verdict("b", fault.Unknown), verdict("c", fault.NotFound), verdict("d", fault.Unavailable)}},
			&yardv1.OutcomeResponse{Verdicts: []*yardv1.Verdict{verdict("b", "OK"), verdict("d", fault.FailedPrecondition)}})
		err := s.client.Cancel(soon(t), "a", "b", "c", "d")
		var asked []string
		for _, req := range e.requests() {
			asked = append(asked, strings.Join(req.TaskIds, ""))
		}
		checktest.Equal(t, "asked was for", asked, []string{"abcd", "bd"})
		for id, code := range map[string]fault.Code{"c": fault.NotFound, "d": fault.FailedPrecondition} {
			if !errors.Is(err, &fault.Error{Code: code}) || !strings.Contains(err.Error(), "for "+id) {
				t.Errorf("%s is not reported as %s: %v", id, code, err)
			}
		}
		if strings.Contains(err.Error(), "for b") {
			t.Errorf("what was cancelled in the end is reported: %v", err)
		}
	})
	onStack(t, func(t *testing.T, s *stack) {
		s.engine.locked(func() {
			s.engine.script = func(endpoint string, _ int, _ *nats.Msg) bool { return endpoint == "tasks.cancel" }
		})
		answering[yardv1.CancelRequest](t, s, topology.API("shop", "tasks.cancel"), &yardv1.OutcomeResponse{Verdicts: []*yardv1.Verdict{verdict("a", fault.Unknown)}})
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		var e *fault.Error
		if err := s.client.Cancel(ctx, "a"); !errors.As(err, &e) || e.Code != fault.Unknown || e.Detail["task_id"] != "a" {
			t.Errorf("what is never certain: %v", err)
		}
		checktest.Check(t, s.client.Cancel(ctx))
	})
}

// A waiting get is open for 10 s at most, and answered before its caller's time is over.
func TestAWaitAsksAgainAndAgain(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		var waits []int64
		var at []time.Time
		began := time.Now()
		s.engine.locked(func() {
			s.engine.script = func(endpoint string, _ int, msg *nats.Msg) bool {
				if endpoint != "tasks.get" {
					return false
				}
				req := read[yardv1.GetRequest](s.engine, msg)
				waits, at = append(waits, req.WaitMs), append(at, time.Now())
				time.AfterFunc(time.Duration(req.WaitMs)*time.Millisecond, func() {
					s.engine.answer(msg.Reply, &yardv1.GetResponse{Task: &yardv1.Task{TaskId: "a", State: yardv1.TaskState_TASK_STATE_RUNNING}})
				})
				return true
			}
		})
		ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
		defer cancel()
		_, err := s.client.Wait(ctx, "a")
		var going *yard.UnfinishedError
		if !errors.As(err, &going) || going.TaskID != "a" || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "task a is stored, and not finished yet") {
			t.Errorf("got %v", err)
		}
		if len(waits) < 3 || waits[0] != 10_000 || waits[1] != 10_000 || waits[2] != 4500 || at[1].Sub(began) != 10*time.Second || at[2].Sub(began) != 20*time.Second {
			t.Errorf("waits of %v at %v", waits, at)
		}
	})
}

// An engine that answers too soon is asked after a pause, which does not grow as long as it answers.
func TestAnAnswerTooSoonIsFollowedByAPause(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		const times = 40
		s.engine.locked(func() {
			s.engine.script = func(endpoint string, call int, msg *nats.Msg) bool {
				if endpoint != "tasks.get" {
					return false
				}
				state := yardv1.TaskState_TASK_STATE_READY
				if call == times {
					state = yardv1.TaskState_TASK_STATE_COMPLETED
				}
				s.engine.answer(msg.Reply, &yardv1.GetResponse{Task: &yardv1.Task{TaskId: "a", State: state}})
				return true
			}
		})
		began := time.Now()
		checktest.NoError(t, checktest.Err(s.client.Wait(soon(t), "a")))
		if took := time.Since(began); took < times*25*time.Millisecond || took > times*50*time.Millisecond {
			t.Errorf("%d answers took %v", times, took)
		}
	})
}

// Run waits up to a minute for a task that it has just submitted to be seen.
func TestATaskThatIsNeverSeenIsNotWaitedForForEver(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		s.engine.locked(func() {
			s.engine.script = func(endpoint string, _ int, msg *nats.Msg) bool {
				return endpoint == "tasks.get" && s.engine.refuse(msg, fault.New(fault.NotFound, "not read yet"))
			}
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		began := time.Now()
		if _, err := s.client.Run(ctx, one); fault.CodeOf(err) != fault.NotFound || time.Since(began) < time.Minute || time.Since(began) > 70*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// A hint of a cancel is for the tasks that it names; one that cannot be read is nothing.
func TestAHintOfACancelIsHeardFromTheWire(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		w := yard.NewWorker(s.client, "mail", quiet())
		ended := make(chan error, 1)
		yard.Handle(w, "x", func(ctx context.Context, _ yard.Payload) (struct{}, error) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return struct{}{}, ctx.Err()
		})
		run(t, w)
		id, err := s.client.Submit(soon(t), one)
		checktest.NoError(t, err)
		time.Sleep(time.Second)
		s.engine.locked(func() { s.engine.tasks[id].cancel = true })
		began := time.Now()
		for _, hint := range []string{"nonsense", `{"task_ids":["another"]}`} {
			checktest.NoError(t, s.engine.nc.Publish(topology.CancelHint("shop"), []byte(hint)))
		}
		time.Sleep(time.Second)
		if n := s.engine.requests("tasks.heartbeat"); n != 0 {
			t.Errorf("%d heartbeats were sent for hints of others", n)
		}
		checktest.NoError(t, s.engine.nc.Publish(topology.CancelHint("shop"), fmt.Appendf(nil, `{"task_ids":[%q]}`, id)))
		if cause := <-ended; cause != yard.ErrCancelled || time.Since(began) > 2*time.Second {
			t.Errorf("%v after %v", cause, time.Since(began))
		}
	})
}

// A drain that ends in time leaves no poll, and hands back what it did not run.
func TestAWorkerLeavesNothingAtTheServer(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		w := yard.NewWorker(s.client, "mail", quiet(), yard.WithTasklists("a", "b"), yard.WithConcurrency(5), yard.WithIdentity("me"))
		var ran sync.Map
		yard.Handle(w, "x", func(ctx context.Context, _ yard.Payload) (struct{}, error) {
			time.Sleep(3 * time.Second)
			ran.Store(yard.Info(ctx).TaskID, true)
			return struct{}{}, nil
		})
		stop := run(t, w)
		id, err := s.client.Submit(soon(t), one)
		checktest.NoError(t, err)
		time.Sleep(time.Second)
		checktest.NoError(t, stop())
		if _, ok := ran.Load(id); !ok {
			t.Error("the drain did not wait for the handler")
		}
		s.engine.locked(func() {
			checktest.Equal(t, "its task", s.engine.tasks[id].state, yardv1.TaskState_TASK_STATE_COMPLETED)
		})
		if left := append(s.inboxes(), s.nats.subscriptions("yard.v1.shop.hint")...); len(left) != 0 {
			t.Errorf("it still waits at %v", left)
		}
		lists := map[string]bool{}
		for _, p := range s.polls() {
			lists[p.Tasklist] = true
			checktest.Equal(t, "a poll of", p.Worker, "me")
		}
		if len(lists) != 3 {
			t.Errorf("polled were %v", lists)
		}
	})
}
