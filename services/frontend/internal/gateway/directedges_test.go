package gateway

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/filing"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/poll"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/direct"
)

// TestPollsThatDoNotStayHere: their time is over at once, the frontend has stopped, or other partitions of their tasklist may have tasks for them.
func TestPollsThatDoNotStayHere(t *testing.T) {
	for what, c := range map[string]struct {
		waitMS int64
		set    func(t *testing.T, r *rig)
	}{
		"no time":                     {},
		"a frontend that has stopped": {30_000, func(_ *testing.T, r *rig) { r.Gateway.Polls.Stop() }},
		"several partitions": {30_000, func(t *testing.T, r *rig) {
			add(t, r.catalog, catalog.Tasklists, "shop", &yardv1.Tasklist{Name: "main", Partitions: 2})
		}},
	} {
		t.Run(what, func(t *testing.T) {
			onDirect(t, func(t *testing.T, r *rig) {
				if c.set != nil {
					c.set(t, r)
				}
				at := r.call()
				at.Reply = "a"
				r.Poll(at, &yardv1.PollRequest{Tasklist: "main", MaxTasks: 1, WaitMs: c.waitMS, Worker: "w"}, func(codec.Message, error) {})
				testkit.Equal(t, "sent", len(r.bus.sentPolls()), 2)
			})
		})
	}
}

// TestAPollThatLeavesIsMatchings: neither a stop nor its asker ends it here, and it has time to be answered.
func TestAPollThatLeavesIsMatchings(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		r.called(t, 10)
		testkit.Equal(t, "sent", len(r.bus.sentPolls()), 2)
		r.givesUp(t, "a")
		r.Gateway.Polls.Stop()
		time.Sleep(30*time.Second + poll.OverAfter/2)
		if got := r.given(); len(got) > 0 || r.kept() != 1 {
			t.Errorf("answered %v, %d kept", got, r.kept())
		}
	})
}

// TestADrainedWorkersPollIsHeldAndGetsNothing, where polls of others stay.
func TestADrainedWorkersPollIsHeldAndGetsNothing(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.catalog.drainWorkers(t, "shop", 1, workerOne)
		r.pollOfWorker(workerTwo, time.Minute) // it goes to matching
		drained := r.pollOfWorker(workerOne, time.Minute)
		r.submitNow(t, one())
		testkit.Equal(t, "starts", r.starts(), 0)
		time.Sleep(poll.DrainedRest + time.Second)
		if d := drainIn(t, <-drained); d.GetSinceMs() != 1 {
			t.Errorf("it says %v", d)
		}
	})
}

// TestTheTasksOfATasklistThatStartAtOnce are bounded: what is read before all others must not be much.
func TestTheTasksOfATasklistThatStartAtOnce(t *testing.T) {
	for n, starts := range map[int]int{filing.OwnTasks: filing.OwnTasks, filing.OwnTasks + 1: 0} {
		onDirect(t, func(t *testing.T, r *rig) {
			for i := range n/10 + 1 {
				r.pollHere(t, fmt.Sprint("p", i))
			}
			var all []*yardv1.NewTask
			for range n {
				all = append(all, one())
			}
			r.submitNow(t, all...)
			testkit.Equal(t, fmt.Sprintf("starts of %d tasks", n), r.starts(), starts)
		})
	}
}

// TestALargeTaskStartsWithItsSubmit: it goes where it is read at once, although it is as much as other messages have.
func TestALargeTaskStartsWithItsSubmit(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		r.submitNow(t, ofLength(2*filing.OwnBytes))
		if got := r.given(); len(got) != 1 || len(got[0].resp.Tasks) != 1 || r.starts() != 1 {
			t.Errorf("answered %v, %d starts", got, r.starts())
		}
	})
}

// TestWhatIsNotReadAtOnceDoesNotStart: the partition has no room on its most urgent lane, or its owner wants the domain or the tasklist apart.
func TestWhatIsNotReadAtOnceDoesNotStart(t *testing.T) {
	for what, load := range map[string]*rpcv1.HistoryLoad{
		"no room":    {SharedTasks: 0, SharedBytes: 1 << 20},
		"a domain":   {SharedTasks: 1000, SharedBytes: 1 << 20, Apart: []string{"shop"}},
		"a tasklist": {SharedTasks: 1000, SharedBytes: 1 << 20, Apart: []string{"shop.main"}},
	} {
		t.Run(what, func(t *testing.T) {
			onDirect(t, func(t *testing.T, r *rig) {
				r.pollHere(t, "a")
				for p := range rigPartitions {
					load.Partition = int32(p)
					r.TakeLoad(testkit.Encoded(t, load))
				}
				r.submitNow(t, one())
				if got := r.given(); len(got) > 0 || r.starts() > 0 || len(r.releases()) > 0 || r.kept() != 1 {
					t.Errorf("answered %v, %d starts, handed back %v, %d polls are kept", got, r.starts(), r.releases(), r.kept())
				}
			})
		})
	}
}

// TestWhatIsFiledByPriorityDoesNotStart: without room on the most urgent lane, not even an urgent task does, nor do tasks that share a message with others.
func TestWhatIsFiledByPriorityDoesNotStart(t *testing.T) {
	urgent := one()
	urgent.Priority = 1
	for what, tasks := range map[string][]*yardv1.NewTask{
		"an urgent task":   {urgent},
		"a shared message": {one(), {Type: "mail", Tasklist: "other"}},
	} {
		t.Run(what, func(t *testing.T) {
			onDirect(t, func(t *testing.T, r *rig) {
				r.pollHere(t, "a")
				r.TakeLoad(testkit.Encoded(t, &rpcv1.HistoryLoad{SharedBytes: 1 << 20}))
				r.log.gate = make(chan struct{}, 9)
				for _, task := range append([]*yardv1.NewTask{{Type: "mail", DelayMs: 1}}, tasks...) { // the others gather while the first one is stored
					sent(t, r, r.Submit, &yardv1.SubmitRequest{Tasklist: "main", Tasks: []*yardv1.NewTask{task}})
					synctest.Wait()
				}
				for range cap(r.log.gate) {
					r.log.gate <- struct{}{}
				}
				time.Sleep(time.Second)
				if got := r.given(); len(got) > 0 || r.starts() > 0 || len(r.releases()) > 0 || len(r.log.partitions[0]) != 2 {
					t.Errorf("answered %v, %d starts, handed back %v, %d messages", got, r.starts(), r.releases(), len(r.log.partitions[0]))
				}
			}, alone)
		})
	}
}

// TestASubmitIsStoredWithoutItsStart if its poll ends before the append is repeated: the log would have an attempt that no worker gets.
func TestASubmitIsStoredWithoutItsStart(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		first := true
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if first {
				first = false
				r.givesUp(t, "a")
				return false, natslog.ErrNotStored
			}
			return true, nil
		}
		r.submitNow(t, one())
		testkit.Equal(t, "starts", r.starts(), 0)
		testkit.Equal(t, "handed back", len(r.releases()), 0)
	})
}

// TestAPollWaitsForAllItsSubmits, and for longer than its own time: it gets all tasks in one answer.
func TestAPollWaitsForAllItsSubmits(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		c := r.call()
		c.Reply = "a"
		r.Poll(c, &yardv1.PollRequest{Tasklist: "main", MaxTasks: 10, WaitMs: 1000, Worker: "w"}, func(resp codec.Message, err error) {
			if resp != nil || err != nil {
				t.Errorf("it ends with %v, %v", resp, err)
			}
		})
		r.log.gate = make(chan struct{}, 1)
		for _, task := range []*yardv1.NewTask{{Type: "mail", DelayMs: 1}, one(), one()} { // the last two gather while the first one is stored
			sent(t, r, r.Submit, &yardv1.SubmitRequest{Tasklist: "main", Tasks: []*yardv1.NewTask{task}})
			synctest.Wait()
		}
		r.log.gate <- struct{}{}
		time.Sleep(1500 * time.Millisecond)
		testkit.Equal(t, "answers before the log has the tasks", len(r.given()), 0)
		r.log.gate <- struct{}{}
		if got := r.given(); len(got) != 1 || len(got[0].resp.Tasks) != 2 || len(r.releases()) > 0 {
			t.Errorf("answered %v, handed back %v", got, r.releases())
		}
	}, alone)
}

// TestAnAcknowledgementThatComesLateHandsBack: the log may have stored the submit after the start was void.
func TestAnAcknowledgementThatComesLateHandsBack(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		r.log.gate = make(chan struct{}, 1)
		sent(t, r, r.Submit, &yardv1.SubmitRequest{Tasklist: "main", Tasks: []*yardv1.NewTask{one()}})
		time.Sleep(direct.HandedWithin)
		r.log.gate <- struct{}{}
		if got := r.given(); len(got) > 0 || r.starts() != 1 || len(r.releases()) != 1 {
			t.Errorf("answered %v, %d starts, handed back %v", got, r.starts(), r.releases())
		}
	}, func(d *Deps) { d.Config.AppendTimeout = time.Minute })
}

// TestAnAnswerThatCannotBeSentHandsBack what it had.
func TestAnAnswerThatCannotBeSentHandsBack(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		r.bus.unanswerable = true
		id := r.submitNow(t, one())[0]
		if back := r.releases(); len(back) != 1 || back[0] != id {
			t.Errorf("handed back %v, want %s", back, id)
		}
	})
}

// TestAnInboxOfTwoPolls names the later one, also once the earlier one has ended.
func TestAnInboxOfTwoPolls(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		r.pollHere(t, "a")
		time.Sleep(time.Second)
		r.pollHere(t, "a")
		r.submitNow(t, one()) // for the earlier one
		testkit.Equal(t, "kept", r.kept(), 1)
		r.givesUp(t, "a")
		testkit.Equal(t, "kept", r.kept(), 0)
	})
}

// TestPollsThatStayEnd: at their time, when the frontend stops, and when their worker falls silent.
func TestPollsThatStayEnd(t *testing.T) {
	onDirect(t, func(t *testing.T, r *rig) {
		c := r.call()
		c.Reply = "short"
		ended := 0
		poll := func(wait int64, worker string) {
			r.Poll(c, &yardv1.PollRequest{Tasklist: "main", MaxTasks: 1, WaitMs: wait, Worker: "w", WorkerId: worker}, func(resp codec.Message, err error) {
				if resp != nil {
					ended++
				}
			})
		}
		poll(1000, "")
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		testkit.Equal(t, "ended at its time", ended, 1)
		poll(30_000, workerOne)
		data, err := (&rpcv1.Silent{Workers: []*rpcv1.SilentWorker{{Domain: "shop", WorkerId: workerOne}}}).MarshalVT()
		testkit.NoError(t, err)
		r.TakeSilent(data)
		testkit.Equal(t, "ended with its worker", ended, 2)
		poll(30_000, "")
		r.Gateway.Polls.Stop()
		testkit.Equal(t, "ended with the frontend", ended, 3)
		testkit.Equal(t, "kept", r.kept(), 0)
	})
}
