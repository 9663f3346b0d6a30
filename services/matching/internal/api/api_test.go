package api_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
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
	testkit.Equal(t, "of 5 met the poll without passing the table", s.metrics.Counter(signals.MatchesDirect).Value(), 5)
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
