package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

func TestWaitingPollMeetsTasks(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.start()
	w := s.send(10, patience, nil)
	s.awaitPolls(1)
	made := s.history.submit("email", 3, 5)
	got := w.tasks()
	for len(got) < 5 { // two partitions may answer in two polls
		got = append(got, s.send(10, patience, nil).tasks()...)
	}
	if len(got) != len(made) || got[0].Type != "email" || string(got[0].Payload.Data) != `{"a":1}` {
		t.Fatalf("got %v", got)
	}
	s.history.complete(got)
	if s.metrics.SyncMatches.Value() != 5 {
		t.Errorf("%d of 5 met the poll without passing the table", s.metrics.SyncMatches.Value())
	}
}

func TestAnswerInJSON(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.start()
	s.history.submit("email", 3, 1)
	m := s.send(1, patience, func(p *rpcv1.Poll) { p.Json = true }).message()
	var answer struct {
		Tasks []struct {
			Type    string         `json:"type"`
			Payload map[string]int `json:"payload"`
		} `json:"tasks"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil || len(answer.Tasks) != 1 || answer.Tasks[0].Type != "email" || answer.Tasks[0].Payload["a"] != 1 {
		t.Fatalf("%s: %v", m.Data, err)
	}
	empty := s.send(1, 0, func(p *rpcv1.Poll) { p.Json = true }).message()
	if string(empty.Data) != `{"tasks":[]}` {
		t.Fatalf("an empty answer is %s", empty.Data)
	}
}

// R70: the ages differ, however fast the tasks are submitted.
func TestTableKeepsPriorityAndAge(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.start()
	s.history.submit("a", 5, 1)
	s.history.submit("b", 1, 1)
	s.history.submit("c", 3, 1)
	s.history.submit("a", 3, 1)
	s.awaitReady(4)
	var got []string
	for range 4 {
		for _, p := range s.poll(1) {
			got = append(got, fmt.Sprint(p.Type, p.Priority))
		}
	}
	if fmt.Sprint(got) != "[b1 c3 a3 a5]" {
		t.Fatalf("got %v", got)
	}
}

func TestPollTakesOnlyItsTypes(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.start()
	only := func(types ...string) func(*rpcv1.Poll) { return func(p *rpcv1.Poll) { p.Types = types } }
	first := s.send(5, patience, only("x", "c"))
	second := s.send(5, patience, only("b"))
	s.awaitPolls(2)
	s.history.submit("a", 3, 1)
	s.history.submit("b", 3, 1)
	s.history.submit("c", 3, 1)
	if got := first.tasks(); len(got) != 1 || got[0].Type != "c" {
		t.Fatalf("the poll for c got %v", got)
	}
	if got := second.tasks(); len(got) != 1 || got[0].Type != "b" {
		t.Fatalf("the poll for b got %v", got)
	}
	if got := s.send(5, 0, only("b")).tasks(); len(got) != 0 {
		t.Fatalf("a second poll for b got %v", got)
	}
	if got := s.poll(1); got[0].Type != "a" {
		t.Fatalf("the poll for anything got %v", got)
	}
}

func TestPollEndsEmptyAndInTime(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.start()
	for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
		if got := s.send(5, wait, nil).tasks(); len(got) != 0 {
			t.Fatalf("got %v", got)
		}
	}
}

func TestRefusedTriggersDoNotEndThePoll(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.start()
	s.history.mu.Lock()
	s.history.refuse["bad"] = fault.Stale
	s.history.mu.Unlock()
	w := s.send(3, patience, nil)
	s.awaitPolls(1)
	s.history.submit("bad", 1, 3)
	s.await(func() error {
		if n := s.metrics.GrabsRefused.Value(); n != 3 {
			return fmt.Errorf("%d grabs were refused", n)
		}
		return nil
	})
	s.history.submit("good", 3, 1)
	if got := w.tasks(); len(got) != 1 || got[0].Type != "good" {
		t.Fatalf("got %v", got)
	}
}

func TestI4_SilenceIsAskedAgainWithTheSameNonce(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.start()
	s.history.mu.Lock()
	s.history.silent = 1
	s.history.mu.Unlock()
	w := s.send(3, patience, nil)
	s.awaitPolls(1)
	s.history.submit("a", 3, 1)
	if got := w.tasks(); len(got) != 1 {
		t.Fatalf("got %v", got)
	}
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	a, b := s.history.batches[0], s.history.batches[1]
	if a.RequestId != b.RequestId || a.Events[0].Nonce != b.Events[0].Nonce {
		t.Fatalf("asked %v, then %v", a, b)
	}
}

func TestTasksOfAPollerThatWentAwayAreHandedBack(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.start()
	w := s.send(3, patience, nil)
	s.awaitPolls(1)
	if err := w.sub.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	if err := s.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	s.history.submit("a", 3, 2)
	got := s.poll(2)
	s.history.complete(got)
	if n := s.metrics.HandedBack.Value(); n != 2 {
		t.Errorf("%d tasks were handed back, want 2", n)
	}
}

func TestPoisonHintsWedgeNothing(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.start()
	for _, data := range [][]byte{[]byte("\xff\xff poison"), nil} {
		if err := s.nc.Publish(topology.Matching(0), data); err != nil {
			t.Fatal(err)
		}
	}
	s.history.hint([]*logv1.TriggerGroup{
		{Domain: domain, Tasklist: tasklist, Type: "a", Triggers: []byte("short")},
		{Domain: "", Tasklist: tasklist, Type: "a", Triggers: make([]byte, ids.TriggerBytes)},
		{Domain: domain, Tasklist: tasklist, Type: "a", Priority: 99, Triggers: ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.Now(), 999, 1)})},
	}, []*logv1.SlotRelease{{Domain: domain, Type: "a", Bookings: []byte("short")}})
	s.history.submit("a", 3, 1)
	s.poll(1)
	js := s.jetStream()
	s.await(func() error {
		stream, err := js.Stream(t.Context(), topology.MatchingStream(0))
		if err != nil {
			return err
		}
		if n := stream.CachedInfo().State.Msgs; n != 0 {
			return fmt.Errorf("%d hints are left in the stream", n)
		}
		return nil
	})
}

func TestDrainAnswersParkedPollsAndWaitsForVerdicts(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	_, stop := s.start()
	parked := s.send(3, time.Minute, nil)
	s.awaitPolls(1)
	stop()
	if got := parked.tasks(); len(got) != 0 {
		t.Fatalf("got %v", got)
	}
	// The next owner serves what comes.
	s.start()
	s.history.submit("a", 3, 2)
	s.history.complete(s.poll(2))
}

func TestTooManyPollsAreRefused(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.config.PollsMax = 2
	s.start()
	s.send(1, patience, nil)
	s.send(1, patience, nil)
	m := s.send(1, patience, nil).message()
	e := fault.Decode(m.Header.Get(fault.HeaderCode), "", m.Data)
	if e == nil || e.Code != fault.ResourceExhausted || e.RetryAfter <= 0 {
		t.Fatalf("got %v", e)
	}
}

func TestEmptyTableIsComplainedAbout(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.start()
	s.send(1, patience, nil)
	s.await(func() error {
		if s.history.count(func() int { return s.history.hungry }) == 0 {
			return errors.New("no complaint")
		}
		return nil
	})
}

func TestAnswersStayBelowTheMessageLimit(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.history.payload = slices.Concat([]byte(`"`), make([]byte, 100<<10), []byte(`"`))
	for i := range s.history.payload[1 : len(s.history.payload)-1] {
		s.history.payload[i+1] = 'x'
	}
	s.start()
	s.history.submit("a", 3, 40)
	seen := map[string]int{}
	for len(seen) < 40 {
		got := s.send(100, patience, nil).tasks()
		for _, p := range got {
			seen[p.TaskId]++
		}
		s.history.complete(got)
	}
}

// TestI8_WaitingPollIsWokenByAFreedSlot: a full limit blocks neither other types nor
// later polls, and a freed slot goes to who waits.
func TestI8_WaitingPollIsWokenByAFreedSlot(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.limits.set("pay", 2)
	s.start()
	s.history.submit("pay", 1, 5)
	first := s.poll(2)
	waiting := s.send(1, patience, nil)
	s.awaitPolls(1)
	s.history.submit("free", 5, 1)
	if got := waiting.tasks(); len(got) != 1 || got[0].Type != "free" {
		t.Fatalf("beside a full limit came %v", got)
	}
	d, err := s.describe()
	if err != nil || d.Slots["pay"] != 2 || d.Ready != 3 {
		t.Fatalf("%v %v", d, err)
	}
	waiting = s.send(5, patience, nil)
	s.awaitPolls(1)
	s.history.complete(first[:1])
	if got := waiting.tasks(); len(got) != 1 || got[0].Type != "pay" {
		t.Fatalf("a freed slot brought %v", got)
	}
}

func TestI8_ChangedLimitHoldsAtOnce(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.limits.set("pay", 1)
	sh, _ := s.start()
	s.history.submit("pay", 1, 5)
	s.poll(1)
	waiting := s.send(5, patience, nil)
	s.awaitPolls(1)
	s.limits.set("pay", 3)
	sh.LimitsChanged(domain)
	if got := waiting.tasks(); len(got) != 2 {
		t.Fatalf("%d more ran with a limit of 3, want 2", len(got))
	}
}

// drainWith has workers poll and complete until n tasks are done.
func (s *stack) drainWith(workers, n int) {
	s.t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	done := map[string]bool{}
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				inbox := s.nc.NewInbox()
				sub, err := s.nc.SubscribeSync(inbox)
				if err != nil {
					s.t.Error(err)
					return
				}
				data, _ := (&rpcv1.Poll{Domain: domain, Tasklist: tasklist, MaxTasks: 7, ReplyTo: inbox, UntilMs: time.Now().Add(300 * time.Millisecond).UnixMilli()}).MarshalVT()
				if err := s.nc.Publish(topology.MatchingCall(0, "poll"), data); err != nil {
					s.t.Error(err)
					return
				}
				m, err := sub.NextMsg(2 * time.Second)
				_ = sub.Unsubscribe()
				if err != nil {
					continue // an owner died with the poll: poll again
				}
				var resp yardv1.PollResponse
				if err := resp.UnmarshalVT(m.Data); err != nil {
					s.t.Error(err)
					return
				}
				s.history.complete(resp.Tasks)
				mu.Lock()
				for _, p := range resp.Tasks {
					if done[p.TaskId] {
						s.t.Errorf("%s was done twice", p.TaskId)
					}
					done[p.TaskId] = true
				}
				if len(done) >= n {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(done) != n {
		s.t.Fatalf("%d of %d tasks were done", len(done), n)
	}
}

// TestI4I8_TwoOwnersAtOnce serves one shard twice, as in a change of ownership that
// went wrong, and loses the tables' memory in between.
func TestI4I8_TwoOwnersAtOnce(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.limits.set("pay", 3)
	s.quarantine = 1200 * time.Millisecond
	s.start()
	s.start()
	for range 20 {
		s.history.submit("pay", 2, 5)
		s.history.submit("free", 3, 20)
	}
	s.history.mu.Lock()
	s.history.onDone = func(left int) {
		if left == 300 {
			s.store.Forget()
		}
	}
	s.history.mu.Unlock()
	s.drainWith(8, 500)
	if most := s.history.count(func() int { return s.history.most["pay"] }); most > 3 {
		t.Fatalf("%d of a limit of 3 ran at once", most)
	}
}
