package api_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Polls that are given up go back to the frontend that sent each, all of one turn in one message, and come back where no
// frontend hears it. They are not reported as answered.
func TestPollsAreGivenUpToTheirFrontends(t *testing.T) {
	t.Parallel()
	l, n := serving(t)
	there, gone := l.nc.NewInbox(), l.nc.NewInbox()
	hears := l.listen(there)
	for i, to := range []string{there, gone, there, ""} {
		l.publish(pollSubject(1), &rpcv1.Poll{
			Domain: domain, Tasklist: tasklist, MaxTasks: 1, ReplyTo: l.nc.NewInbox(), AnsweredTo: to, Id: uint64(100 + i),
			TasklistPartition: int32(i), Moved: i == 2, Back: i == 2, WaitMs: 60_000,
		})
	}
	var numbers []uint64
	n.saw(t, func(in *match.Inputs) error {
		if len(in.Polls) < 4 {
			return fmt.Errorf("%d polls came", len(in.Polls))
		}
		numbers = nil
		for i, p := range in.Polls {
			if p.Partition != i || p.Moved != (i == 2) || p.Back != (i == 2) || (p.ID == 0) != (i == 3) {
				t.Fatalf("poll %d is %+v", i, p)
			}
			numbers = append(numbers, p.ID)
		}
		return nil
	})
	n.do(match.Effects{Reports: tree.Reports{Moves: []tree.Move{{Poll: numbers[0], Partition: 5}, {Poll: numbers[1], Partition: 6, ReplyTo: "inbox.one", JSON: true}, {Poll: numbers[2], Partition: 0}, {Poll: 999}}}})
	n.saw(t, func(in *match.Inputs) error {
		if len(in.Unmoved) != 1 || in.Unmoved[0].Poll != numbers[1] || in.Unmoved[0].ReplyTo != "inbox.one" || !in.Unmoved[0].JSON {
			return fmt.Errorf("%v came back", in.Unmoved)
		}
		return nil
	})
	m, err := hears.NextMsg(patience)
	testkit.NoError(t, err)
	news := readNews(t, m)
	if len(news.Ids) != 0 || len(news.Moved) != 2 || news.Moved[0].Id != 100 || news.Moved[0].TasklistPartition != 5 || news.Moved[1].Id != 102 {
		t.Errorf("the frontend heard %v", news)
	}
	// One that has gone is not reported as answered, too.
	n.do(match.Effects{Replies: waiting.Replies{Answers: []grab.Answer{{Poll: numbers[0], ReplyTo: "inbox.gone"}}}})
	l.publish(pollSubject(1), &rpcv1.Poll{Domain: domain, Tasklist: tasklist, MaxTasks: 1, ReplyTo: l.nc.NewInbox(), AnsweredTo: there, Id: 200})
	n.saw(t, func(in *match.Inputs) error {
		if len(in.Polls) < 5 {
			return fmt.Errorf("%d polls came", len(in.Polls))
		}
		return nil
	})
	n.do(match.Effects{Replies: waiting.Replies{Answers: []grab.Answer{{Poll: numbers[3] + 4, ReplyTo: "inbox.gone"}}}})
	m, err = hears.NextMsg(patience)
	testkit.NoError(t, err)
	if news := readNews(t, m); !slices.Equal(news.Ids, []uint64{200}) {
		t.Errorf("reported %v", news.Ids)
	}
}

func readNews(t *testing.T, m *nats.Msg) *rpcv1.PollsAnswered {
	t.Helper()
	news := new(rpcv1.PollsAnswered)
	testkit.NoError(t, news.UnmarshalVT(m.Data))
	return news
}

// What a partition tells goes to the shard of its parent, and is read as it was said.
func TestPartitionsTellTheirParents(t *testing.T) {
	t.Parallel()
	l, n := serving(t)
	said := tree.Branch{
		Tasklist: table.Tasklist{Domain: "d", Name: "l", Partition: 22}, Present: []string{"a", "b"},
		Wanted: []tree.Wanted{{Column: table.Column{Priority: 2, Type: "a"}, ReadyAt: 12, Limited: true, Triggers: 7}, {Column: table.Column{Priority: 3, Type: "b"}, ReadyAt: 4, Triggers: 1}},
	}
	heard := l.listen(topology.HintBranch(0))
	other := tree.Branch{Tasklist: table.Tasklist{Domain: "d", Name: "l", Partition: 3}}
	n.do(match.Effects{Reports: tree.Reports{Branches: []tree.Branch{said, other}}})
	n.saw(t, func(in *match.Inputs) error {
		if len(in.Branches) == 0 {
			return fmt.Errorf("nothing was heard")
		}
		testkit.MustEqual(t, "heard", fmt.Sprint(in.Branches), fmt.Sprint([]tree.Branch{said, other}))
		return nil
	})
	testkit.NoError(t, testkit.Err(heard.NextMsg(patience)))
	if n, _, err := heard.Pending(); n != 0 || err != nil {
		t.Errorf("%d messages more, %v", n, err)
	}
}

// Inboxes that were given up are read from the hint.
func TestGivenUpInboxesAreHeard(t *testing.T) {
	t.Parallel()
	l, n := serving(t)
	l.publish(topology.HintGivenUp, &rpcv1.GivenUp{Domain: "d", Inboxes: []string{"a", "b"}})
	n.saw(t, func(in *match.Inputs) error {
		if got := fmt.Sprint(in.GivenUp); got != "[{d [a b]}]" {
			return fmt.Errorf("heard %s", got)
		}
		return nil
	})
}

// Frontends hear what waits in partitions.
func TestFrontendsHearOfLoads(t *testing.T) {
	t.Parallel()
	l, n := serving(t)
	heard := l.listen(topology.HintTasklistLoad)
	n.do(match.Effects{Reports: tree.Reports{Loads: []tree.Load{{Tasklist: table.Tasklist{Domain: "d", Name: "l", Partition: 3}, Triggers: 7, PerSecond: 0.5}}}})
	m, err := heard.NextMsg(patience)
	testkit.NoError(t, err)
	var load rpcv1.TasklistLoad
	if err := load.UnmarshalVT(m.Data); err != nil || len(load.Partitions) != 1 {
		t.Fatal(&load, err)
	}
	if p := load.Partitions[0]; p.Domain != "d" || p.Tasklist != "l" || p.TasklistPartition != 3 || p.Triggers != 7 || p.PerSecond != 0.5 {
		t.Errorf("heard %v", p)
	}
}
