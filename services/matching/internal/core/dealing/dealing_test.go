package dealing

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// list is a tasklist without limits.
type list struct {
	source tablecall.Source[*list]
	queue  pairing.Queue[*list, grab.Grant]
	index  table.Index
}

func (*list) UnknownGroups(table.Column) bool                    { return false }
func (*list) Weights() fairness.Weights                          { return nil }
func (*list) Called()                                            {}
func (*list) Changed()                                           {}
func (*list) Reconsider()                                        {}
func (*list) Resume()                                            {}
func (*list) MayStillGet(*grab.Poll[*list]) bool                 { return false }
func (*list) UpAt(*grab.Poll[*list]) (at time.Duration, ok bool) { return 0, false }
func (*list) MoveUp(*grab.Poll[*list])                           {}
func (*list) Left()                                              {}

// room is the triggers of one domain, whose tables are open, and of its tasklist. Its partition is fenced.
type room struct {
	Dealing[*list]
	list     list
	tables   *tablecall.Tables[*list]
	domain   pairing.Domain
	limits   limit.Limits
	grabs    grab.Lanes[*list]
	arrivals arrival.Arrivals[*list]
	waiting  waiting.Waiting[*list]
	calls    tablecall.Calls[*list]
	counts   DealCounts
	batches  grab.Effects
	replies  waiting.Replies
	requests tablecall.Requests
	acks     []uint64
	// again names what history is asked for.
	again []string
	made  uint64
}

func newRoom() *room {
	r := &room{domain: pairing.Domain{Name: "d"}, limits: limit.New(nil, 1)}
	r.grabs = grab.New[*list](grab.Config{Partitions: 1, InFlightMax: 1, EventsMax: 10, AnswerBytesMax: 100_000, Nonce: func() uint64 { return 8 }})
	r.waiting = waiting.New[*list](waiting.Config{PollsMax: 10, AnswerBytesMax: 100_000}, 0, 0, &r.grabs)
	source := func(l *list) *tablecall.Source[*list] { return &l.source }
	domain := func(name string) { r.again = append(r.again, name) }
	r.calls = tablecall.NewCalls(tablecall.Config[*list]{
		AnswerBytesMax: 100_000, PopMax: 10, Strict: func(string, string) bool { return false }, Last: r.waiting.Last,
		Of: func(*limit.List) *tablecall.Source[*list] { return &r.list.source }, Source: source,
		Retrigger: domain, Policies: &overflow.Turn{},
	}, &r.limits, &r.arrivals)
	r.Dealing = New(Config[*list]{
		AnswerBytesMax: 100_000, Find: func(table.Tasklist) *list { return &r.list }, Source: source,
		Tables:    func(*list) *tablecall.Tables[*list] { return r.tables },
		Retrigger: func(partition int) { domain(fmt.Sprint("partition ", partition)) },
	}, Rooms[*list]{Grabs: &r.grabs, Arrivals: &r.arrivals, Limits: &r.limits, Waiting: &r.waiting, Calls: &r.calls})
	r.turn(0)
	r.tables = r.calls.NewTables("d")
	r.tables.Opened(&table.Opened{Epoch: "life"})
	r.tables.Start()
	r.list.queue = pairing.NewQueue[*list, grab.Grant](&r.domain)
	r.list.source = tablecall.Source[*list]{
		List: limit.NewList(table.Tasklist{Domain: "d", Name: "l"}, r.tables.Domain, &r.list.index, nil), Of: &r.list, Polls: &r.list.queue,
	}
	r.tables.Sources = append(r.tables.Sources, &r.list.source)
	r.grabs.SendFences()
	r.Decide(&grab.Verdicts{Batch: 1, All: []grab.Verdict{{}}})
	r.turn(0)
	return r
}

// turn begins a turn at an instant.
func (r *room) turn(at time.Duration) {
	r.batches.Reset()
	r.replies.Reset()
	r.requests.Reset()
	r.grabs.Begin(at, &r.batches, &grab.Counts{})
	r.waiting.Begin(at, &r.replies, &waiting.PollCounts{})
	r.limits.Begin(at, 0)
	r.arrivals.Begin(&r.acks)
	r.calls.Begin(at, &r.requests, &tablecall.CallCounts{})
	r.Begin(at, &r.counts)
}

// poll has a poll for so many tasks wait.
func (r *room) poll(most int) {
	m := waiting.Poll{ID: 1, Domain: "d", Tasklist: "l", Max: most, For: time.Minute}
	if r.waiting.Admit(&m, &r.domain) {
		r.waiting.Add(&m, &r.list, &r.list.queue)
	}
}

// chunk has n new triggers of a group.
func (r *room) chunk(group string, n int) table.Chunk {
	c := table.Chunk{Tasklist: r.list.source.Tasklist, Column: table.Column{Priority: 3, Type: "a", Group: group}, ReadyAt: 1}
	for range n {
		r.made++
		c.Triggers = ids.AppendTrigger(c.Triggers, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, r.made), Version: 1})
	}
	return c
}

// arrive has a chunk arrive.
func (r *room) arrive(c table.Chunk) { r.arrivals.PutBack(&r.list, c) }

// took has a chunk come out of the tables.
func (r *room) took(c table.Chunk) {
	r.calls.Taken = append(r.calls.Taken, tablecall.Taken[*list]{List: &r.list, Chunk: c, Path: limit.Unlimited})
}

// sent sends what was gathered, and counts the grabs of it.
func (r *room) sent() (n int) {
	r.End(r.grabs.Send())
	for _, b := range r.batches.Batches {
		n += len(b.Grabs)
	}
	return n
}

// A new trigger meets a poll if nothing is in the table before it. What finds no poll is stored, but for duplicates.
func TestATriggerThatArrives(t *testing.T) {
	for name, c := range map[string]struct {
		polls, before        int
		down, leaving        bool
		grabs, stored, again int
	}{
		"no poll":                      {stored: 3},
		"a poll for some":              {polls: 2, grabs: 2, stored: 1},
		"a poll for all":               {polls: 5, grabs: 3},
		"others are before it":         {polls: 5, before: 1, stored: 3},
		"the tables do not answer":     {polls: 2, before: 1, down: true, grabs: 2},
		"the shard is given up":        {polls: 5, leaving: true, stored: 3},
		"without a poll and no tables": {down: true},
	} {
		r := newRoom()
		if c.polls > 0 {
			r.poll(c.polls)
		}
		if c.before > 0 {
			r.list.index.Put(table.Column{Priority: 3, Type: "a"}, 1, c.before)
		}
		if c.down {
			r.tables.Fail()
		}
		if c.leaving {
			r.Leave()
		}
		r.arrive(r.chunk("", 3))
		r.Match()
		testkit.Equal(t, name+": are grabbed", r.sent(), c.grabs)
		testkit.Equal(t, name+": met a poll", int(r.counts.SyncMatches), c.grabs)
		testkit.Equal(t, name+": chunks to be stored", r.tables.Chunks(), min(c.stored, 1))
	}
}

// A trigger that was asked for is a duplicate, whether a poll waits or not.
func TestADuplicateIsDropped(t *testing.T) {
	r := newRoom()
	r.poll(5)
	c := r.chunk("", 2)
	r.arrive(c)
	r.Match()
	r.arrive(c)
	r.Match()
	r.took(c)
	r.Match()
	testkit.Equal(t, "are grabbed", r.sent(), 2)
	testkit.Equal(t, "duplicates", r.counts.Duplicates, 4)
	testkit.Equal(t, "chunks to be stored", r.tables.Chunks(), 0)
}

// What came out of the tables meets polls. What finds none goes back.
func TestATriggerThatCameOutOfTheTables(t *testing.T) {
	for name, c := range map[string]struct {
		polls, grabs, back int
	}{
		"a poll for some": {polls: 2, grabs: 2, back: 1},
		"a poll for all":  {polls: 3, grabs: 3},
		"no poll":         {back: 1},
	} {
		r := newRoom()
		if c.polls > 0 {
			r.poll(c.polls)
		}
		r.took(r.chunk("", 3))
		r.Match()
		testkit.Equal(t, name+": are grabbed", r.sent(), c.grabs)
		testkit.Equal(t, name+": chunks go back", r.tables.Chunks(), c.back)
	}
}

// A verdict ends a grab: a grant goes to its poll, and a trigger whose task did not fit is matched again.
func TestWhatFollowsFromAVerdict(t *testing.T) {
	r := newRoom()
	r.poll(3)
	r.arrive(r.chunk("", 3))
	r.Match()
	testkit.MustEqual(t, "are grabbed", r.sent(), 3)
	testkit.Equal(t, "are undecided", r.list.source.Undecided, 3)
	r.turn(1)
	superseded := r.Decide(&grab.Verdicts{Batch: 2, All: []grab.Verdict{{Task: []byte("task")}, {Refused: string(fault.Stale)}, {Refused: string(fault.ResourceExhausted)}}})
	r.waiting.Finish()
	if superseded || r.list.source.Undecided != 0 || len(r.arrivals.All) != 1 || len(r.replies.Answers) != 1 || len(r.replies.Answers[0].Tasks) != 1 {
		t.Errorf("%d undecided, %d arrive again, answers %+v", r.list.source.Undecided, len(r.arrivals.All), r.replies.Answers)
	}
	testkit.Equal(t, "a newer owner", r.Decide(&grab.Verdicts{Batch: 2, All: []grab.Verdict{{Fenced: true}}}), false)
}

// What becomes of a stop: a task that waits on goes back, unless its domain has started over.
func TestWhatBecomesOfAStop(t *testing.T) {
	for name, c := range map[string]struct {
		displace, over      bool
		refused             fault.Code
		rejected, displaced int64
		back                int
		again               string
	}{
		"rejected":    {rejected: 1, again: "[]"},
		"displaced":   {displace: true, displaced: 1, again: "[]"},
		"has begun":   {refused: fault.Stale, again: "[]"},
		"not decided": {refused: fault.Unavailable, back: 1, again: "[]"},
		"from before": {over: true, refused: fault.Unavailable, again: "[d d]"},
		"an attempt":  {displace: true, refused: fault.FailedPrecondition, again: "[]"},
	} {
		r := newRoom()
		back := r.chunk("", 1)
		r.AddStop(grab.StopRequest{
			Stop:  grab.Stop{Trigger: ids.TriggerAt(back.Triggers, 0), Domain: "d", Displace: c.displace},
			Limit: &limit.Limit{Domain: r.tables.Domain}, Back: back,
		})
		r.HandOver()
		if c.over {
			r.StartOver(r.tables)
		}
		r.Decide(&grab.Verdicts{Batch: 2, All: []grab.Verdict{{Refused: string(c.refused)}}})
		if r.counts.Rejected != c.rejected || r.counts.Displaced != c.displaced || len(r.arrivals.All) != c.back {
			t.Errorf("%s: %+v, %d go back", name, r.counts, len(r.arrivals.All))
		}
		testkit.Equal(t, name+": history is asked", fmt.Sprint(r.again), c.again)
	}
}

// A domain that starts over releases what history has not received, wherever it is, and history sends it again. What history has received, and does not
// grant, is asked for again then.
func TestADomainStartsOver(t *testing.T) {
	r := newRoom()
	r.poll(2)
	r.arrive(r.chunk("", 1))
	r.Match()
	testkit.MustEqual(t, "are grabbed", r.sent(), 1)
	r.arrive(r.chunk("", 3))
	r.Match() // one is gathered, two are to be stored
	stop := r.chunk("", 1)
	r.AddStop(grab.StopRequest{Stop: grab.Stop{Trigger: ids.TriggerAt(stop.Triggers, 0), Domain: "d"}, Limit: &limit.Limit{Domain: r.tables.Domain}, Back: stop})
	r.arrive(r.chunk("", 1))
	r.StartOver(r.tables)
	testkit.Equal(t, "history is asked", r.again, []string{"d"})
	r.HandOver()
	testkit.Equal(t, "history is asked for what was to be stopped", r.again, []string{"d", "d"})
	r.Decide(&grab.Verdicts{Batch: 2, All: []grab.Verdict{{Refused: string(fault.ResourceExhausted)}}})
	testkit.Equal(t, "history is asked for what it has received", r.again, []string{"d", "d", "d"})
	r.Match()
	r.turn(1)
	testkit.Equal(t, "are left", r.sent()+r.tables.Chunks()+len(r.arrivals.All), 0)
}

// A shard that is given up puts back what history has not received.
func TestAShardIsGivenUp(t *testing.T) {
	r := newRoom()
	r.poll(2)
	r.arrive(r.chunk("", 2))
	r.Match()
	back := r.chunk("", 1)
	r.AddStop(grab.StopRequest{Stop: grab.Stop{Trigger: ids.TriggerAt(back.Triggers, 0)}, Limit: &limit.Limit{Domain: r.tables.Domain}, Back: back})
	r.Leave()
	testkit.Equal(t, "are undecided", r.list.source.Undecided, 0)
	testkit.Equal(t, "go back", len(r.arrivals.All), 3)
	testkit.Equal(t, "are grabbed", r.sent(), 0)
}
