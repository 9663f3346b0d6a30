package replica

import (
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// archives stores all that has ended.
func (b *bench) archives() {
	b.Helper()
	for b.linger(); !b.r.archive.idle(); b.linger() {
		b.step(Stored{Kind: JobArchive, Seq: b.r.archive.last + 1})
	}
}

// TestAPageThatIsNotNeededIsForgotten: it takes no place of others, and the log may delete it once no takeover reads of it.
func TestAPageThatIsNotNeededIsForgotten(t *testing.T) {
	b, page := shelved(t, nil)
	may := func(what string, pages int, shelf uint64, dead ...uint64) {
		t.Helper()
		if cp := b.r.Checkpoint(); len(b.r.pages) != pages || cp.shelf != shelf || !slices.Equal(cp.dead, dead) {
			t.Errorf("%s: %d pages, up to %d and %v of %d are deleted, the floor is %d", what, len(b.r.pages), cp.shelf, cp.dead, page.Seq, cp.Floor)
		}
	}
	b.cancels("shop", 4)
	b.step(page)
	may("needed", 1, 0)
	b.cancels("shop", 3)
	b.archives()
	may("not needed, and the first task holds the floor", 0, 0)
	b.finish(taskstate.Succeeded, 1)
	b.start(2)
	b.finish(taskstate.Succeeded, 2)
	b.archives()
	may("the floor is behind it", 0, page.Seq, page.Seq)
}

// TestAPageThatCameBackStays, though nothing has happened to its tasks: it is read since they are needed soon. What is about others does not wait for it.
func TestAPageThatCameBackStays(t *testing.T) {
	b := smallShelf(t, 4, 2, 8)
	page := b.written(b.keyed("a", nil, 1, 2, 3, 4, 5, 9))
	for n := 1; n < 4; n++ {
		b.start(n)
		if fx := b.finish(taskstate.Succeeded, n); len(fx.Pages) > 0 {
			break
		}
	}
	b.step(page.again())
	b.step(page.again()) // a read that was slow
	b.archives()
	b.away("a moment later", 0)
	if fx := b.cancels("shop", 7); len(fx.Searches) != 1 {
		t.Errorf("searches %v", fx.Searches)
	}
	late := &Entry{Task: cloneTask(b.r.Get(id(5)))}
	late.ID, late.Parkings, late.Extra = id(8), 1, &taskstate.Extra{Redriven: &taskstate.Redriven{Count: 1, Seq: 99}}
	b.seq++
	fx := b.step(&Submits{Lane: 3, Domain: "shop", Seq: b.seq, At: b.now.MS, Bytes: 10, Tasks: []*Entry{late}})
	b.equal("a later stay", triggered(fx), []int{8})
}

// TestWhatIsNotOnAPageDoesNotWaitForIt: another domain's, and what lies outside of its ids.
func TestWhatIsNotOnAPageDoesNotWaitForIt(t *testing.T) {
	for name, c := range map[string]struct {
		domain string
		task   int
	}{"another domain's": {"rival", 4}, "before": {"shop", 0}, "behind": {"shop", 20}} {
		b, _ := shelved(t, nil)
		if fx := b.cancels(c.domain, c.task); len(fx.Pages) != 0 || len(fx.Searches) != 1 {
			t.Errorf("%s: pages %v, searches %d", name, fx.Pages, len(fx.Searches))
		}
	}
}

// TestATaskOfAPageIsFoundInAnyOrder of their ids.
func TestATaskOfAPageIsFoundInAnyOrder(t *testing.T) {
	for _, n := range []int{9, 5, 4} {
		b := smallShelf(t, 1, 3, 4)
		b.written(b.keyed("a", nil, 1, 5, 9, 4))
		if fx := b.cancels("shop", n); len(fx.Pages) != 1 {
			t.Errorf("task %d is not looked for on the page", n)
		}
	}
}

// TestAPageLapsesWithTheFirstOfItsTasks.
func TestAPageLapsesWithTheFirstOfItsTasks(t *testing.T) {
	for _, within := range [][2]int64{{3000, 5000}, {5000, 3000}, {3000, 0}, {0, 3000}, {3000, 3000}} {
		b, _ := shelved(t, func(t *taskstate.Task) {
			x := *t.Extra
			switch t.ID {
			case id(3):
				x.Expiry = taskstate.Expiry{StartWithinMS: within[0]}
			case id(4):
				x.Expiry = taskstate.Expiry{StartWithinMS: within[1]}
			}
			t.Extra = &x
		})
		b.now.MS += 2999
		if fx := b.step(Tick{}); len(fx.Pages) != 0 {
			t.Errorf("%v: read early", within)
		}
		b.now.MS++
		if fx := b.step(Tick{}); len(fx.Pages) != 1 {
			t.Errorf("%v: not read", within)
		}
	}
}

// TestAPageWaitsForTheArchive: what has ended of its key must be known to be there before its tasks leave. What happens to them meanwhile, or that one has
// its turn, is not on the page: then they stay.
func TestAPageWaitsForTheArchive(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*bench)
		away      int
	}{
		"nothing happens": {func(*bench) {}, 2},
		"an update":       {func(b *bench) { b.change(4, taskstate.Update{Priority: 1}) }, 0},
		"a turn": {func(b *bench) {
			b.start(2)
			b.finish(taskstate.Succeeded, 2)
		}, 0},
	} {
		b := smallShelf(t, 2, 2, 8)
		fx := b.keyed("a", nil, 1, 2, 3, 4)
		b.start(1)
		page := b.rewrite(fx)
		b.step(Stored{Kind: JobShelve})
		b.finish(taskstate.Succeeded, 1)
		b.saidAgain(page)
		b.away(name, 0)
		c.meanwhile(b)
		b.linger()
		b.step(Stored{Kind: JobArchive, Seq: 1})
		b.step(Tick{})
		b.away(name+", archived", c.away)
	}
}

// TestAPageLeavesBesideOneThatCameBack of another key.
func TestAPageLeavesBesideOneThatCameBack(t *testing.T) {
	for range 8 { // which task of the two pages is looked at first depends on a map
		b, page := shelved(t, nil)
		b.cancels("shop", 3)
		b.step(page)
		b.linger()
		b.step(Stored{Kind: JobArchive, Seq: 1})
		b.away("the first page", 0)
		b.r.shelving = false // of the first line nothing more
		b.written(b.keyed("b", nil, 11, 12, 13, 14))
		b.away("the second page", 2)
	}
}

// TestAnEndedTaskInFrontOfALine is forgotten where what lay before it goes to the shelf.
func TestAnEndedTaskInFrontOfALine(t *testing.T) {
	b := smallShelf(t, 1, 2, 4)
	b.written(b.keyed("a", nil, 1, 2, 3))
	b.r.shelveAt = b.now.MS + 1<<40
	b.keyed("a", nil, 6, 7, 8)
	b.cancels("shop", 8)
	b.start(1)
	b.finish(taskstate.Succeeded, 1)
	b.archives()
	b.r.shelveAt = 0
	b.written(b.step(Tick{}))
	b.away("both pages", 4)
}

// TestACopyOfATaskOnTheShelf is known, in whatever lane it is read.
func TestACopyOfATaskOnTheShelf(t *testing.T) {
	b, _ := shelved(t, nil)
	if fx := b.submit(nil, 4); len(fx.Triggers) != 0 || b.r.Get(id(4)) != nil {
		t.Error("it is there twice")
	}
}

// TestWhatWaitedForAPageIsReadAgain in a takeover, which has the task as the page says.
func TestWhatWaitedForAPageIsReadAgain(t *testing.T) {
	b, page := shelved(t, nil)
	b.change(4, taskstate.Update{Priority: 1})
	update := b.seq
	b.finish(taskstate.Succeeded, 1)
	b.start(2)
	b.finish(taskstate.Succeeded, 2)
	b.step(page.again())
	b.archives()
	cp := b.r.Checkpoint()
	if b.r.Get(id(4)).Revision() != 2 || cp.Floor >= update || cp.Floor < update-1 {
		t.Errorf("the update at %d has made it revision %d, the floor is %d", update, b.r.Get(id(4)).Revision(), cp.Floor)
	}
}

// TestATakeoverNeedsThePageThatCameBack, and so does one after it: the floor does not fall behind what the log has forgotten.
func TestATakeoverNeedsThePageThatCameBack(t *testing.T) {
	b, page := shelved(t, nil)
	b.finish(taskstate.Succeeded, 1)
	b.start(2)
	b.finish(taskstate.Succeeded, 2)
	b.step(page.again())
	b.archives()
	cp := b.r.Checkpoint()
	if len(cp.Pages) != 1 || cp.Pages[0].Away || cp.Floor <= page.Tasks[0].AsOf {
		t.Fatalf("%+v", cp)
	}
	next := b.takeover(b.r.cfg, cp, page)
	if again := next.r.Checkpoint(); len(again.Pages) != 1 || again.Floor < cp.Floor || next.r.Get(id(4)) == nil {
		t.Errorf("%+v after %+v", again, cp)
	}
}

// TestATakeoverReadsTheSubmitsOfAPageAgain: its tasks are on that, however many stays have ended since.
func TestATakeoverReadsTheSubmitsOfAPageAgain(t *testing.T) {
	b, page := shelved(t, nil)
	cp := b.r.Checkpoint()
	next := &bench{T: t, r: New(b.r.cfg, cp, b.now.Mono), now: b.now}
	next.step(page)
	next.r.past = pastStays{}
	next.keyed("a", nil, 1, 2, 3, 4)
	next.away("all submits are read again", 2)
	if next.r.Get(id(2)) == nil || next.r.Get(id(3)) != nil || next.r.Get(id(4)) != nil {
		t.Errorf("%d tasks are in memory", next.r.Len())
	}
}

// TestATakeoverReadsThePagesThatItWants, and neither asks for them nor writes one before it is over.
func TestATakeoverReadsThePagesThatItWants(t *testing.T) {
	b, page := shelved(t, nil)
	cp := b.r.Checkpoint()
	next := &bench{T: t, r: New(b.r.cfg, cp, b.now.Mono), now: b.now, seq: b.seq}
	next.step(page)
	if wanted := next.r.WantedPages(); len(wanted) != 0 {
		t.Errorf("before the cancel it wants %v", wanted)
	}
	fx := next.cancels("shop", 4)
	if wanted := next.r.WantedPages(); len(fx.Pages) != 0 || !slices.Equal(wanted, []uint64{page.Seq}) {
		t.Errorf("it asks for %v and wants %v", fx.Pages, wanted)
	}
	if fx := next.keyed("b", nil, 11, 12, 13, 14); len(fx.Shelve) != 0 {
		t.Errorf("%d are shelved", len(fx.Shelve))
	}
}

// TestAnOwnerThatLeavesWritesNoPage.
func TestAnOwnerThatLeavesWritesNoPage(t *testing.T) {
	b := smallShelf(t, 2, 2, 8)
	b.step(Draining{})
	if fx := b.keyed("a", nil, 1, 2, 3, 4); len(fx.Shelve) != 0 {
		t.Errorf("%d are shelved", len(fx.Shelve))
	}
}

// TestAPageHasNoMoreThanItHolds: of a long run the end, and of fat tasks one.
func TestAPageHasNoMoreThanItHolds(t *testing.T) {
	for size, want := range map[int][]ids.TaskID{10: {id(4), id(5)}, pageBytesMax + 1: {id(5)}} {
		b := smallShelf(t, 1, 2, 8)
		fx := b.keyed("a", func(t *taskstate.Task) { t.Payload.Data = make([]byte, size) }, 1, 2, 3, 4, 5)
		var got []ids.TaskID
		for _, p := range fx.Shelve {
			got = append(got, p.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %d bytes each: %v, want %v", size, got, want)
		}
	}
}

// TestAPageIsOnOneSideOfAnother: none has tasks in front of one that is away and tasks behind it, though all of them wait.
func TestAPageIsOnOneSideOfAnother(t *testing.T) {
	b := smallShelf(t, 3, 4, 8)
	b.written(b.keyed("a", nil, 1, 2, 3, 4, 5))
	b.now.MS += shelveEveryMS
	fx := b.keyed("a", nil, 6, 7)
	if len(fx.Shelve) != 2 || fx.Shelve[0].ID != id(6) {
		t.Fatalf("%d are shelved", len(fx.Shelve))
	}
	b.written(fx)
	b.away("both pages", 4)
}

// TestATaskBehindAPageWaitsForIt: it is not its turn while those of the page, which come before it, are away.
func TestATaskBehindAPageWaitsForIt(t *testing.T) {
	b := smallShelf(t, 1, 2, 4)
	page := b.written(b.keyed("a", nil, 1, 2, 3))
	b.r.shelveAt = b.now.MS + 1<<40
	b.keyed("a", nil, 6)
	b.start(1)
	b.equal("while the page is away", triggered(b.finish(taskstate.Succeeded, 1)), nil)
	b.equal("when it is here", triggered(b.step(page)), []int{2})
}

// TestARecordOfATaskThatHasEnded between those of a page, and comes late: what the page does not have is in the archive. The page stays away.
func TestARecordOfATaskThatHasEnded(t *testing.T) {
	for _, n := range []int{5, 9} { // an id between those of the page, and one behind them
		recordOfAnEnded(t, n)
	}
}

func recordOfAnEnded(t *testing.T, n int) {
	b := smallShelf(t, 1, 2, 1000)
	b.keyed("a", nil, 1, 2, 3, 4, n, 6, 7)
	state := cloneTask(b.r.Get(id(n)))
	b.cancels("shop", 2, 3, n, 6)
	b.archives()
	b.r.cfg.WindowTasks, b.r.shelveAt = 4, 0
	page := b.written(b.step(Tick{}))
	b.away("the page of 4 and 7", 2)
	for range 2 { // they are forgotten
		b.now.MS += goneForMS
		b.step(Tick{})
	}
	b.carries(&state, state.Position, 0)
	if len(b.r.early.of(id(n))) != 1 {
		t.Fatal("the record does not wait")
	}
	b.step(page)
	b.away("after the record", 2)
	if len(b.r.early.of(id(n))) != 0 || b.r.Get(id(n)) != nil {
		t.Errorf("%d records wait, the task is %v", len(b.r.early.of(id(n))), b.r.Get(id(n)))
	}
}

// TestATakeoverComparesPagesWithItsCheckpoint: one that has what did not go away halts it, one that is not named is nothing to it.
func TestATakeoverComparesPagesWithItsCheckpoint(t *testing.T) {
	b, page := shelved(t, nil)
	cp := b.r.Checkpoint()
	next := &bench{T: t, r: New(b.r.cfg, cp, b.now.Mono), now: b.now, seq: b.seq}
	other := page.again()
	other.Seq++
	next.step(other)
	if next.r.Len() != 0 || len(next.r.pages) != 0 {
		t.Errorf("%d tasks are in memory, of %d pages", next.r.Len(), len(next.r.pages))
	}
	changed := page.again()
	changed.Tasks[1].Entry.TakeTurn()
	var fx Effects
	if next.r.Step(changed, next.now, &fx); fx.Halt == nil {
		t.Error("it goes on")
	}
}

// TestPagesOfADomain: those with the newest tasks first, and which of them may have a task.
func TestPagesOfADomain(t *testing.T) {
	b := newBench(t, Config{})
	old := b.written(b.parkedKey("shop", "a", 1, 2))
	rival := b.written(b.parkedKey("rival", "a", 11, 2))
	late := b.written(b.parkedKey("shop", "b", 21, 2))
	for name, c := range map[string]struct {
		domain, key string
		want        []uint64
	}{
		"all": {"", "", []uint64{late.Seq, rival.Seq, old.Seq}}, "a domain": {"shop", "", []uint64{late.Seq, old.Seq}},
		"a key": {"shop", "a", []uint64{old.Seq}}, "no key of it": {"rival", "b", nil},
	} {
		var got []uint64
		for _, p := range b.r.ShelfPages(c.domain, c.key) {
			got = append(got, p.Seq)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: pages %v, want %v", name, got, c.want)
		}
	}
	page := b.r.ShelfPages("rival", "")[0]
	for n, want := range map[int]bool{11: false, 12: true, 13: true, 14: false} { // the first one parks its key, and stays
		if got := page.MayHave(wideID(n)); got != want {
			t.Errorf("task %d: %v", n, got)
		}
	}
}

// TestHowMuchOfALineLeaves: short ends stay, and so does what a page that came back may need, unless the domain holds half of the window.
func TestHowMuchOfALineLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		line, page, window   int
		tasks, first, second int
	}{
		"a short end":        {8, 4, 30, 9, 0, 0},
		"a longer end":       {8, 4, 30, 10, 2, 0},
		"it fills little":    {1, 2, 41, 10, 0, 0},
		"behind a page":      {1, 2, 8, 5, 2, 0},
		"half of the window": {1, 2, 6, 5, 2, 2},
	} {
		b := smallShelf(t, c.line, c.page, c.window)
		var all []int
		for n := range c.tasks {
			all = append(all, 1+n)
		}
		fx := b.keyed("a", nil, all...)
		if len(fx.Shelve) != c.first {
			t.Errorf("%s: %d are shelved, want %d", name, len(fx.Shelve), c.first)
		}
		if c.first == 0 {
			continue
		}
		b.written(fx)
		b.now.MS += shelveEveryMS
		if fx = b.step(Tick{}); len(fx.Shelve) != c.second {
			t.Errorf("%s: %d are shelved next, want %d", name, len(fx.Shelve), c.second)
		}
	}
}

// TestFewFatTasksLeave: the room is counted in bytes, too.
func TestFewFatTasksLeave(t *testing.T) {
	for size, want := range map[int]int{10: 0, 100 << 10: 2} {
		b := smallShelf(t, 2, 2, 1000)
		if fx := b.keyed("a", func(t *taskstate.Task) { t.Payload.Data = make([]byte, size) }, 1, 2, 3, 4); len(fx.Shelve) != want {
			t.Errorf("of %d bytes each: %d are shelved, want %d", size, len(fx.Shelve), want)
		}
	}
}

// TestTheLongestRunLeaves, of those between the pages of a line.
func TestTheLongestRunLeaves(t *testing.T) {
	b := smallShelf(t, 1, 2, 8)
	b.written(b.keyed("a", nil, 1, 2, 3, 4, 5, 6))
	b.r.shelveAt = b.now.MS + 1<<40
	b.keyed("a", nil, 9)
	b.r.shelveAt = 0
	if fx := b.step(Tick{}); len(fx.Shelve) != 2 || fx.Shelve[0].ID != id(3) {
		t.Errorf("%d are shelved, the first is %s", len(fx.Shelve), fx.Shelve[0].ID)
	}
}
