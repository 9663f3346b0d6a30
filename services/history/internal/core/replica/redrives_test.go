package replica

import (
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/locate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// redrove is the event that redrives stay 0 of a task, and deadLetterOf its letter.
func redrove(seq uint64) *Events {
	return &Events{Seq: seq, At: scenarioStart, Bytes: 10, ReplyTo: "asker", RequestID: seq, Events: []taskstate.Event{{
		Kind: taskstate.Redrove, ID: id(1), Domain: "shop", Redrive: &taskstate.Redrive{Letter: 5, Tasklist: "mail", Request: 9},
	}}}
}

func deadLetterOf() *taskstate.Task {
	return &taskstate.Task{
		ID: id(1), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy, State: taskstate.Dead, Position: ids.NewPosition(1, 3),
	}
}

// foundLetter answers the search for a redrive: the archive and the dead letters have the task.
func (b *bench) foundLetter(fx *Effects, ends uint64) *Effects {
	b.Helper()
	if len(fx.Searches) != 1 || !fx.Searches[0].Redrive {
		b.Fatalf("searches %+v", fx.Searches)
	}
	f := &Found{Search: fx.Searches[0], Archived: deadLetterOf(), DeadLetter: deadLetterOf(), DeadLetterSeq: 5}
	f.Ends[3] = ends
	return b.step(f)
}

// TestALetterIsDeletedOnceTheTaskIsParked: with the job that parks it.
func TestALetterIsDeletedOnceTheTaskIsParked(t *testing.T) {
	b := newBench(t, Config{})
	b.seq = 40
	b.r.Admit(Queue{Lane: 3}, "", 30)
	fx := b.foundLetter(b.step(redrove(41)), 30)
	b.seq = b.r.EventAt()
	if v := b.said(fx); v.Code != "" {
		t.Fatalf("%+v", v)
	}
	if len(fx.Park) != 1 || fx.Park[0].Parkings != 1 || len(fx.ParkLetters) != 1 || fx.ParkLetters[0] != (Letter{Domain: "shop", Tasklist: "mail", ID: id(1), Seq: 5}) || len(fx.Letters) != 0 {
		t.Fatalf("parked %v with letters %v", fx.Park, fx.ParkLetters)
	}
	if snap := b.snapshot(); len(snap.Tasks) != 1 || snap.Tasks[0].Letter.Seq != 5 {
		t.Errorf("before the task is stored the snapshot is %+v", snap.Tasks)
	}
	b.step(Stored{Kind: JobPark, Seq: 1})
	testkit.Equal(t, "letters are left", len(b.r.letters), 0)
}

// TestALetterIsDeletedByWhoTakesOver with a snapshot that was made while the task was on its way: with the job that parks it, or at once if the
// timer store has it.
func TestALetterIsDeletedByWhoTakesOver(t *testing.T) {
	b := newBench(t, Config{})
	b.seq = 40
	b.r.Admit(Queue{Lane: 3}, "", 30)
	b.foundLetter(b.step(redrove(41)), 30)
	b.seq = b.r.EventAt()
	snap := b.snapshot()
	for _, parked := range []bool{false, true} {
		start := &Start{Snapshot: snap, ClaimedAt: time.Hour, Parked: map[Stay]bool{{id(1), 1}: parked}}
		next := &bench{T: t, r: New(b.r.cfg, start), now: b.now}
		fx := next.step(Recovered{})
		if at := len(fx.Park); at != len(fx.ParkLetters) || parked == (at == 1) || parked != (len(fx.Letters) == 1) || len(next.r.letters) != at {
			t.Errorf("parked %v: parks %d, deletes %v with them and %v at once", parked, at, fx.ParkLetters, fx.Letters)
		}
	}
}

// TestARedriveThatIsReplayedWaitsForTheLanes: an owner died after it had parked the task and before it deleted the letter. The timer has fired the task, and
// forgotten that; it lies in a lane, unread. So the letter alone does not bring it back: when it is read, the redrive is known to be done, and the letter is deleted.
func TestARedriveThatIsReplayedWaitsForTheLanes(t *testing.T) {
	b := &bench{T: t, r: New(newBench(t, Config{}).r.cfg, begin(time.Hour)), now: Now{MS: scenarioStart}}
	b.r.Admit(Queue{Lane: 3}, "", 30)
	b.step(redrove(41))
	fx := b.foundLetter(b.step(Recovered{}), 50)
	if len(fx.Park) != 0 || b.step(Tick{}).Park != nil {
		t.Fatal("it came back a second time")
	}
	back := deadLetterOf()
	taskstate.Bring(back, &taskstate.Event{Seq: 41, Redrive: &taskstate.Redrive{Request: 9}}, scenarioStart)
	fx = b.step(&Submits{Lane: 3, Seq: 50, At: scenarioStart, Bytes: 10, Tasks: []*Entry{{Task: *back}}})
	if task := b.r.Get(id(1)); task == nil || task.State != taskstate.Ready || len(fx.Park) != 0 || len(fx.Triggers) != 1 {
		t.Errorf("it is %+v", task)
	}
	if len(fx.Letters) != 1 || fx.Letters[0].Seq != 5 {
		t.Errorf("letters %v are deleted", fx.Letters)
	}
}

// TestARedriveThatIsReplayedComesBackInTheEnd: nothing was in the lanes.
func TestARedriveThatIsReplayedComesBackInTheEnd(t *testing.T) {
	b := &bench{T: t, r: New(newBench(t, Config{}).r.cfg, begin(time.Hour)), now: Now{MS: scenarioStart}}
	b.r.Admit(Queue{Lane: 3}, "", 30)
	b.step(redrove(41))
	b.foundLetter(b.step(Recovered{}), 50)
	b.step(&Submits{Lane: 3, Seq: 50, At: scenarioStart, Bytes: 10})
	if fx := b.step(Tick{}); len(fx.Park) != 1 || len(fx.ParkLetters) != 1 {
		t.Errorf("parked %v with letters %v", fx.Park, fx.ParkLetters)
	}
}

// TestARedriveThatWaitsIsLookedForWithItsLetter: what is asked of the task meanwhile has it looked for again. Without its letter the redrive would be refused.
func TestARedriveThatWaitsIsLookedForWithItsLetter(t *testing.T) {
	b := &bench{T: t, r: New(newBench(t, Config{}).r.cfg, begin(time.Hour)), now: Now{MS: scenarioStart}}
	b.r.Admit(Queue{Lane: 3}, "", 30)
	b.step(redrove(41))
	b.foundLetter(b.step(Recovered{}), 50)
	fx := b.step(&Events{Seq: 42, At: scenarioStart, Bytes: 10, ReplyTo: "asker", RequestID: 42, Events: []taskstate.Event{{
		Kind: taskstate.Changed, ID: id(1), Domain: "shop", Update: &taskstate.Update{Request: 10, Priority: 1, Since: isNew},
	}}})
	b.foundLetter(fx, 50)
	b.step(&Submits{Lane: 3, Seq: 50, At: scenarioStart, Bytes: 10})
	if fx := b.step(Tick{}); len(fx.Park) != 1 || fx.Park[0].Parkings != 1 || len(fx.ParkLetters) != 1 {
		t.Errorf("parked %v with letters %v", fx.Park, fx.ParkLetters)
	}
}

// TestACancelFromBeforeARedriveTakesNothingOut of the timer store: it is about the dead letter. It waited for a lane when the task came back, and was looked
// for when the task had been parked. Here a service of ours cancels, so the search for the redrive, which another caller asks for, does not decide it.
func TestACancelFromBeforeARedriveTakesNothingOut(t *testing.T) {
	b := newBench(t, Config{})
	b.seq = 40
	b.r.Admit(Queue{Lane: 3}, "", 30)
	fx := b.step(&Events{Seq: 41, At: scenarioStart, Bytes: 10, ReplyTo: "asker", RequestID: 41, Events: []taskstate.Event{{
		Kind: taskstate.Cancel, ID: id(1),
	}}})
	f := &Found{Search: fx.Searches[0], Archived: deadLetterOf(), Unsure: true}
	f.Ends[3] = 50
	b.step(f)
	testkit.MustEqual(t, "cancels wait", b.r.locator.Weight(""), 1)
	fx = b.foundLetter(b.step(redrove(b.r.EventAt()+1)), 30)
	if len(fx.Park) != 1 {
		t.Fatalf("parked %v", fx.Park)
	}
	if fx := b.step(Stored{Kind: JobPark, Seq: 1}); len(fx.Searches) != 0 || b.r.locator.Weight("") != 0 {
		t.Errorf("searches %+v", fx.Searches)
	}
}

// TestALetterThatWaitsCountsWithItsBytes, so that a domain whose letters are fat may have fewer redrives waiting.
func TestALetterThatWaitsCountsWithItsBytes(t *testing.T) {
	b := &bench{T: t, r: New(newBench(t, Config{}).r.cfg, begin(time.Hour)), now: Now{MS: scenarioStart}}
	b.r.Admit(Queue{Lane: 3}, "", 30)
	b.step(redrove(41))
	fx := b.step(Recovered{})

	fat := deadLetterOf()
	fat.Payload.Data = make([]byte, 10*locate.WeightBytes)
	f := &Found{Search: fx.Searches[0], Archived: deadLetterOf(), DeadLetter: fat, DeadLetterSeq: 5}
	f.Ends[3] = 50
	b.step(f)
	if after := b.r.locator.Weight(""); after < 10 || b.r.locator.Weight("shop") != after {
		t.Errorf("with its letter it counts as %d, in its domain %d", after, b.r.locator.Weight("shop"))
	}
	b.step(&Submits{Lane: 3, Seq: 50, At: scenarioStart, Bytes: 10})
	b.step(Tick{})
	testkit.Equal(t, "the weight of what is left", b.r.locator.Weight(""), 0)
}

// TestAnotherDomainCannotRedrive a dead task that is in memory, nor learn that there is one, nor have its letter deleted.
func TestAnotherDomainCannotRedrive(t *testing.T) {
	for name, letter := range map[string]uint64{"with a letter": 5, "without": 0} {
		b := newBench(t, Config{})
		b.seq = 40
		b.r.Admit(Queue{Lane: 3}, "", 30)
		b.foundLetter(b.step(redrove(41)), 30) // it is here now, as its next stay
		for _, state := range []string{"on its way", "parked"} {
			if state == "parked" {
				b.step(Stored{Kind: JobPark, Seq: 1})
			}
			b.seq++
			fx := b.step(&Events{Seq: 50 + b.seq, At: scenarioStart, Bytes: 10, ReplyTo: "asker", RequestID: b.seq, Events: []taskstate.Event{{
				Kind: taskstate.Redrove, ID: id(1), Domain: "rival", Redrive: &taskstate.Redrive{Letter: letter, Tasklist: "mail", Request: 9},
			}}})
			if v := b.said(fx); v.Code != fault.NotFound || len(fx.Letters) != 0 {
				t.Errorf("%s, %s: %+v, letters %v", name, state, v, fx.Letters)
			}
		}
	}
}

// TestARedriveWithoutALetterIsRepeated where the letter is there now: its caller looked for it before it was stored. The task has left memory meanwhile, but for
// questions. It is refused where there is none: it was purged.
func TestARedriveWithoutALetterIsRepeated(t *testing.T) {
	for letter, want := range map[*taskstate.Task]fault.Code{deadLetterOf(): fault.Unknown, nil: fault.FailedPrecondition} {
		b := newBench(t, Config{})
		b.submit(func(t *taskstate.Task) { t.Policy = &taskstate.Policy{MaxAttempts: 1, StartToCloseMS: 1000} }, 1)
		b.start(1)
		b.finish(taskstate.Failed, 1)
		b.linger()
		b.step(Stored{Kind: JobArchive, Seq: b.seq})
		e := b.r.tasks[id(1)]
		if e == nil || e.State != taskstate.Dead || !e.left {
			t.Fatalf("%+v", e)
		}
		asked := redrove(b.seq + 1)
		asked.Events[0].Redrive.Letter = 0
		fx := b.step(asked)
		if len(fx.Answers) > 0 || len(fx.Searches) != 1 || !fx.Searches[0].Redrive {
			t.Fatalf("answers %+v, searches %+v", fx.Answers, fx.Searches)
		}
		f := &Found{Search: fx.Searches[0], Archived: deadLetterOf(), DeadLetter: letter}
		f.Ends[3] = 1
		if v := b.said(b.step(f)); v.Code != want {
			t.Errorf("with a letter %v: %+v, want %s", letter != nil, v, want)
		}
	}
}

// TestACancelBehindARedriveIsAboutTheNextStay: the redrive waits for its letter, while the task is still known as dead.
func TestACancelBehindARedriveIsAboutTheNextStay(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(func(t *taskstate.Task) { t.Policy = &taskstate.Policy{MaxAttempts: 1, StartToCloseMS: 1000} }, 1)
	b.start(1)
	b.finish(taskstate.Failed, 1)
	b.linger()
	b.step(Stored{Kind: JobArchive, Seq: b.seq})
	b.seq++
	redrive := b.step(redrove(b.seq))
	if fx := b.cancels("shop", 1); len(fx.Answers) > 0 {
		t.Fatalf("the cancel is answered before the redrive is decided: %s", answered(fx))
	}
	searches := b.foundLetter(redrive, 1).Searches
	searches = append(searches, b.step(Stored{Kind: JobPark, Seq: 1}).Searches...)
	for n := 0; n < len(searches); n++ {
		searches = append(searches, b.step(&Found{Search: searches[n], Coming: true}).Searches...)
	}
	if len(searches) == 0 {
		t.Fatal("the cancel waits, and the task is not looked for")
	}
	back := deadLetterOf()
	taskstate.Bring(back, &taskstate.Event{Seq: 4, Redrive: &taskstate.Redrive{Request: 9}}, b.now.MS)
	b.seq++
	b.prove(b.step(&Submits{Lane: 3, Seq: b.seq, At: b.now.MS, Bytes: 10, Tasks: []*Entry{{Task: *back}}}))
	if task := b.r.Get(id(1)); task.State != taskstate.Cancelled || task.Parkings != 1 {
		t.Errorf("stay %d is %s", task.Parkings, task.State)
	}
}

// TestADeadTaskThatMayBeBackIsWaitedFor: it was redriven and fired, and lies in a lane, unread; the timer has forgotten that. What is asked of it is decided
// when it is read, or when the lane ends without it.
func TestADeadTaskThatMayBeBackIsWaitedFor(t *testing.T) {
	cancel := func(seq uint64) *Events {
		in := redrove(seq)
		in.Events[0] = taskstate.Event{Kind: taskstate.Cancel, ID: id(1), Domain: "shop"}
		return in
	}
	both := redrove(44)
	both.Events = append(both.Events, cancel(44).Events...)
	for name, c := range map[string]struct {
		ask  *Events
		back bool
		want fault.Code
	}{
		"a redrive of a task that is back":    {redrove(44), true, ""},
		"a redrive of a task that stays dead": {redrove(44), false, fault.FailedPrecondition},
		"a cancel of a task that is back":     {cancel(44), true, ""},
		"a cancel of a task that stays dead":  {cancel(44), false, fault.FailedPrecondition},
		"a cancel from before the redrive":    {cancel(40), true, fault.FailedPrecondition},
		"a cancel behind a redrive":           {both, false, fault.FailedPrecondition},
	} {
		b := newBench(t, Config{})
		b.r.Admit(Queue{Lane: 3}, "", 30)
		b.seq = c.ask.Seq - 1
		fx := b.step(c.ask)
		f := &Found{Search: fx.Searches[0], Archived: deadLetterOf(), Unsure: true}
		f.Ends[3] = 50
		if fx := b.step(f); len(fx.Answers) != 0 {
			t.Errorf("%s: it has an answer before the lane is read", name)
			continue
		}
		lane := &Submits{Lane: 3, Seq: 50, At: scenarioStart, Bytes: 10}
		if c.back {
			back := deadLetterOf()
			taskstate.Bring(back, &taskstate.Event{Seq: 41, Redrive: &taskstate.Redrive{Request: 9}}, scenarioStart)
			lane.Tasks = []*Entry{{Task: *back}}
		}
		said := b.step(lane)
		if len(said.Answers) == 0 {
			said = b.step(Tick{})
			b.prove(said)
		}
		other := func(v Verdict) bool { return v.Code != c.want }
		if len(said.Answers) != 1 || slices.ContainsFunc(said.Answers[0].Verdicts, other) {
			t.Errorf("%s: %+v", name, said.Answers)
		}
	}
}

// A letter is left over, and its task has come back and lies unread: another redrive, of which the search is not sure, waits.
func TestALetterThatIsLeftBringsNothingBackTwice(t *testing.T) {
	b := newBench(t, Config{})
	b.r.Admit(Queue{Lane: 3}, "", 30)
	b.seq = 60
	again := redrove(61)
	again.Events[0].Redrive.Request = 10
	fx := b.step(again)
	f := &Found{Search: fx.Searches[0], Archived: deadLetterOf(), DeadLetter: deadLetterOf(), DeadLetterSeq: 5, Unsure: true}
	f.Ends[3] = 50
	if fx = b.step(f); len(fx.Park) > 0 {
		t.Errorf("stay %d is parked a second time", fx.Park[0].Parkings)
	}
}

// TestACancelWaitsUntilTheLetterIsDeleted: the redriven task waits for the job before its own. If it ended before it is stored, its letter would stay, of a
// task that is cancelled.
func TestACancelWaitsUntilTheLetterIsDeleted(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(func(t *taskstate.Task) { t.DueAt = scenarioStart + 60_000 }, 2)
	b.turn() // its write begins
	b.seq++
	b.foundLetter(b.step(redrove(b.seq)), 0)
	if fx := b.cancels("shop", 1); len(fx.Answers) > 0 {
		t.Errorf("the cancel is answered: %s", answered(fx))
	}
	if fx := b.step(Stored{Kind: JobPark, Seq: 1}); len(fx.Park) != 1 || fx.Park[0].ID != id(1) || len(fx.ParkLetters) != 1 {
		t.Fatalf("parks %v, and deletes %v", fx.Park, fx.ParkLetters)
	}
	if fx := b.step(Stored{Kind: JobPark, Seq: 2}); len(fx.Searches) != 1 {
		t.Errorf("searches %+v", fx.Searches)
	}
}
