package waiting

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const ms = time.Millisecond

type poll = grab.Poll[*list]

// list is a tasklist: what it returns is up to the test, and it counts what it is asked.
type list struct {
	queue pairing.Queue[*list, grab.Grant]
	// may: the tables are yet to be asked. up: polls go to the parent partition after upAfter.
	may, up       bool
	upAfter       time.Duration
	resumed, left int
	movedUp       []uint64
}

func (l *list) Resume()                                  { l.resumed++ }
func (l *list) MayStillGet(*poll) bool                   { return l.may }
func (l *list) MoveUp(p *poll)                           { l.movedUp = append(l.movedUp, p.ID) }
func (l *list) Left()                                    { l.left++ }
func (l *list) UpAt(p *poll) (at time.Duration, ok bool) { return p.Since + l.upAfter, l.up }

// room is the polls of one domain with one tasklist, and what came of the last turn.
type room struct {
	Waiting[*list]
	domain pairing.Domain
	list   list
	out    Replies
	counts PollCounts
	// back counts the attempts that were handed back; confirms: that confirms the last ones.
	back     int
	confirms bool
	made     uint64
}

func (r *room) TakeAllBack(all []grab.Grant, confirms bool) {
	r.back += len(all)
	if len(all) > 0 {
		r.confirms = confirms
	}
}

func newRoom(most int) *room {
	r := &room{domain: pairing.Domain{Name: "d"}}
	r.list.queue = pairing.NewQueue[*list, grab.Grant](&r.domain)
	r.Waiting = New[*list](Config{PollsMax: most, AnswerBytesMax: 100}, 0, 0, r)
	r.turn(0)
	return r
}

// turn begins a turn at an instant.
func (r *room) turn(at time.Duration) {
	r.out.Reset()
	r.Begin(at, &r.out, &r.counts)
}

// add has a poll arrive, and returns it if it waits.
func (r *room) add(m Poll) *poll {
	m.Domain, m.Tasklist = "d", "l"
	n := r.Len()
	if r.Admit(&m, &r.domain) {
		r.Add(&m, &r.list, &r.list.queue)
	}
	if r.Len() == n {
		return nil
	}
	return r.polls.ByInbox(m.ReplyTo)
}

// grant is an attempt whose task has so many bytes.
func (r *room) grant(bytes int) grab.Grant {
	r.made++
	lanes := grab.New[*list](grab.Config{Partitions: 1})
	g, _ := lanes.GrantedBefore(&grab.Undelivered{Domain: "d", Trigger: ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, r.made)}, Task: make([]byte, bytes)})
	return g
}

// end finishes a turn, and returns the answers as poll:tasks.
func (r *room) end() (all []string) {
	r.Expire()
	r.Finish()
	for _, a := range r.out.Answers {
		all = append(all, fmt.Sprint(a.Poll, ":", len(a.Tasks)))
	}
	return all
}

// A poll that gets nothing is answered when its time is over. If the tables are yet to be asked it waits for that, but not forever.
func TestAPollIsAnsweredWhenItsTimeIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		may, asked bool
		at         time.Duration
	}{
		"nothing to get":     {false, false, 10 * ms},
		"the tables answer":  {true, true, 20 * ms},
		"they do not answer": {true, false, 10*ms + PollGrace},
	} {
		r := newRoom(10)
		r.list.may = c.may
		r.add(Poll{ID: 1, Max: 1, For: 10 * ms})
		testkit.Equal(t, name+": looks for triggers", r.list.resumed, 1)
		r.turn(10 * ms)
		early := r.end()
		if c.asked {
			r.turn(c.at)
			r.list.may = false
			r.Reconsider(&r.list.queue)
			early = r.end()
		} else if c.may {
			testkit.Equal(t, name+": answered at first", early, nil)
			testkit.Equal(t, name+": when to look", r.Wake(time.Hour), c.at)
			r.turn(c.at)
			early = r.end()
		}
		testkit.Equal(t, name, early, []string{"1:0"})
		testkit.Equal(t, name+": polls that left", r.list.left, 1)
	}
}

// A poll waits for all its grabs. A grant that finds no place in it, or does not fit into its answer, is handed back.
func TestAPollIsAnsweredWithItsGrants(t *testing.T) {
	r := newRoom(10)
	p := r.add(Poll{ID: 1, Max: 3, For: time.Minute})
	p.Pending = 4
	for range 2 {
		r.Grant(p, r.grant(45))
		r.Detach(p)
	}
	testkit.Equal(t, "answers while grabs are under way", r.end(), nil)
	for range 2 {
		r.Grant(p, r.grant(45))
		r.Detach(p)
	}
	testkit.Equal(t, "handed back that found no place", r.back, 1)
	testkit.Equal(t, "answers", r.end(), []string{"1:2"})
	r.Grant(p, r.grant(1))
	testkit.Equal(t, "handed back in all", r.back, 3)
	if id := r.out.Answers[0].ID; id == 0 || !r.UnderWay() {
		t.Error("the answer may not turn out to be undelivered")
	}
}

// A poll with a grant does not wait forever for its other grabs.
func TestAPollWithAGrantDoesNotWaitForASilentPartition(t *testing.T) {
	r := newRoom(10)
	p := r.add(Poll{ID: 1, Max: 3, For: time.Minute})
	p.Pending = 2
	r.Grant(p, r.grant(1))
	r.Detach(p)
	r.turn(GrantedWait - 1)
	testkit.Equal(t, "answers before", r.end(), nil)
	r.turn(GrantedWait)
	testkit.Equal(t, "answers", r.end(), []string{"1:1"})
}

// A poll whose grabs were all refused waits again in its place; after its time is over, a few times.
func TestAPollWhoseGrabsWereRefusedWaitsAgain(t *testing.T) {
	r := newRoom(10)
	p := r.add(Poll{ID: 1, Max: 1, For: 10 * ms})
	refuse := func(at time.Duration) []string {
		r.turn(at)
		p.LeaveLine()
		p.Pending = 1
		r.Detach(p)
		r.Finish()
		return r.end()
	}
	testkit.Equal(t, "answers", refuse(ms), nil)
	if p.Line() == nil || r.list.resumed != 2 {
		t.Error("it does not wait in its place")
	}
	r.list.may = true
	for range WastedRounds {
		testkit.Equal(t, "answers when its time is over", refuse(20*ms), nil)
	}
	testkit.Equal(t, "answers in the end", refuse(20*ms), []string{"1:0"})
}

// A poll that finds nothing for long enough goes to the parent partition, without an answer.
func TestAPollGoesUp(t *testing.T) {
	r := newRoom(10)
	r.list.up, r.list.upAfter = true, 5*ms
	r.add(Poll{ID: 1, Partition: 1, Max: 1, For: time.Minute})
	testkit.Equal(t, "answers", r.end(), nil)
	testkit.Equal(t, "when to look", r.Wake(time.Hour), 5*ms)
	r.turn(5 * ms)
	testkit.Equal(t, "answers", r.end(), nil)
	testkit.Equal(t, "went up", r.list.movedUp, []uint64{1})
	if r.Len() != 0 || r.counts.PollsUp != 1 {
		t.Errorf("%d wait, %+v", r.Len(), r.counts)
	}
}

// A poll that is malformed, or for which there is no place, is refused. One that comes while the shard is given up is answered.
func TestAPollThatMayNotWait(t *testing.T) {
	r := newRoom(2)
	for _, m := range []Poll{{ID: 1}, {ID: 2, Max: 1, Partition: -1}, {ID: 3, Max: 1, Partition: ids.PartitionsMax}} {
		if r.add(m) != nil {
			t.Errorf("%+v waits", m)
		}
	}
	for i := range 3 {
		r.add(Poll{ID: uint64(10 + i), Max: 1, For: time.Minute, ReplyTo: fmt.Sprint(i)})
	}
	codes := ""
	for _, one := range r.out.Refusals {
		codes += fmt.Sprint(one.Poll, " ", one.Why.Code, " ")
	}
	testkit.Equal(t, "refused", codes, "1 INVALID_ARGUMENT 2 INVALID_ARGUMENT 3 INVALID_ARGUMENT 12 RESOURCE_EXHAUSTED ")
	testkit.Equal(t, "counted", r.counts, PollCounts{Polls: 6, PollsRefused: 1})
	r.Leave()
	r.add(Poll{ID: 20, Max: 1, For: time.Minute})
	testkit.Equal(t, "answers when the shard is given up", r.end(), []string{"10:0", "11:0", "20:0"})
}

// The polls of a silent worker end in their order, with what they were granted.
func TestTheWorkerOfAPollIsSilent(t *testing.T) {
	r := newRoom(20)
	for i := range 6 {
		r.add(Poll{ID: uint64(i), Max: 1, For: time.Minute, WorkerID: []string{"", "x", "y"}[i%3], ReplyTo: fmt.Sprint(i)})
	}
	r.Grant(r.polls.ByInbox("4"), r.grant(1))
	r.Silence([]SilentWorker{{Domain: "d", ID: "x"}, {Domain: "e", ID: "y"}, {Domain: "d", ID: ""}})
	testkit.Equal(t, "answers", r.end(), []string{"1:0", "4:1"})
}

// An inbox whose poll was given up has its attempts handed back: those of the poll that waits, and those of the last answer. An inbox of
// another domain is left alone.
func TestAPollIsGivenUp(t *testing.T) {
	r := newRoom(10)
	r.Grant(r.add(Poll{ID: 1, Max: 1, For: time.Minute, ReplyTo: "inbox"}), r.grant(1))
	r.Grant(r.add(Poll{ID: 2, Max: 2, For: time.Minute, ReplyTo: "inbox"}), r.grant(1))
	r.polls.Touch(r.polls.ByInbox("inbox"))
	r.GivenUp("inbox", "e")
	testkit.Equal(t, "handed back for another domain", r.back, 0)
	r.GivenUp("inbox", "d")
	testkit.Equal(t, "handed back", r.back, 1)
	testkit.Equal(t, "answers", r.end(), []string{"2:0", "1:1"})
	r.GivenUp("inbox", "d")
	testkit.Equal(t, "handed back in all", r.back, 2)
	testkit.Equal(t, "counted", r.counts.Bounced, 2)
}

// What owners before may not have sent is sent once, to each inbox. What a round trip has not proven is sent again with the connection.
func TestAnswersAreSentAgain(t *testing.T) {
	r := newRoom(10)
	g := grab.Undelivered{Domain: "d", ReplyTo: "inbox", Max: 1}
	r.Find(&g, r.grant(1))
	r.Redeliver()
	r.Redeliver()
	testkit.Equal(t, "answers", r.end(), []string{"0:1"})
	r.turn(grab.HeardAfter)
	r.Repeat()
	testkit.Equal(t, "answers with the connection", r.end(), []string{"0:1"})
	testkit.Equal(t, "proven", r.Confirm(), false)
	r.turn(2 * grab.HeardAfter)
	testkit.Equal(t, "more to prove", r.Confirm(), true)
	r.Prove(2 * grab.HeardAfter)
	if r.Confirm() || r.UnderWay() || !r.Watchful() {
		t.Error("the answer does not count as received, or is forgotten")
	}
}

// Whatever happens, a poll that is not answered waits in its line, or for a grab, or has a grant and is answered in this turn.
func TestAPollNeverWaitsForNothing(t *testing.T) {
	dice := testkit.Seed(t)
	r := newRoom(30)
	var all []*poll
	for n := range 2000 {
		r.turn(time.Duration(n) * 10 * ms)
		r.list.may = dice.IntN(2) == 0
		if p := r.add(Poll{ID: uint64(n + 1), Max: 1 + dice.IntN(3), For: time.Duration(dice.IntN(500)) * ms, ReplyTo: fmt.Sprint(n)}); p != nil {
			all = append(all, p)
		}
		for _, p := range all {
			switch k := dice.IntN(8); {
			case k == 0 && p.Line() != nil && p.Room(100) > 0:
				p.Pending++
				p.LeaveLine()
			case k <= 2 && p.Pending > 0:
				if k == 2 {
					r.Grant(p, r.grant(10))
				}
				r.Detach(p)
			}
		}
		r.Reconsider(&r.list.queue)
		r.Finish()
		r.end()
		all = slices.DeleteFunc(all, func(p *poll) bool { return p.Answered })
		testkit.MustEqual(t, "polls", r.Len(), len(all))
		testkit.MustEqual(t, "polls of the tasklist", r.list.queue.Alive(), len(all))
		for _, p := range all {
			if p.Line() == nil && p.Pending == 0 || len(p.Granted) > p.Max {
				t.Fatalf("poll %d waits for nothing, or has more than it takes", p.ID)
			}
		}
	}
}
