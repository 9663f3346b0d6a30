package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// forgets ends task 1, has it archived and forgets it, but for that it is over.
func (b *bench) forgets() {
	b.Helper()
	b.submit(nil, 1)
	b.start(1)
	b.finish(taskstate.Succeeded, 1)
	b.archives()
	for range 3 {
		b.now.MS += goneForMS
		b.step(Tick{})
	}
	if b.r.Get(id(1)) != nil {
		b.Fatal("it is not forgotten")
	}
}

// archives stores all that has ended.
func (b *bench) archives() {
	b.Helper()
	for b.linger(); !b.r.archive.idle(); b.linger() {
		b.step(Stored{Kind: JobArchive, Seq: b.r.archive.last + 1})
	}
}

// parks has task 1 wait in the timer store, and tells that it is there.
func (b *bench) parks() {
	b.Helper()
	fx := b.submit(func(t *taskstate.Task) { t.DueAt = b.now.MS + 3_600_000 }, 1)
	if len(fx.Park) != 1 {
		b.Fatalf("parks %v", fx.Park)
	}
	b.step(Stored{Kind: JobPark, Seq: 1})
}

// TestWhatWasTakenOutForNoCommand that waits any more: a cancel was decided, and what it was about is cancelled; after an update the task goes back, and so
// does one that was redriven since.
func TestWhatWasTakenOutForNoCommand(t *testing.T) {
	for name, c := range map[string]struct {
		asked Search
		taken *Entry
		want  taskstate.State
	}{
		"a cancel":             {Search{Seq: 50, Reason: "no more"}, waiting(1, 1), taskstate.Cancelled},
		"an update":            {Search{Seq: 50, Update: true, Take: true}, waiting(1, 1), taskstate.Waiting},
		"before a redrive":     {Search{Seq: 34}, stay(1, taskstate.Waiting, 9), taskstate.Waiting},
		"in its message":       {Search{Seq: 35}, stay(1, taskstate.Waiting, 9), taskstate.Waiting},
		"right behind that":    {Search{Seq: 36}, stay(1, taskstate.Waiting, 9), taskstate.Cancelled},
		"the copy is not read": {Search{Seq: 50}, waiting(1, 1), taskstate.Cancelled},
	} {
		b := newBench(t, Config{})
		b.seq = 60
		b.r.lanes[3].Skip(30)
		c.asked.ID, c.asked.Domain, c.asked.Cancel = id(1), "shop", true
		f := &Found{Search: c.asked, Taken: c.taken}
		if name == "the copy is not read" { // of the submit, in another lane
			f.Unread = stay(0, taskstate.None)
			f.Unread.Position = ids.NewPosition(40, 3)
		}
		fx := b.step(f)
		got := b.r.Get(id(1))
		if got == nil || got.State != c.want || got.CancelReason != c.asked.Reason || (len(fx.Park) == 1) != (c.want == taskstate.Waiting) {
			t.Errorf("%s: %+v, parks %v", name, got, fx.Park)
		}
		if len(fx.Park) == 1 && fx.Park[0].Parkings != 2 {
			t.Errorf("%s: it goes back as stay %d", name, fx.Park[0].Parkings)
		}
	}
}

// TestWhatWasTakenOutAndHasGoneOn is left alone: it ended, or another owner has archived it, or its next stay is known. What waits for it is looked for again.
func TestWhatWasTakenOutAndHasGoneOn(t *testing.T) {
	b := newBench(t, Config{})
	b.forgets()
	fx := b.cancels("shop", 1)
	fx = b.step(&Found{Search: fx.Searches[0], Taken: waiting(1, 1)})
	if len(fx.Searches) != 1 || len(fx.Answers)+len(fx.Park) != 0 || b.r.Get(id(1)) != nil {
		t.Errorf("forgotten: searches %v, parks %v", fx.Searches, fx.Park)
	}

	b = newBench(t, Config{})
	b.submit(nil, 1)
	b.start(1)
	b.finish(taskstate.Succeeded, 1)
	b.archives()
	b.step(&Found{Search: Search{ID: id(1), Domain: "shop", Cancel: true, Seq: 50}, Taken: waiting(1, 1)})
	if got := b.r.Get(id(1)); got.State != taskstate.Completed {
		t.Errorf("ended: %s", got.State)
	}

	b = newBench(t, Config{})
	b.parks()
	b.r.tasks[id(1)].Parkings = 2
	fx = b.change(1, taskstate.Update{Priority: 1})
	fx = b.step(&Found{Search: fx.Searches[0], Taken: waiting(1, 1)})
	if len(fx.Searches) != 1 || len(fx.Answers)+len(fx.Park) != 0 || len(b.r.early.of(id(1))) != 1 {
		t.Errorf("in a later stay: searches %v, parks %v", fx.Searches, fx.Park)
	}

	b = newBench(t, Config{})
	b.seq = 40
	fx = b.cancels("shop", 1)
	fx = b.step(&Found{Search: fx.Searches[0], Taken: waiting(1, 1), Archived: stay(1, taskstate.Completed)})
	if v := b.said(fx); v.Code != fault.FailedPrecondition || b.r.Get(id(1)) != nil {
		t.Errorf("archived: %+v, %+v", v, b.r.Get(id(1)))
	}
}

// TestWhatWaitsThereAndHasGoneOn is not taken out for an update: the timer store has it for a moment longer.
func TestWhatWaitsThereAndHasGoneOn(t *testing.T) {
	for name, before := range map[string]func(*bench, *Found){
		"it is over": func(b *bench, _ *Found) { b.forgets() },
		"another owner has archived it": func(b *bench, _ *Found) {
			b.step(Stored{Kind: JobArchive, Others: []Stay{{ID: id(1), Parkings: 1}}, Ends: upTo(99)})
		},
		"the archive has it": func(_ *bench, f *Found) { f.Archived = stay(1, taskstate.Completed) },
	} {
		b := newBench(t, Config{})
		b.r.lanes[3].Skip(5)
		b.seq = 9
		found := new(Found)
		before(b, found)
		found.Search, found.Waiting = b.takes(b.change(1, taskstate.Update{Priority: 1}), false).Search, waiting(1, 1)
		for _, s := range b.step(found).Searches {
			if s.Take {
				t.Errorf("%s, and it is taken out", name)
			}
		}
	}
}

// TestATaskOnItsWayIntoTheTimerStore is neither changed nor taken out there before it is known to have arrived. Then it is looked for again.
func TestATaskOnItsWayIntoTheTimerStore(t *testing.T) {
	for name, find := range map[string]func(*Found){
		"it waits there": func(f *Found) { f.Waiting = waiting(1, 5) }, "it was taken out": func(f *Found) { f.Taken = waiting(1, 5) },
	} {
		b := newBench(t, Config{})
		b.seq = 9
		fx := b.change(1, taskstate.Update{Priority: 1})
		found := &Found{Search: fx.Searches[0]}
		b.seq = 4
		if fx = b.submit(func(t *taskstate.Task) { t.DueAt = b.now.MS + 3_600_000 }, 1); len(fx.Park) != 1 {
			t.Fatalf("parks %v", fx.Park)
		}
		b.seq = 10
		find(found)
		if fx = b.step(found); len(fx.Searches)+len(fx.Answers)+len(fx.Park) != 0 {
			t.Errorf("%s, and is on its way: searches %v, parks %v", name, fx.Searches, fx.Park)
		}
		b.takes(b.step(Stored{Kind: JobPark, Seq: 1}), false)
	}
}

// TestARedriveOfATaskThatIsTakenOut is refused; the update that it was taken out for is carried out, but not one from before it was redriven.
func TestARedriveOfATaskThatIsTakenOut(t *testing.T) {
	b := newBench(t, Config{})
	b.seq = 40
	b.r.lanes[3].Skip(30)
	looked := b.takes(b.change(1, taskstate.Update{Priority: 1}), false)
	looked.Waiting = stay(1, taskstate.Waiting, 9)
	taken := b.takes(b.step(looked), true)
	b.seq = 32
	b.change(1, taskstate.Update{Priority: 5})
	again := redrove(42)
	again.Events[0].Redrive.Request = 7
	b.step(again)
	taken.Taken = stay(1, taskstate.Waiting, 9)
	fx := b.step(taken)
	verdicts := make(map[uint64]fault.Code)
	for _, a := range fx.Answers {
		verdicts[a.RequestID] = a.Verdicts[0].Code
	}
	if len(verdicts) != 3 || verdicts[41] != "" || verdicts[42] != fault.FailedPrecondition || verdicts[33] != fault.Unknown {
		t.Errorf("verdicts %v", verdicts)
	}
	if len(fx.Park) != 1 || fx.Park[0].Priority != 1 || fx.Park[0].Revision() != 2 || len(b.r.early.byID) != 0 {
		t.Errorf("parks %+v", fx.Park)
	}
}

// TestOneSearchAtATime: a task that is being taken out is not asked for a second time, nor by the callers of another domain.
func TestOneSearchAtATime(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 2)
	b.seq = 40
	looked := b.takes(b.change(1, taskstate.Update{Priority: 1}), false)
	if fx := b.cancels("rival", 1); len(fx.Searches) != 0 {
		t.Errorf("searches %v", fx.Searches)
	}
	looked.Waiting = waiting(1, 1)
	fx := new(Effects)
	b.r.Step(looked, b.now, fx)
	b.r.Step(&Events{Seq: 50, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Cancel, ID: id(1), Domain: "rival"}}}, b.now, fx)
	b.r.Flush(b.now, fx)
	taken := b.takes(fx, true)
	b.seq = 50
	if fx := b.change(1, taskstate.Update{Priority: 2}); len(fx.Searches) != 0 {
		t.Errorf("while it is taken out: searches %v", fx.Searches)
	}
	taken.Taken = waiting(1, 1)
	b.step(taken)
}

// TestWhatIsLookedForAfterAStayThatIsNotRead: it waits for that stay only if it was asked for before its answer came. The others, and those of another domain,
// are looked for once more.
func TestWhatIsLookedForAfterAStayThatIsNotRead(t *testing.T) {
	for name, c := range map[string]struct {
		second func(*bench)
		domain string
	}{
		"a later one":      {func(b *bench) { b.change(1, taskstate.Update{Priority: 2}) }, "shop"},
		"another domain's": {func(b *bench) { b.cancels("rival", 1) }, "rival"},
	} {
		b := newBench(t, Config{})
		b.seq = 9
		looked := b.takes(b.change(1, taskstate.Update{Priority: 1}), false)
		c.second(b)
		looked.Waiting, looked.Ends[3] = waiting(1, 5), 5
		if fx := b.step(looked); len(fx.Searches) != 1 || fx.Searches[0].Domain != c.domain || fx.Searches[0].Take {
			t.Errorf("%s: searches %+v", name, fx.Searches)
		}
	}
}

// TestAStayThatLagsIsReadForAnUpdate: the task waits in the timer store, and what has parked it lies in a backlog, where it could lie for days.
func TestAStayThatLagsIsReadForAnUpdate(t *testing.T) {
	b := lagging(t)
	b.seq = 9
	b.step(&Events{Seq: 10, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Changed, ID: id(20), Domain: "flood", Update: &taskstate.Update{Priority: 1, Since: isNew}}}})
	away := waiting(20, 0)
	away.Domain, away.Position = "flood", ids.NewPosition(3, lagLane)
	b.step(&Found{Search: Search{ID: id(20), Domain: "flood", Cancel: true, Update: true}, Waiting: away})
	if !b.r.QueueRoom(Queue{lagLane, "flood"}, 3) {
		t.Error("it is not read")
	}
}

// TestACommandThatIsDecidedAtOnce asks no other store: the timer store would give up a task for no one.
func TestACommandThatIsDecidedAtOnce(t *testing.T) {
	b := newBench(t, Config{})
	fx := new(Effects)
	b.r.Step(&Events{Seq: 9, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Cancel, ID: id(1), Domain: "shop"}}}, b.now, fx)
	b.r.Step(&Submits{Lane: 3, Seq: 2, At: b.now.MS, Tasks: []*Entry{deadLetterOf()}}, b.now, fx)
	b.r.Flush(b.now, fx)
	if got := b.r.Get(id(1)); got.State != taskstate.Cancelled || len(fx.Searches) != 0 {
		t.Errorf("it is %s, searches %v", got.State, fx.Searches)
	}
}

// TestASearchSaysWhatItIsFor: the last of the commands that it asks for, not what came beside it or has been looked for before.
func TestASearchSaysWhatItIsFor(t *testing.T) {
	b := newBench(t, Config{})
	b.seq = 9
	fx := b.change(1, taskstate.Update{Priority: 1})
	b.step(&Found{Search: fx.Searches[0], Ends: [ids.Lanes]uint64{3: 99}}) // it is nowhere so far
	b.seq++
	fx = b.step(&Events{Seq: b.seq, At: b.now.MS, Events: []taskstate.Event{
		{Kind: taskstate.Cancel, ID: id(1), Domain: "shop", Message: "no more"},
		{Kind: taskstate.Started, ID: id(1), Fence: ids.Token{Position: ids.NewPosition(5, 3), Version: 1}, Message: "beside"},
	}})
	if len(fx.Searches) != 1 || fx.Searches[0].Update || fx.Searches[0].Seq != b.seq || fx.Searches[0].Reason != "no more" {
		t.Errorf("searches %+v", fx.Searches)
	}
}

// TestACancelOfADeadTask is refused at once; one that came after its search began is looked for again, since the task may have been redriven.
func TestACancelOfADeadTask(t *testing.T) {
	b := newBench(t, Config{})
	b.seq = 40
	found := &Found{Search: b.cancels("shop", 1).Searches[0], Archived: stay(0, taskstate.Dead)}
	if v := b.said(b.step(found)); v.Code != fault.FailedPrecondition {
		t.Errorf("%+v", v)
	}
	b = newBench(t, Config{})
	b.seq = 40
	found = &Found{Search: b.cancels("shop", 1).Searches[0], Archived: stay(0, taskstate.Dead)}
	b.cancels("shop", 1)
	fx := b.step(found)
	if len(fx.Answers) != 0 || len(fx.Searches) != 1 {
		t.Fatalf("answers %+v, searches %+v", fx.Answers, fx.Searches)
	}
	found = &Found{Search: fx.Searches[0], Archived: stay(0, taskstate.Dead)}
	if fx = b.step(found); len(fx.Answers) != 2 {
		t.Errorf("%d answers", len(fx.Answers))
	}
}

// TestACommandWhoseTaskTheArchiveHas, though it was parked here: another owner has ended it. It is over once all that was there is read.
func TestACommandWhoseTaskTheArchiveHas(t *testing.T) {
	b := newBench(t, Config{})
	b.parks()
	found := &Found{Search: b.cancels("shop", 1).Searches[0], Archived: stay(1, taskstate.Cancelled)}
	b.said(b.step(found))
	if fx := b.step(Tick{}); len(fx.Searches) != 0 || len(b.r.early.byID) != 0 {
		t.Errorf("searches %v, %d wait", fx.Searches, len(b.r.early.byID))
	}
}

// TestAnOutcomeOfAStayThatCameAndWentUnseen: a takeover has read the one before, which was not known to be stored, and no store has the task.
func TestAnOutcomeOfAStayThatCameAndWentUnseen(t *testing.T) {
	b := newBench(t, Config{})
	b.parks()
	b.r.lanes[3].Skip(20)
	b.seq = 30
	fx := b.event(taskstate.Succeeded, 1, ids.Token{Position: ids.NewPosition(20, 3), Version: 1})
	if len(fx.Searches) != 1 {
		t.Fatalf("searches %v", fx.Searches)
	}
	if v := b.said(b.step(&Found{Search: fx.Searches[0]})); v.Code != fault.Stale {
		t.Errorf("%+v", v)
	}
}

// TestWhatMayBeginAStayIsNotLookedFor: its caller gets nothing, wherever the task is.
func TestWhatMayBeginAStayIsNotLookedFor(t *testing.T) {
	for _, kind := range []taskstate.Kind{taskstate.Started, taskstate.Lapse, taskstate.Reject} {
		b := newBench(t, Config{})
		b.submit(nil, 2)
		fx := b.event(kind, 1, ids.Token{Position: ids.NewPosition(1, 3), Version: 1})
		if v := b.said(fx); v.Code != fault.Stale || len(fx.Searches) != 0 {
			t.Errorf("%s: %+v, searches %v", kind, v, fx.Searches)
		}
	}
}

// TestACopyThatIsDroppedHoldsUpNothing: a stay waits for it, and that one has another before it.
func TestACopyThatIsDroppedHoldsUpNothing(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	held := ids.NewPosition(9, 2)
	b.submit(func(t *taskstate.Task) { t.Parkings, t.Position = 2, held }, 1)
	if len(b.r.held) != 1 {
		t.Fatal("it is not held")
	}
	other := deadLetterOf()
	other.Parkings, other.State, other.Position = 1, taskstate.None, ids.NewPosition(1, ids.LaneLater)
	b.r.lanes[ids.LaneLater].Skip(1)
	b.step(&Submits{Lane: 2, Seq: 9, At: b.now.MS, Tasks: []*Entry{other}})
	if len(b.r.held) != 0 || b.r.lanes[3].Active() != 1 {
		t.Errorf("%d are held, %d active", len(b.r.held), b.r.lanes[3].Active())
	}
}
