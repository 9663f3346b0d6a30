package api_test

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// A visit is given up as one, and what tasklists want polls for reaches the frontend that asks, in one message.
func TestVisitsAndWhatIsWanted(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	n := l.serve(1)
	l.served(t)
	there := l.nc.NewInbox()
	hears := l.listen(there)
	for i, to := range []string{there, there, ""} { // no frontend asks for the last one
		l.publish(pollSubject(1), &rpcv1.Poll{
			Domain: domain, Tasklist: tasklist, MaxTasks: 1, ReplyTo: l.nc.NewInbox(), AnsweredTo: to, Id: uint64(100 + i), WaitMs: 60_000, Visit: i != 1,
		})
	}
	var number uint64
	n.saw(t, func(in *match.Inputs) error {
		if len(in.Polls) < 3 {
			return fmt.Errorf("%d polls came", len(in.Polls))
		}
		if number = in.Polls[0].ID; in.Polls[0].Visit != there || in.Polls[1].Visit != "" || in.Polls[2].Visit != "" {
			t.Fatalf("came %+v", in.Polls)
		}
		return nil
	})
	wanted := []match.Wanted{{Column: table.Column{Priority: 2, Type: "a"}, ReadyAt: 12, Limited: true, Triggers: 7}}
	n.do(match.Effects{
		Moves:       []match.Move{{Poll: number, Nothing: true}},
		PollsWanted: []match.PollsWanted{{Frontend: there, Domain: "d", Tasklist: "l1", Wanted: wanted}, {Frontend: "elsewhere"}, {Frontend: there, Domain: "d", Tasklist: "l2"}},
	})
	m, err := hears.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	if news := readNews(t, m); len(news.Moved) != 1 || news.Moved[0].Id != 100 || !news.Moved[0].Nothing || m.Reply == "" {
		t.Errorf("the frontend heard %v", news)
	}
	if m, err = hears.NextMsg(patience); err != nil {
		t.Fatal(err)
	}
	news := readNews(t, m)
	if len(news.Wanted) != 2 || news.Wanted[1].Tasklist != "l2" || len(news.Wanted[0].Wanted) != 1 {
		t.Fatalf("the frontend heard %v", news)
	}
	if w := news.Wanted[0].Wanted[0]; news.Wanted[0].Domain != "d" || news.Wanted[0].Tasklist != "l1" || w.Type != "a" || w.Priority != 2 || w.ReadyAtUs != 12 || !w.Limited || w.Triggers != 7 {
		t.Errorf("the frontend heard %v", news)
	}
}

// What is wanted by many tasklists goes out in messages of a bounded size.
func TestWhatManyTasklistsWant(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	n := l.serve(1)
	l.served(t)
	there := l.nc.NewInbox()
	hears := l.listen(there)
	var all []match.PollsWanted
	for i := range 150 {
		all = append(all, match.PollsWanted{Frontend: there, Domain: "d", Tasklist: fmt.Sprint("l", i)})
	}
	n.do(match.Effects{PollsWanted: all})
	got := 0
	for got < 150 {
		m, err := hears.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		some := len(readNews(t, m).Wanted)
		if got += some; some == 0 || some > 64 {
			t.Fatalf("%d in one message", some)
		}
	}
}
