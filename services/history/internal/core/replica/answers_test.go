package replica

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// answered spells the answers of a turn: the place of the first verdict, and the codes.
func answered(fx *Effects) string {
	var all []string
	for _, a := range fx.Answers {
		var codes []string
		for _, v := range a.Verdicts {
			code := string(v.Code)
			if code == "" {
				code = "ok"
			}
			codes = append(codes, code)
		}
		all = append(all, fmt.Sprintf("%d/%d %s", a.RequestID, a.First, strings.Join(codes, " ")))
	}
	return strings.Join(all, ", ")
}

func (b *bench) answers(what string, fx *Effects, want string) {
	b.Helper()
	testkit.Equal(b, fmt.Sprintf("%s: answered", what), answered(fx), want)
}

// TestWhatIsKnownIsAnswered: of a message some cancels of which need a search, the other
// verdicts go at once, and those that were searched for together go together.
func TestWhatIsKnownIsAnswered(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1, 2, 3)
	cancel := func(n int) taskstate.Event { return taskstate.Event{Kind: taskstate.Cancel, ID: id(n)} }
	b.seq++
	in := &Events{Seq: b.seq, At: b.now.MS, ReplyTo: "asker", RequestID: 7, Events: []taskstate.Event{
		cancel(1), cancel(21), cancel(22), cancel(2), cancel(3), cancel(23), cancel(24),
	}}
	b.answers("at once", b.step(in), "7/0 ok, 7/3 ok ok")
	b.answers("nothing new", b.step(Tick{}), "")

	fx := new(Effects)
	for _, n := range []int{24, 21} {
		e := &taskstate.Task{ID: id(n), Domain: "shop", State: taskstate.Cancelled}
		b.r.Step(&Found{Search: Search{ID: id(n), Command: true}, Archived: e}, b.now, fx)
	}
	b.r.Flush(b.now, fx)
	b.answers("before a turn", fx, "")
	b.prove(fx)
	b.answers("two were found", fx, "7/1 ok, 7/6 ok")

	fx = new(Effects)
	for _, n := range []int{22, 23} {
		b.r.Step(&Found{Search: Search{ID: id(n), Command: true}}, b.now, fx)
	}
	b.r.Step(Tick{}, b.now, fx)
	b.prove(fx)
	b.answers("the others were not", fx, "7/2 NOT_FOUND, 7/5 NOT_FOUND")
	testkit.Equal(t, "commands wait", len(b.r.locator.Commands()), 0)
}

// TestAWholeAnswerIsOneMessage, if what waited is decided in the same turn.
func TestAWholeAnswerIsOneMessage(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	fx := new(Effects)
	b.r.Step(&Events{Seq: 4, At: b.now.MS, ReplyTo: "asker", RequestID: 7, Events: []taskstate.Event{{Kind: taskstate.Cancel, ID: id(1)}, {Kind: taskstate.Cancel, ID: id(9)}}}, b.now, fx)
	e := &taskstate.Task{ID: id(9), Domain: "shop", State: taskstate.Cancelled}
	b.r.Step(&Found{Search: Search{ID: id(9), Command: true}, Archived: e}, b.now, fx)
	b.prove(fx)
	b.answers("in one turn", fx, "7/0 ok ok")
}

// TestI3_AConclusionFromASearchWaitsForATurn that began behind it: of one that was under way the log may have taken it before a newer owner claimed the log,
// whose writes the search has met. One that is refused proves nothing.
func TestI3_AConclusionFromASearchWaitsForATurn(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	b.r.Step(&Events{Seq: 4, At: b.now.MS, ReplyTo: "asker", RequestID: 7, Events: []taskstate.Event{{Kind: taskstate.Cancel, ID: id(9)}}}, b.now, new(Effects))
	store := func(seq uint64) *Effects {
		fx := new(Effects)
		b.r.Step(&Turn{Seq: seq, At: b.now.MS}, b.now, fx)
		b.r.Step(Stored{Kind: JobAppend}, b.now, fx)
		b.r.Flush(b.now, fx)
		return fx
	}
	underWay := b.r.BeginTurn()
	fx := new(Effects)
	b.r.Step(&Found{Search: Search{ID: id(9), Command: true}, Archived: &taskstate.Task{ID: id(9), Domain: "bank", State: taskstate.Completed}}, b.now, fx)
	b.r.Flush(b.now, fx)
	b.answers("at once", fx, "")
	fx = store(5)
	b.answers("by the turn that was under way", fx, "")
	testkit.Equal(t, "a turn is asked for", fx.Append != nil && len(fx.Append) == 0, true)
	b.r.BeginTurn()
	fx = new(Effects)
	b.r.Step(TurnRefused{Admitted: underWay}, b.now, fx)
	b.r.Step(Stored{Kind: JobAppend}, b.now, fx)
	b.r.Flush(b.now, fx)
	b.answers("by a turn that was refused", fx, "")
	b.r.BeginTurn()
	b.answers("by the next one", store(6), "7/0 FAILED_PRECONDITION")
}

// TestI4_AnOutcomeOfAStayThatCameAndWentUnseen: a takeover reads a submit again, since the answer to its park
// was lost; the later stay came back, ended and was archived before. An outcome of that one,
// repeated, is not of an earlier stay: the archive is asked. Seed 114485 of the simulation.
func TestI4_AnOutcomeOfAStayThatCameAndWentUnseen(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(func(t *taskstate.Task) { t.DueAt = b.now.MS + 60_000 }, 1)
	b.turn()
	b.step(Stored{Kind: JobPark, Seq: 1})
	b.submit(nil, 2) // the message that the later stay lay in
	later := *b.r.Get(id(2))
	later.ID, later.Before, later.Parkings = id(1), b.r.tasks[id(1)].Position, 1
	later.State, later.Version = taskstate.Completed, 1
	later.Attempt = taskstate.Attempt{Nonce: 5, Worker: taskstate.NewWorker("w", "", 0), Ended: taskstate.Succeeded}
	fx := b.event(taskstate.Succeeded, 1, later.Token())
	b.answers("before the archive is asked", fx, "")
	if len(fx.Searches) != 1 || fx.Searches[0].ID != id(1) {
		t.Fatalf("%+v is searched for", fx.Searches)
	}
	fx = b.step(&Found{Search: Search{ID: id(1)}, Archived: &later})
	b.prove(fx)
	b.answers("found", fx, "0/0 ok")
}
