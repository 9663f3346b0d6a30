package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
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
	testkit.Equal(t, "of 5 met the poll without passing the table", s.metrics.SyncMatches.Value(), 5)
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
	testkit.Slow(t, "waits for what is lost to be noticed")
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
	var asked []*logv1.EventBatch
	for _, b := range s.history.batches {
		if len(b.Events) > 0 && b.Events[0].Kind == logv1.EventKind_EVENT_KIND_STARTED {
			asked = append(asked, b)
		}
	}
	if len(asked) < 2 {
		t.Fatalf("asked %v", asked)
	}
	a, b := asked[0], asked[1]
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
	testkit.NoError(t, w.sub.Unsubscribe())
	testkit.NoError(t, s.nc.Flush())
	s.history.submit("a", 3, 2)
	got := s.poll(2)
	s.history.complete(got)
	testkit.Equal(t, "tasks were handed back", s.metrics.HandedBack.Value(), 2)
}

func TestDrainAnswersParkedPollsAndWaitsForVerdicts(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	o := s.start()
	parked := s.send(3, time.Minute, nil)
	s.awaitPolls(1)
	o.stop()
	if got := parked.tasks(); len(got) != 0 {
		t.Fatalf("got %v", got)
	}
	// The next owner serves what comes.
	s.start()
	s.history.submit("a", 3, 2)
	s.history.complete(s.poll(2))
}

// TestR37FrontendsHearOfAnsweredPolls, the refused and the drained ones too, and of no others.
func TestR37FrontendsHearOfAnsweredPolls(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.config.PollsMax = 1
	o := s.start()
	told, err := s.nc.SubscribeSync(s.nc.NewInbox())
	testkit.NoError(t, err)
	of := func(id uint64) func(*rpcv1.Poll) {
		return func(p *rpcv1.Poll) { p.Id, p.AnsweredTo = id, told.Subject }
	}
	want := func(want ...uint64) {
		t.Helper()
		var got []uint64
		for len(got) < len(want) {
			m, err := told.NextMsg(patience)
			if err != nil {
				t.Fatalf("reported %v: %v", got, err)
			}
			var news rpcv1.PollsAnswered
			testkit.NoError(t, news.UnmarshalVT(m.Data))
			got = append(got, news.Ids...)
		}
		slices.Sort(got)
		testkit.MustEqual(t, "reported", got, want)
	}
	s.send(1, 0, of(11)).tasks()
	want(11)
	s.send(1, time.Minute, of(12))
	s.awaitPolls(1)
	s.send(1, time.Minute, of(13)).message() // refused
	s.send(1, time.Minute, nil).message()    // of a frontend that does not want to know
	want(13)
	o.stop()
	want(12)
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

// R3: a domain that polls without end leaves the others places, and who is answered gives its
// place back (I14).
func TestI14_PollsOfOneDomainLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.config.PollsMax = 16
	s.start()
	flood := func(p *rpcv1.Poll) { p.Domain = "flood" }
	for range 12 {
		s.send(1, patience, flood)
	}
	m := s.send(1, patience, flood).message()
	if e := fault.Decode(m.Header.Get(fault.HeaderCode), "", m.Data); e == nil || e.Code != fault.ResourceExhausted {
		t.Fatalf("the 13th of 16: %v", e)
	}
	for range 5 { // each has the one place that a domain with few gets
		if got := s.send(1, 0, nil).tasks(); len(got) != 0 {
			t.Fatalf("got %v", got)
		}
	}
	w := s.send(1, patience, nil)
	s.history.submit("email", 3, 1)
	if got := w.tasks(); len(got) != 1 {
		t.Fatalf("got %v", got)
	}
}

func TestEmptyTableIsComplainedAbout(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for what is lost to be noticed")
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
	o := s.start()
	s.history.submit("pay", 1, 5)
	s.poll(1)
	waiting := s.send(5, patience, nil)
	s.awaitPolls(1)
	s.limits.set("pay", 3)
	o.Put(func(in *match.Inputs) { in.Limits = append(in.Limits, domain) })
	if got := waiting.tasks(); len(got) != 2 {
		t.Fatalf("%d more ran with a limit of 3, want 2", len(got))
	}
}
