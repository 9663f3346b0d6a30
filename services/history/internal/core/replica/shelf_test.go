package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// smallShelf has lines of which little stays in memory, and domains that hold much of a small window.
func smallShelf(t *testing.T, line, page, window int) *bench {
	b := newBench(t, Config{})
	b.r.cfg.LineTasks, b.r.cfg.PageTasks, b.r.cfg.WindowTasks = line, page, window
	return b
}

// rewrite makes the page that a turn has asked to be written, at the next place of the log. No event says so far that it is there.
func (b *bench) rewrite(fx *Effects) *Page {
	b.Helper()
	b.seq++
	page := &Page{Seq: b.seq}
	for _, p := range fx.Shelve {
		page.Tasks = append(page.Tasks, &Carried{Entry: &Entry{Task: cloneTask(p.Carried)}, AsOf: p.AsOf})
	}
	return page
}

// again is the page as it is read another time.
func (p *Page) again() *Page {
	same := &Page{Seq: p.Seq}
	for _, c := range p.Tasks {
		same.Tasks = append(same.Tasks, &Carried{Entry: &Entry{Task: cloneTask(&c.Entry.Task)}, AsOf: c.AsOf})
	}
	return same
}

func (b *bench) away(what string, tasks int) {
	b.Helper()
	if got, _ := b.r.Shelved(); got != tasks {
		b.Errorf("%s: %d tasks are away, want %d", what, got, tasks)
	}
}

// written reads the page that a turn has asked to be written. No other one is written meanwhile.
func (b *bench) written(fx *Effects) *Page {
	b.Helper()
	if len(fx.Shelve) == 0 {
		b.Fatal("nothing is shelved")
	}
	page, next := b.rewrite(fx), b.r.shelveAt
	b.r.shelveAt = b.now.MS + 1<<40
	b.step(Stored{Kind: JobShelve})
	b.seq++
	b.step(&Events{Seq: b.seq, At: b.now.MS, Page: page.Seq, OnPage: page.again().Tasks})
	b.r.shelveAt = next
	return page
}

// carries reads the record of a task at a place.
func (b *bench) carries(state *taskstate.Task, at ids.Position, asOf uint64) *Effects {
	b.Helper()
	task := cloneTask(state)
	task.Position, task.Before = at, 0
	b.seq++
	return b.step(&Events{
		Seq: b.seq, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Carried, ID: task.ID, Fence: ids.Token{Position: at}}},
		Carried: map[int]*Carried{0: {Entry: &Entry{Task: task}, AsOf: asOf}},
	})
}

// shelved has a line of four tasks of which the first runs, and two are on a page.
func shelved(t *testing.T, change func(*taskstate.Task)) (*bench, *Page) {
	b := newBench(t, Config{})
	b.r.cfg.LineTasks, b.r.cfg.PageTasks = 2, 2
	b.r.cfg.WindowTasks = 8
	page := b.written(b.keyed("a", change, 1, 2, 3, 4))
	b.start(1)
	if tasks, pages := b.r.Shelved(); tasks != 2 || pages != 1 || b.r.Get(id(4)) != nil || b.r.Len() != 2 {
		t.Fatalf("%d tasks on %d pages, %d in memory", tasks, pages, b.r.Len())
	}
	return b, page
}

// TestAPageComesBackInItsPlace: it counts while it is away, and its tasks have their turn after those before it.
func TestAPageComesBackInItsPlace(t *testing.T) {
	b, page := shelved(t, nil)
	if got := b.r.Describe("shop", "mail"); got.Ready != 3 || got.Running != 1 {
		t.Errorf("%+v", got)
	}
	b.finish(taskstate.Succeeded, 1)
	b.start(2)
	fx := b.finish(taskstate.Succeeded, 2)
	b.equal("triggered before the page is here", triggered(fx), nil)
	if len(fx.Pages) != 1 || fx.Pages[0] != page.Seq {
		t.Fatalf("to be read are %v", fx.Pages)
	}
	b.equal("the first of the page", triggered(b.step(page)), []int{3})
	b.start(3)
	b.equal("the second", triggered(b.finish(taskstate.Succeeded, 3)), []int{4})
	b.start(4)
	b.finish(taskstate.Succeeded, 4)
	b.step(Stored{Kind: JobArchive})
	if len(b.r.keys)+b.r.shelved != 0 {
		t.Errorf("%d lines, %d on the shelf are left", len(b.r.keys), b.r.shelved)
	}
}

// TestACancelMeetsATaskOnTheShelf, and one of another task looks at the page in vain, once.
func TestACancelMeetsATaskOnTheShelf(t *testing.T) {
	b, page := shelved(t, nil)
	fx := b.cancels("shop", 4)
	if len(fx.Pages) != 1 || len(fx.Searches) != 0 || len(fx.Answers) != 0 {
		t.Fatalf("pages %v, searches %v, answered %d", fx.Pages, fx.Searches, len(fx.Answers))
	}
	if cp := b.r.Checkpoint(); cp.Floor >= b.seq || len(cp.Pages) != 1 || !cp.Pages[0].Away {
		t.Errorf("the cancel at %d is forgotten: %+v", b.seq, cp)
	}
	fx = b.step(page)
	if v := b.said(fx); v.Code != "" {
		t.Errorf("%+v", v)
	}
	if got := b.r.Get(id(4)).State; got != taskstate.Cancelled || b.r.Get(id(3)) == nil {
		t.Errorf("it is %s", got)
	}
}

// TestATaskThatIsNotOnThePage: the command that may be about one of the page is decided as without it, and the page stays away.
func TestATaskThatIsNotOnThePage(t *testing.T) {
	b := newBench(t, Config{})
	b.r.cfg.LineTasks, b.r.cfg.PageTasks = 1, 2
	b.r.cfg.WindowTasks = 8
	page := b.written(b.keyed("a", nil, 1, 2, 9))
	fx := b.cancels("shop", 5)
	if len(fx.Pages) != 1 || len(fx.Searches) != 0 {
		t.Fatalf("pages %v, searches %v", fx.Pages, fx.Searches)
	}
	fx = b.step(page)
	if tasks, _ := b.r.Shelved(); tasks != 2 || len(fx.Searches) != 1 || fx.Searches[0].ID != id(5) {
		t.Errorf("%d tasks away, searches %v", tasks, fx.Searches)
	}
}

// TestTasksOnTheShelfExpire: the page comes back when the first of them does.
func TestTasksOnTheShelfExpire(t *testing.T) {
	b, page := shelved(t, func(t *taskstate.Task) {
		x := *t.Extra
		x.Expiry = taskstate.Expiry{StartWithinMS: 5000}
		t.Extra = &x
	})
	b.now.MS += 4999
	if fx := b.step(Tick{}); len(fx.Pages) != 0 {
		t.Error("read early")
	}
	b.now.MS++
	if fx := b.step(Tick{}); len(fx.Pages) != 1 {
		t.Fatal("not read")
	}
	b.step(page)
	lapses := 0
	b.step(Tick{})
	for _, p := range b.step(Stored{Kind: JobAppend}).Append { // the one of task 2 is stored
		if p.Kind == taskstate.Lapse && (p.ID == id(3) || p.ID == id(4)) {
			lapses++
		}
	}
	if lapses != 2 {
		t.Errorf("%d are proposed to expire", lapses)
	}
}

// TestAParkedKeyIsShelvedAtOnce, whatever room there is, and stays there until its first task goes on.
func TestAParkedKeyIsShelvedAtOnce(t *testing.T) {
	for _, parks := range []bool{true, false} {
		b := newBench(t, Config{})
		b.keyed("a", func(t *taskstate.Task) {
			x := *t.Extra
			x.Order = &taskstate.Order{Key: "a", Blocks: true, Parks: parks}
			t.Extra = &x
		}, 1, 2, 3)
		b.start(1)
		b.seq++
		fx := b.step(&Events{Seq: b.seq, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Failed, ID: id(1), Fence: b.r.Get(id(1)).Token(), NonRetryable: true}}})
		if parks != (len(fx.Shelve) == 2) {
			t.Fatalf("parks %v: %d are shelved", parks, len(fx.Shelve))
		}
		if !parks {
			continue
		}
		page := b.written(fx)
		b.now.MS += 60_000
		if fx := b.step(Tick{}); len(fx.Pages) != 0 {
			t.Error("read while the key is blocked")
		}
		if fx := b.change(1, taskstate.Update{Priority: 2}); len(fx.Pages) != 0 {
			t.Error("read when the first task is changed")
		}
		fx = b.change(1, taskstate.Update{Now: true})
		if len(fx.Pages) != 1 {
			t.Fatal("not read when the key goes on")
		}
		b.step(page)
		b.start(1)
		b.equal("the next one", triggered(b.finish(taskstate.Succeeded, 1)), []int{2})
	}
}

// TestShortRunsLeaveACrowdedWindow: what comes later behind a parked task waits for a page's worth, unless its domain holds half of the window: then
// other keys wait for that room.
func TestShortRunsLeaveACrowdedWindow(t *testing.T) {
	parks := func(t *taskstate.Task) {
		x := *t.Extra
		x.Order = &taskstate.Order{Key: "a", Blocks: true, Parks: true}
		t.Extra = &x
	}
	for window, shelved := range map[int]int{9: 0, 8: 3} { // the first task and three more are in memory
		b := newBench(t, Config{})
		b.r.cfg.LineTasks, b.r.cfg.PageTasks, b.r.cfg.WindowTasks = 100, 100, window
		b.keyed("a", parks, 1, 2, 3)
		b.start(1)
		b.seq++
		fx := b.step(&Events{Seq: b.seq, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Failed, ID: id(1), Fence: b.r.Get(id(1)).Token(), NonRetryable: true}}})
		b.written(fx)
		b.now.MS += shelveEveryMS
		if fx := b.keyed("a", nil, 4, 5, 6); len(fx.Shelve) != shelved {
			t.Errorf("of a window of %d: %d are shelved, want %d", window, len(fx.Shelve), shelved)
		}
	}
}

// TestAPageThatIsVoidStays: an event of one of its tasks came between, so they stay in memory, all of them.
func TestAPageThatIsVoidStays(t *testing.T) {
	b := newBench(t, Config{})
	b.r.cfg.LineTasks, b.r.cfg.PageTasks = 2, 2
	b.r.cfg.WindowTasks = 8
	fx := *b.keyed("a", nil, 1, 2, 3, 4)
	shelve := fx.Shelve
	b.change(4, taskstate.Update{Priority: 1})
	b.written(&Effects{Shelve: shelve})
	if tasks, _ := b.r.Shelved(); tasks != 0 || b.r.Get(id(4)).Revision() != 2 || b.r.Get(id(3)) == nil {
		t.Errorf("%d tasks are away", tasks)
	}
}

// TestAPageOfAnotherSizeHalts: it is not what left memory.
func TestAPageOfAnotherSizeHalts(t *testing.T) {
	b, page := shelved(t, nil)
	b.cancels("shop", 4)
	page.Tasks = page.Tasks[:1]
	if fx := b.step(page); fx.Halt == nil {
		t.Error("it goes on")
	}
}
