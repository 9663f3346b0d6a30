package tree

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// part is a partition of a tasklist without limits, and the reports of the last turn.
type part struct {
	Tree[int]
	out    Reports
	now    time.Duration
	limits limit.Limits
	domain *limit.Domain
	index  table.Index
	polls  pairing.Queue[int, grab.Grant]
	pd     pairing.Domain
	all    pairing.Polls[int, grab.Grant]
	n      Node[int]
}

func newPart(partition int) *part {
	p := &part{all: pairing.NewPolls[int, grab.Grant]()}
	p.limits = limit.New(nil, 1)
	p.domain = limit.NewDomain(&p.limits, "d", func() {})
	p.domain.Open = true
	p.polls = pairing.NewQueue[int, grab.Grant](&p.pd)
	p.n = Node[int]{List: limit.NewList(table.Tasklist{Domain: "d", Name: "l", Partition: partition}, p.domain, &p.index, nil), Polls: &p.polls}
	p.turn(time.Minute)
	return p
}

func (p *part) turn(after time.Duration) {
	p.now += after
	p.out.Reset()
	p.Begin(p.now, &p.out)
}

// poll is a poll that waits for a minute.
func (p *part) poll(id uint64, types ...string) *grab.Poll[int] {
	one := &grab.Poll[int]{ID: id, Max: 1, Since: p.now, Until: p.now + time.Minute}
	one.Accept(types)
	p.polls.Join(one)
	p.all.Add(one)
	p.polls.Add(one)
	return one
}

// column is that of a type.
func column(typ string) table.Column { return table.Column{Priority: 3, Type: typ} }

// wants is a report of a partition that wants polls for a type.
func (p *part) wants(partition int, typ string, readyAt int64, triggers int) {
	p.Hear(&p.n, &Branch{Tasklist: table.Tasklist{Domain: "d", Name: "l", Partition: partition}, Wanted: []Wanted{{Column: column(typ), ReadyAt: readyAt, Triggers: triggers}}})
}

// pass is where polls go; a tasklist has four partitions.
func (p *part) pass(asked func(p *grab.Poll[int]) bool) string {
	p.Pass(func(*Node[int]) Asked[int] { return Asked[int]{For: asked, Last: 1, Partitions: 4} })
	var all []string
	for _, m := range p.out.Moves {
		all = append(all, fmt.Sprintf("{%d %d}", m.Poll, m.Partition))
	}
	return fmt.Sprint(all)
}

func none(*grab.Poll[int]) bool { return false }

// TestPollsGoDownWhereTheyAreWanted: the oldest trigger first, and no more than wait there. What the partition has itself comes first.
func TestPollsGoDownWhereTheyAreWanted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *part)
		asked  func(p *grab.Poll[int]) bool
		want   string
	}{
		"two partitions":                {func(*part) {}, none, "[{1 2} {2 1} {3 1}]"},
		"its own triggers":              {func(p *part) { p.index.Put(column("a"), 9, 1) }, none, "[]"},
		"of another type":               {func(p *part) { p.index.Put(column("b"), 9, 1) }, none, "[{1 2} {2 1} {3 1}]"},
		"the tables are asked for them": {func(*part) {}, func(*grab.Poll[int]) bool { return true }, "[{1 2} {2 1} {3 1}]"},
		"said long ago":                 {func(p *part) { p.turn(reportFor) }, none, "[]"},
	} {
		p := newPart(0)
		for id := range uint64(4) {
			p.poll(id+1, "a")
		}
		p.wants(1, "a", 20, 2)
		p.wants(2, "a", 10, 1)
		c.change(p)
		got := p.pass(c.asked)
		if name == "the tables are asked for them" { // only polls that came since: the last one, which is after the first
			c.want = "[{4 2}]"
			got = got[:min(len(got), 6)] + "]"
		}
		testkit.Equal(t, name, got, c.want)
	}
}

// TestWhenAPollGoesUp: at once from a quiet partition; it waits where triggers came just now, and where it may yet get one.
func TestWhenAPollGoesUp(t *testing.T) {
	for name, c := range map[string]struct {
		partition int
		change    func(p *part, poll *grab.Poll[int])
		mayGet    bool
		after     time.Duration
		stays     bool
	}{
		"quiet":                      {1, func(*part, *grab.Poll[int]) {}, false, 0, false},
		"the first partition":        {0, func(*part, *grab.Poll[int]) {}, false, 0, true},
		"it travels for no one":      {1, func(_ *part, q *grab.Poll[int]) { q.ID = 0 }, false, 0, true},
		"it has a grant":             {1, func(_ *part, q *grab.Poll[int]) { q.Granted = make([]grab.Grant, 1) }, false, 0, true},
		"its time is over":           {1, func(p *part, _ *grab.Poll[int]) { p.turn(time.Minute) }, false, 0, true},
		"another one gave it up":     {1, func(_ *part, q *grab.Poll[int]) { q.Moved = true }, false, upAfter, false},
		"triggers came":              {1, func(p *part, _ *grab.Poll[int]) { p.Came(&p.n, nil) }, false, upAfter, false},
		"it came back":               {1, func(_ *part, q *grab.Poll[int]) { q.Back = true }, false, upBackAfter, false},
		"it waits for a grab":        {1, func(_ *part, q *grab.Poll[int]) { q.Pending = 1 }, false, upAfter, false},
		"the tables do not answer":   {1, func(p *part, _ *grab.Poll[int]) { p.domain.Down = true }, false, upDownAfter, false},
		"the tables are being asked": {1, func(*part, *grab.Poll[int]) {}, true, upAfter, false},
	} {
		p := newPart(c.partition)
		poll := p.poll(7)
		c.change(p, poll)
		due, ok := p.UpAt(&p.n, poll, func() bool { return c.mayGet })
		if ok == c.stays || ok && due != p.now+c.after {
			t.Errorf("%s: it goes up %v, after %v", name, ok, due-p.now)
		}
	}
}

// TestReportsToTheParent: what polls are wanted for, the most urgent and some others, each in its turn; not for what a poll waits for here.
func TestReportsToTheParent(t *testing.T) {
	p := newPart(1)
	p.poll(7, "t00")
	for i := range 20 {
		p.index.Put(column(fmt.Sprintf("t%02d", i)), int64(i+1), 2)
	}
	p.wants(3, "z", 5, 3)
	p.ReportAll()
	if len(p.out.Branches) != 1 {
		t.Fatalf("%d reports", len(p.out.Branches))
	}
	b := p.out.Branches[0]
	if w := b.Wanted; len(w) != wantedMax || w[0].Type != "t01" || w[0].Triggers != 2 || w[4].Type != "z" || len(b.Present) != 20 {
		t.Errorf("%+v", b)
	}
	p.Report(&p.n)
	p.ReportAll()
	testkit.Equal(t, "reports in one turn", len(p.out.Branches), 1)
	testkit.Equal(t, "wakes", p.Wake(time.Hour), p.now+reportEvery)
	p.turn(reportEvery)
	p.ReportAll()
	if len(p.out.Branches) != 1 || p.out.Branches[0].Wanted[wantedMax-1] == b.Wanted[wantedMax-1] {
		t.Errorf("%+v", p.out.Branches)
	}
}

// TestAReportIsBounded: it names so many types at most.
func TestAReportIsBounded(t *testing.T) {
	p := newPart(1)
	for i := range PresentMax + 10 {
		p.index.Put(column(fmt.Sprintf("t%03d", i)), 1, 1)
	}
	if got := p.n.Present(); len(got) != PresentMax || got[0] != "t000" {
		t.Errorf("%d types: %v", len(got), got)
	}
	p.domain.Down = true
	testkit.Equal(t, "types that can be had", len(p.n.Present()), 0)
}

// TestWhatFrontendsHear: of a tasklist with one partition that triggers wait for which no poll is here, at once, and that none waits any more.
func TestWhatFrontendsHear(t *testing.T) {
	p := newPart(0)
	one := Shape{Partitions: 1}
	p.Watch(&p.n, one)
	p.Call(&p.n, "a", make([]byte, 3*ids.TriggerBytes))
	p.Call(&p.n, "a", make([]byte, 3*ids.TriggerBytes))
	testkit.Equal(t, "reports of triggers that come in one turn", len(p.out.Loads), 1)
	p.index.Put(column("a"), 1, 3)
	p.turn(loadEvery)
	p.Sweep(&p.n, one)
	if len(p.out.Loads) != 1 || p.out.Loads[0].Triggers != 3 || !p.Watchful() {
		t.Fatalf("%+v", p.out.Loads)
	}
	p.turn(ms)
	p.Sweep(&p.n, one)
	testkit.Equal(t, "reports a moment later", len(p.out.Loads), 0)
	p.index = table.Index{}
	p.Sweep(&p.n, one)
	if len(p.out.Loads) != 1 || p.out.Loads[0].Triggers != 0 {
		t.Fatalf("%+v", p.out.Loads)
	}
	p.Sweep(&p.n, one)
	testkit.Equal(t, "is watched", p.Watchful(), false)
}

const ms = time.Millisecond
