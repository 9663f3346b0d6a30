package replica

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// diesLater has events that start and fail task 1, of a submit at 35, at 37 and 38, and so before its submit is read.
func diesLater(t *testing.T) *bench {
	b := newBench(t, Config{})
	b.r.lanes[3].Skip(30)
	fence := ids.Token{Position: ids.NewPosition(35, 3), Version: 1, Nonce: 5}
	b.step(&Events{Seq: 37, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Started, ID: id(1), Fence: fence}}})
	b.step(&Events{Seq: 38, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Failed, ID: id(1), Fence: fence, NonRetryable: true}}})
	b.seq = 40
	return b
}

// dead reads the submit at 35.
func (b *bench) dead() *Effects {
	b.Helper()
	e := stay(0, taskstate.None)
	e.Position = 0
	fx := b.step(&Submits{Lane: 3, Seq: 35, At: b.now.MS, Bytes: 10, Tasks: []*Entry{e}})
	if got := b.r.Get(id(1)); got == nil || got.State != taskstate.Dead {
		b.Fatalf("it is %+v", got)
	}
	return fx
}

// stored tells that the end of the task is in the archive, and its letter among the others.
func (b *bench) stored() *Effects {
	b.Helper()
	if fx := b.linger(); len(fx.Archive) != 1 {
		b.Fatalf("archives %v", fx.Archive)
	}
	return b.step(Stored{Kind: JobArchive, Seq: 1})
}

// TestWhatLiesBehindARedriveWaitsForIt, however long its letter takes to be stored: what was known of the task before does not count any more.
func TestWhatLiesBehindARedriveWaitsForIt(t *testing.T) {
	b := diesLater(t)
	fx := b.step(redrove(41))
	b.seq = 41
	b.change(1, taskstate.Update{Priority: 1})
	for len(fx.Searches) > 0 { // nothing is known of it
		fx = b.step(&Found{Search: fx.Searches[0], Ends: [ids.Lanes]uint64{3: 35}})
	}
	b.dead()
	if fx = b.step(Tick{}); len(fx.Answers) != 0 || len(b.r.early.of(id(1))) != 2 {
		t.Fatalf("answered %+v while the letter is stored", fx.Answers)
	}
	fx = b.foundLetter(b.stored(), 35)
	if v := b.said(fx); v.Code != "" || len(fx.Park) != 1 || len(b.r.early.of(id(1))) != 1 {
		t.Errorf("%+v, parks %v", v, fx.Park)
	}
	if fx = b.step(redrove(43)); len(fx.Answers) != 0 {
		t.Fatalf("a redrive while it is on its way: %+v", b.said(fx))
	}
	b.seq = 43
	if v := b.said(b.cancels("rival", 1)); v.Code != fault.NotFound {
		t.Errorf("another domain's cancel behind that: %+v", v)
	}
}

// TestWhatComesBehindARedriveThatIsLookedFor is not decided by that search.
func TestWhatComesBehindARedriveThatIsLookedFor(t *testing.T) {
	b := diesLater(t)
	b.dead()
	b.stored()
	fx := b.step(redrove(41))
	b.seq = 41
	if more := b.change(1, taskstate.Update{Priority: 1}); len(more.Searches)+len(more.Answers) != 0 {
		t.Fatalf("searches %v", more.Searches)
	}
	fx = b.step(&Found{Search: fx.Searches[0], Archived: stay(0, taskstate.Dead)})
	if len(fx.Answers) != 0 || len(fx.Searches) != 1 {
		t.Errorf("answers %+v, searches %v", fx.Answers, fx.Searches)
	}
}

// TestALetterOfAStayThatIsNotRead: it is promised, and the task comes back once it has died here, too.
func TestALetterOfAStayThatIsNotRead(t *testing.T) {
	b := diesLater(t)
	fx := b.step(redrove(41))
	b.seq = 41
	unread := stay(0, taskstate.None)
	unread.Position = ids.NewPosition(35, 3)
	found := &Found{Search: fx.Searches[0], Unread: unread, Letter: deadLetterOf(), LetterSeq: 5, Ends: [ids.Lanes]uint64{3: 35}}
	fx = b.step(found)
	if v := b.said(fx); v.Code != "" || len(fx.Park) != 0 {
		t.Fatalf("%+v, parks %v", v, fx.Park)
	}
	if fx = b.dead(); len(fx.Park)+len(fx.Answers) != 0 {
		t.Errorf("parks %v before its end is stored", fx.Park)
	}
	if fx = b.foundLetter(b.stored(), 35); len(fx.Park) != 1 || fx.Park[0].Parkings != 1 || len(fx.Answers) != 0 {
		t.Errorf("parks %v, answers %+v", fx.Park, fx.Answers)
	}
}

// TestALetterThatIsBeingStored: a search from before finds the end alone, and says nothing of the letter.
func TestALetterThatIsBeingStored(t *testing.T) {
	b := diesLater(t)
	found := &Found{Search: b.step(redrove(41)).Searches[0], Archived: stay(0, taskstate.Dead)}
	b.seq = 41
	b.dead()
	if fx := b.step(found); len(fx.Answers)+len(fx.Searches) != 0 {
		t.Errorf("answers %+v, searches %v", fx.Answers, fx.Searches)
	}
	if fx := b.foundLetter(b.stored(), 35); b.said(fx).Code != "" || len(fx.Park) != 1 {
		t.Errorf("parks %v", fx.Park)
	}
}

// TestARedriveOfATaskThatDiedHere, and whose next stay is not read: it hears at once that it was carried out.
func TestARedriveOfATaskThatDiedHere(t *testing.T) {
	b := diesLater(t)
	b.dead()
	b.stored()
	found := &Found{Search: b.step(redrove(41)).Searches[0], Letter: deadLetterOf(), LetterSeq: 5, Unread: stay(1, taskstate.None, 9)}
	found.Unread.Position = ids.NewPosition(60, 3)
	fx := b.step(found)
	if v := b.said(fx); v.Code != "" || len(fx.Park) != 0 || len(fx.Letters) != 1 {
		t.Errorf("%+v, parks %v, letters %v are deleted", v, fx.Park, fx.Letters)
	}
}

// TestARepeatOfARedrive, of a letter of the stay that it made: the end of that has expired in the archive.
func TestARepeatOfARedrive(t *testing.T) {
	b := newBench(t, Config{})
	b.seq = 40
	b.r.lanes[3].Skip(30)
	again := redrove(41)
	again.Events[0].Redrive.Letter, again.Events[0].Redrive.Parkings = 36, 1
	fx := b.step(&Found{Search: b.step(again).Searches[0], Letter: stay(1, taskstate.Dead, 9), LetterSeq: 36})
	if v := b.said(fx); v.Code != "" || len(fx.Park)+len(fx.Letters) != 0 {
		t.Errorf("%+v, parks %v, letters %v are deleted", v, fx.Park, fx.Letters)
	}
}

// TestARedriveThatIsReplayedOfATaskThatDied behind the checkpoint comes back once the lanes are read.
func TestARedriveThatIsReplayedOfATaskThatDied(t *testing.T) {
	b := &bench{T: t, r: New(newBench(t, Config{}).r.cfg, Checkpoint{}, time.Hour), now: Now{MS: scenarioStart}}
	b.submit(nil, 1)
	b.dies()
	b.step(redrove(41))
	b.foundLetter(b.step(Recovered{Archived: Ends{id(1): 1}, ArchiveSeq: 3}), 1)
	fx := b.step(Tick{})
	if len(fx.Park) != 1 || fx.Park[0].Parkings != 1 || len(fx.ParkLetters) != 1 {
		t.Errorf("parks %v with letters %v, searches %v", fx.Park, fx.ParkLetters, fx.Searches)
	}
}

// TestWhatWaitsBesideARedrive goes on waiting when that is carried out: an outcome that names a place which is not read.
func TestWhatWaitsBesideARedrive(t *testing.T) {
	b := newBench(t, Config{})
	b.r.lanes[3].Skip(30)
	b.seq = 39
	b.event(taskstate.Succeeded, 1, ids.Token{Position: ids.NewPosition(35, 3), Version: 1})
	fx := b.foundLetter(b.step(redrove(41)), 34)
	if len(fx.Park) != 1 || len(b.r.early.of(id(1))) != 1 {
		t.Errorf("parks %v, %d wait", fx.Park, len(b.r.early.of(id(1))))
	}
}

// TestACommandOfAStayThatIsHeld waits for that, though a later stay is known; another domain's does not.
func TestACommandOfAStayThatIsHeld(t *testing.T) {
	b := newBench(t, Config{})
	b.seq = 1
	b.submit(func(t *taskstate.Task) { t.Parkings, t.Position = 1, ids.NewPosition(1, 2) }, 1)
	later := stay(2, taskstate.None, 7)
	later.Before, later.Position = ids.NewPosition(2, 3), ids.NewPosition(50, 3)
	b.seq = 4
	fx := b.ofKey(taskstate.Skipped, 1, 77)
	if fx = b.step(&Found{Search: fx.Searches[0], Unread: later}); len(fx.Answers) != 0 {
		t.Errorf("it gets %+v", b.said(fx))
	}
	b.seq = 20
	fx = b.cancels("rival", 1)
	later.Before = ids.NewPosition(40, 3)
	if v := b.said(b.step(&Found{Search: fx.Searches[0], Unread: later})); v.Code != fault.NotFound {
		t.Errorf("another domain's gets %+v", v)
	}
}
