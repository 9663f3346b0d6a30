package poll

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/idle"
)

const simShards, simLists, simWorkers = 3, 4, 5

// world is a frontend's polls with matching, submits and workers around them.
type world struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	now    time.Time
	polls  *Polls[int]
	drains map[string]Drain
	epochs []uint64
	// all are by number in the order in which they came.
	all []*simPoll
	// answers are the polls that were assigned something, by the id of their answer.
	answers map[uint64]int
	// submits are those on their way into the log.
	submits []simSubmit
	// at says where the attempts are: with a poll, with a worker, or handed back.
	at    map[ids.TaskID]string
	tasks uint64
}

type simPoll struct {
	*Poll[int]
	// sending is its id while an owner may have it; 0 = none has.
	sending  uint64
	ends     int
	attempts []Attempt
}

type simSubmit struct {
	polls    []*Poll[int]
	attempts []Attempt
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), now: time.UnixMilli(1_800_000_000_000), drains: map[string]Drain{}, epochs: make([]uint64, simShards),
		answers: map[uint64]int{}, at: map[ids.TaskID]string{},
	}
	w.polls = New[int](w.epochs, Rules{
		Drain:       func(_, worker string) Drain { return w.drains[worker] },
		MayWait:     func(_, list string) bool { return list != "list0" },
		AnswerBytes: 1000,
	})
	return w
}

func (w *world) n(n int) int { return w.random.IntN(n) }

func (w *world) fail(format string, args ...any) {
	w.t.Fatalf("seed %d: "+format, append([]any{w.seed}, args...)...)
}

// do takes out the actions, as a shell does them, and checks that each may be.
func (w *world) do() {
	actions := w.polls.Actions
	w.polls.Actions = nil
	for _, a := range actions {
		if a.Do == HandBack {
			w.move(a.Attempts, "handed back")
			continue
		}
		p := w.all[a.Poll.Shell]
		if p.ends > 0 {
			w.fail("poll %d has ended, and then: %+v", a.Poll.Shell, a)
		}
		if a.Do == Send {
			if p.sending != 0 {
				w.fail("poll %d is sent to two owners", a.Poll.Shell)
			}
			if a.Epoch != w.epochs[a.Shard] || a.Epoch == 0 {
				w.fail("poll %d is sent to epoch %d of shard %d, which has %d", a.Poll.Shell, a.Epoch, a.Shard, w.epochs[a.Shard])
			}
			p.sending = a.ID
			continue
		}
		if p.ends++; a.Do == Assign {
			w.answers[a.ID] = a.Poll.Shell
			w.move(p.attempts, "with a worker")
		}
	}
}

// move moves attempts. One that was handed back is nowhere else any more.
func (w *world) move(attempts []Attempt, to string) {
	for _, a := range attempts {
		if was := w.at[a.ID]; was == "handed back" {
			w.fail("attempt %v is %s, and was %s", a.ID, to, was)
		}
		w.at[a.ID] = to
	}
}

// step does one thing that may happen.
func (w *world) step() {
	list := idle.Tasklist{Domain: "shop", Name: fmt.Sprint("list", w.n(simLists))}
	switch w.n(14) {
	case 0, 1, 2:
		w.poll(list)
	case 3:
		w.begin(list)
	case 4, 5:
		w.stored()
	case 6:
		w.polls.Wanted(list, w.n(5), nil, w.now)
	case 7:
		if p := w.some(); p != nil && p.sending != 0 {
			sending := p.sending
			p.sending = 0
			if w.n(2) == 0 {
				w.polls.Bounced(sending, w.now)
			} else {
				w.polls.GaveUp(sending, w.n(4)-1, w.now)
			}
		}
	case 8:
		if p := w.some(); p != nil && p.sending != 0 {
			w.polls.Answered([]uint64{p.sending, 0})
		}
	case 9:
		shard := w.n(simShards)
		w.polls.Opened(shard, w.epochs[shard]+uint64(w.n(2)), w.now)
	case 10:
		if p := w.some(); p != nil {
			w.polls.Lost("shop", p.Inbox)
		}
	case 11:
		w.polls.TasksBounced(uint64(w.n(len(w.answers) + 2)))
	case 12:
		w.drains[fmt.Sprint("worker", w.n(simWorkers))] = Drain{SinceMS: int64(w.n(3))}
		w.polls.DrainsChanged()
	case 13:
		silent := fmt.Sprint("worker", w.n(simWorkers))
		w.polls.Silent(func(_, worker string) bool { return worker == silent })
	}
	w.do()
	if w.n(3) == 0 {
		w.now = w.now.Add(time.Duration(w.n(2000)) * time.Millisecond)
		w.polls.Tick(w.now)
		w.do()
	}
	if next, ok := w.polls.Next(); ok != (w.polls.Len() > 0) || ok && next.Before(w.now.Add(-OverAfter)) {
		w.fail("the next tick is at %v, and now is %v", next, w.now)
	}
}

func (w *world) some() *simPoll {
	if len(w.all) == 0 {
		return nil
	}
	return w.all[len(w.all)-1-w.n(min(len(w.all), 20))]
}

func (w *world) poll(list idle.Tasklist) {
	worker := fmt.Sprint("worker", w.n(simWorkers))
	at := &Poll[int]{
		Shell: len(w.all), Domain: list.Domain, Tasklist: list.Name, Inbox: fmt.Sprint("inbox", len(w.all)), Worker: worker, WorkerID: worker, Max: 1 + w.n(3),
		Until: w.now.Add(time.Duration(w.n(20_000)) * time.Millisecond),
	}
	w.all = append(w.all, &simPoll{Poll: at})
	w.polls.Take(at, w.now)
}

// begin has a submit start on the polls that are here.
func (w *world) begin(list idle.Tasklist) {
	starts := []Start{{list, make([]idle.Task, 1+w.n(3))}, {list, make([]idle.Task, 1)}}
	for i, polls := range w.polls.Begin(starts) {
		if polls == nil {
			continue
		}
		s := simSubmit{polls: polls}
		for range starts[i].Tasks {
			w.tasks++
			s.attempts = append(s.attempts, Attempt{ID: ids.NewTaskID(w.now, 0, w.tasks)})
		}
		w.submits = append(w.submits, s)
	}
}

// stored ends a submit: it is stored, in time or not, it is not stored, or that is not known so far.
func (w *world) stored() {
	if len(w.submits) == 0 {
		return
	}
	i := w.n(len(w.submits))
	s := w.submits[i]
	switch w.n(4) {
	case 0: // not stored
	case 1:
		if s.polls != nil { // unknown: it may turn out to be stored
			w.submits[i].polls = nil
			w.polls.Decided(s.polls, w.now)
			return
		}
		fallthrough
	default:
		for _, a := range s.attempts {
			w.at[a.ID] = "with a poll"
		}
		for _, k := range w.polls.Stored("shop", s.polls, s.attempts, w.n(4) > 0) {
			p := w.all[s.polls[k].Shell]
			p.attempts = append(p.attempts, s.attempts[k])
		}
	}
	w.submits = append(w.submits[:i], w.submits[i+1:]...)
	w.polls.Decided(s.polls, w.now)
}

// TestAPollEndsOnceAndIsNeverWithTwoOwners, and each attempt is with one worker or handed back, whatever comes late, twice or never.
func TestAPollEndsOnceAndIsNeverWithTwoOwners(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(t, seed)
		for range 300 {
			w.step()
		}
		for len(w.submits) > 0 {
			w.stored()
			w.do()
		}
		w.polls.Stop()
		w.do()
		w.polls.Tick(w.now.Add(20*time.Second + OverAfter + time.Millisecond))
		w.do()
		if n := w.polls.Len(); n != 0 {
			w.fail("%d polls never end", n)
		}
		for i, p := range w.all {
			if p.ends != 1 {
				w.fail("poll %d ends %d times", i, p.ends)
			}
		}
		for id, at := range w.at {
			if at == "with a poll" {
				w.fail("attempt %v is with a poll that has ended", id)
			}
		}
	}
}
