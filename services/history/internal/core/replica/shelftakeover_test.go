package replica

import (
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// reads is the bench of an owner that takes over from a checkpoint, and has not read anything so far.
func (b *bench) reads(cp Checkpoint) *bench {
	return &bench{T: b.T, r: New(b.r.cfg, cp, b.now.Mono), now: b.now, seq: b.seq}
}

// TestATakeoverReadsNoPageForWhatThatHasSeen: an update from before it, and a record of a task on it.
func TestATakeoverReadsNoPageForWhatThatHasSeen(t *testing.T) {
	b := smallShelf(t, 2, 2, 1000)
	b.keyed("a", nil, 1, 2, 3, 4)
	state := cloneTask(b.r.Get(id(4)))
	b.carries(&state, state.Position, b.seq)
	record := b.seq
	b.change(4, taskstate.Update{Priority: 1})
	seen := b.seq
	b.r.cfg.WindowTasks, b.now.MS = 8, b.now.MS+shelveEveryMS
	page := b.written(b.step(Tick{}))
	if page.Tasks[0].AsOf != seen {
		t.Fatalf("the page has seen %d", page.Tasks[0].AsOf)
	}
	next := b.reads(b.r.Checkpoint())
	next.step(page.again())
	next.seq = record - 1
	next.carries(&state, state.Position, record-1)
	next.change(4, taskstate.Update{Priority: 1})
	if wanted := next.r.WantedPages(); len(wanted) != 0 {
		t.Errorf("it wants %v", wanted)
	}
	next.carries(&state, state.Position, seen) // behind it
	if wanted := next.r.WantedPages(); len(wanted) != 1 {
		t.Errorf("for a later record it wants %v", wanted)
	}
}

// TestATakeoverReadsOfAPageBeforeOneThatIsAway: the page was written before that, and brings back what has stayed in memory.
func TestATakeoverReadsOfAPageBeforeOneThatIsAway(t *testing.T) {
	b := smallShelf(t, 1, 2, 8)
	b.keyed("a", nil, 1)
	first := b.keyed("a", nil, 2, 3)
	page := b.rewrite(first)
	b.step(Stored{Kind: JobShelve})
	b.r.shelveAt = b.now.MS + 1<<40
	b.change(3, taskstate.Update{Priority: 1}) // so it does not go away
	b.saidAgain(page)
	said := b.seq
	for _, n := range []int{1, 3} {
		state := cloneTask(b.r.Get(id(n)))
		b.carries(&state, state.Position, b.r.EventAt())
	}
	b.away("the first page", 0)
	b.keyed("b", nil, 11)
	b.r.shelveAt = 0
	other := b.written(b.keyed("b", nil, 12, 13, 14))
	b.away("the second page", 2)
	cp := b.r.Checkpoint()
	if cp.Floor >= said || cp.Ack[ids.LaneKeyed] < page.Seq-1 || len(cp.Pages) != 1 || cp.Pages[0].Seq != other.Seq {
		t.Fatalf("%+v", cp)
	}
	next := b.reads(cp)
	next.step(other.again())
	next.step(&Events{Seq: said, At: b.now.MS, Page: page.Seq, OnPage: page.again().Tasks})
	if next.r.Get(id(2)) == nil {
		t.Error("it is lost")
	}
}

// TestALateRecordDoesNotReplaceAPage: a record that was stored twice, from before a page that its task came back by. The floor has passed that record, so
// the page is what a takeover has.
func TestALateRecordDoesNotReplaceAPage(t *testing.T) {
	b := smallShelf(t, 1, 2, 8)
	fx := b.keyed("a", nil, 1, 2, 9)
	state, asOf := cloneTask(b.r.Get(id(9))), b.seq
	b.start(1)
	page := b.rewrite(fx)
	for _, c := range page.Tasks {
		c.AsOf = b.seq
	}
	b.step(Stored{Kind: JobShelve})
	b.r.shelveAt = b.now.MS + 1<<40
	b.change(2, taskstate.Update{Priority: 1}) // so it does not go away
	b.saidAgain(page)
	b.carries(&state, state.Position, asOf)
	if e := b.r.tasks[id(9)]; b.r.relying[e] == nil || e.pin != page.Tasks[0].AsOf {
		t.Errorf("it is pinned at %d, and relies on %+v", e.pin, b.r.relying[e])
	}
}

// TestARecordThatMissesWhatWaitedForAPage is void: the page brings the task back in a takeover, and what waited is read again.
func TestARecordThatMissesWhatWaitedForAPage(t *testing.T) {
	b, page := shelved(t, nil)
	b.start(1)
	b.change(4, taskstate.Update{Priority: 1})
	waited := b.seq
	b.change(3, taskstate.Update{Priority: 1})
	b.step(page.again())
	if cp := b.r.Checkpoint(); cp.Floor >= waited {
		t.Errorf("the floor is %d, and an update at %d is of a task of the page", cp.Floor, waited)
	}
	state := page.again().Tasks[1].Entry.Task
	b.carries(&state, state.Position, waited-1)
	if e := b.r.tasks[id(4)]; b.r.relying[e] == nil || e.Revision() != 2 {
		t.Errorf("task 4 is in revision %d, and relies on %+v", e.Revision(), b.r.relying[e])
	}
}

// TestPagesOfACheckpointAreOfOneTask: what a later page has comes by that, be it in memory or away.
func TestPagesOfACheckpointAreOfOneTask(t *testing.T) {
	for _, away := range []bool{false, true} {
		b, later := shelved(t, nil)
		cp := b.r.Checkpoint()
		cp.Pages = []PageRef{{later.Seq - 1, false}, {later.Seq, away}}
		earlier := later.again()
		earlier.Seq--
		for _, c := range earlier.Tasks {
			c.Entry.Priority = 5
		}
		next := b.reads(cp)
		next.step(later.again())
		next.step(earlier)
		next.step(&Page{Seq: later.Seq + 9})
		want := 0
		if away {
			want = 2
		}
		next.away("the later page", want)
		if got := next.r.Get(id(4)); away != (got == nil) || got != nil && got.Priority == 5 {
			t.Errorf("away %v: task 4 is %+v", away, got)
		}
	}
}

// TestASlowReadBringsNothingBack: its page has come by another read, and one of its tasks has ended and is forgotten; then the page is.
func TestASlowReadBringsNothingBack(t *testing.T) {
	for name, ended := range map[string][]int{"one has ended": {3}, "all have": {3, 4}} {
		b, page := shelved(t, nil)
		cp := b.r.Checkpoint()
		next := b.takeover(b.r.cfg, cp, page.again())
		next.cancels("shop", ended...)
		next.step(page.again())
		next.archives()
		for range 3 {
			next.now.MS += goneForMS
			next.step(Tick{})
		}
		before := next.r.Len()
		next.step(page.again())
		if next.r.Len() != before || next.r.Get(id(3)) != nil {
			t.Errorf("%s: %d tasks are in memory, %d were", name, next.r.Len(), before)
		}
	}
}

// TestATakeoverKnowsTheCopiesOfATaskOnAPage, which a domain has stored with it: none of them comes in.
func TestATakeoverKnowsTheCopiesOfATaskOnAPage(t *testing.T) {
	b := smallShelf(t, 2, 2, 8)
	page := b.written(b.keyed("a", nil, 1, 2, 3, 4, 5, 4))
	next := b.reads(b.r.Checkpoint())
	next.step(page.again())
	next.r.past = pastStays{}
	next.seq = page.Seq - 2
	next.keyed("a", nil, 1, 2, 3, 4, 5, 4)
	if next.r.Get(id(4)) != nil {
		t.Error("a copy is in memory, beside the page")
	}
}

// TestAPageReadAgainIsNotListed with those that are away.
func TestAPageReadAgainIsNotListed(t *testing.T) {
	b, page := shelved(t, nil)
	b.cancels("shop", 3)
	b.step(page)
	if all := b.r.ShelfPages("", ""); len(all) != 0 || len(b.r.pages) != 1 {
		t.Errorf("%+v of %d", all, len(b.r.pages))
	}
}

// TestAKeysEndDoesNotKeepAnotherKeyInMemory, but one of its own does, until it is known to be in the archive.
func TestAKeysEndDoesNotKeepAnotherKeyInMemory(t *testing.T) {
	b := smallShelf(t, 2, 2, 8)
	b.keyed("b", nil, 11)
	b.start(11)
	b.finish(taskstate.Succeeded, 11)
	b.written(b.keyed("a", nil, 1, 2, 3, 4))
	b.away("beside another key's end", 2)

	b = smallShelf(t, 2, 2, 8)
	fx := b.keyed("a", nil, 1, 2, 3, 4)
	b.start(1)
	page := b.rewrite(fx)
	b.step(Stored{Kind: JobShelve})
	b.finish(taskstate.Succeeded, 1)
	b.saidAgain(page)
	if fx = b.linger(); len(fx.Archive) != 1 {
		t.Fatalf("archives %v", fx.Archive)
	}
	b.step(Tick{})
	b.away("while its end is being stored", 0)
	b.step(Stored{Kind: JobArchive, Seq: 1})
	b.step(Tick{})
	b.away("when it is", 2)
}

// TestAPageIsReadForWhatMayBeOnIt alone: a stay whose stay before cannot be there comes at once, and the last of its ids is one that can.
func TestAPageIsReadForWhatMayBeOnIt(t *testing.T) {
	for name, c := range map[string]struct {
		n      int
		change func(*taskstate.Task, ids.Position)
		held   bool
	}{
		"the first id":   {4, func(task *taskstate.Task, at ids.Position) { task.Position = at }, true},
		"the last id":    {10, func(task *taskstate.Task, at ids.Position) { task.Position = at }, true},
		"an id before":   {3, func(task *taskstate.Task, at ids.Position) { task.Position = at }, false},
		"an id behind":   {11, func(task *taskstate.Task, at ids.Position) { task.Position = at }, false},
		"another lane":   {5, func(task *taskstate.Task, at ids.Position) { task.Position = ids.NewPosition(at.Seq(), 3) }, false},
		"another domain": {5, func(task *taskstate.Task, at ids.Position) { task.Position, task.Domain = at, "rival" }, false},
		"a place before": {5, func(task *taskstate.Task, at ids.Position) {
			task.Position = ids.NewPosition(at.Seq()-1, ids.LaneKeyed)
		}, false},
		"a place behind": {5, func(task *taskstate.Task, at ids.Position) {
			task.Position = ids.NewPosition(at.Seq()+1, ids.LaneKeyed)
		}, false},
		"its first place": {5, func(task *taskstate.Task, at ids.Position) { task.Position = at }, true},
	} {
		b := smallShelf(t, 1, 2, 4)
		b.seq = 10
		b.written(b.keyed("a", nil, 1, 4, 10))
		at := b.r.Get(id(1)).Position
		b.r.lanes[3].Skip(at.Seq())
		b.r.lanes[ids.LaneKeyed].Skip(at.Seq() + 1)
		late := &Entry{Task: taskstate.Task{ID: id(c.n), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy, Parkings: 1}}
		late.Extra = &taskstate.Extra{Redriven: &taskstate.Redriven{Count: 1, Seq: 99}}
		c.change(&late.Task, at)
		b.seq++
		fx := b.step(&Submits{Lane: 3, Domain: late.Domain, Seq: b.seq, At: b.now.MS, Bytes: 10, Tasks: []*Entry{late}})
		if held := len(triggered(fx)) == 0; held != c.held || held != (len(fx.Pages) == 1) {
			t.Errorf("%s: held %v, pages %v", name, held, fx.Pages)
		}
	}
}

// TestStaysThatWaitForAPage come in the order of their ids when that does not have the ones before them, and nothing is left of their wait.
func TestStaysThatWaitForAPage(t *testing.T) {
	for range 8 { // a map has them
		b := smallShelf(t, 1, 2, 4)
		page := b.written(b.keyed("a", nil, 1, 2, 10))
		at := b.r.Get(id(1)).Position
		for _, n := range []int{7, 5, 8, 6} {
			late := &Entry{Task: taskstate.Task{ID: id(n), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy, Parkings: 1, Position: at}}
			late.Extra = &taskstate.Extra{Redriven: &taskstate.Redriven{Count: 1, Seq: 99}}
			b.seq++
			b.step(&Submits{Lane: 3, Domain: "shop", Seq: b.seq, At: b.now.MS, Bytes: 10, Tasks: []*Entry{late}})
		}
		b.equal("in their order", triggered(b.step(page)), []int{5, 6, 7, 8})
		if len(b.r.notOn) != 0 {
			t.Fatalf("%d are left", len(b.r.notOn))
		}
	}
}

// TestReadsOfOneTurnAreShared: a domain that wants many pages at once does not take all reads of the turn.
func TestReadsOfOneTurnAreShared(t *testing.T) {
	for range 8 { // a map has them
		b := newBench(t, Config{})
		var flood []*Page
		for i := range 2 * readsMax {
			flood = append(flood, b.written(b.parkedKey("flood", string(rune('a'+i)), 1+3*i, 2)))
		}
		shop := b.written(b.parkedKey("shop", "a", 100, 2))
		for _, p := range flood {
			b.r.wantPage(b.r.pages[p.Seq])
		}
		b.r.wantPage(b.r.pages[shop.Seq])
		if fx := b.step(Tick{}); len(fx.Pages) != readsMax || !slices.Contains(fx.Pages, shop.Seq) {
			t.Fatalf("pages %v are read, not %d", fx.Pages, shop.Seq)
		}
	}
}

// TestAParkedKeyLeavesACrowdedWindow whole, but for its first task.
func TestAParkedKeyLeavesACrowdedWindow(t *testing.T) {
	b := smallShelf(t, 100, 100, 6)
	if fx := b.parkedKey("shop", "a", 1, 3); len(fx.Shelve) != 3 {
		t.Errorf("%d are shelved", len(fx.Shelve))
	}
}

// TestAnEventOfAPlaceThatThereIsNot: it is about a task in memory, whose id lies among those of a page. That does not keep its end from being asked for.
func TestAnEventOfAPlaceThatThereIsNot(t *testing.T) {
	b := smallShelf(t, 1, 2, 8)
	b.written(b.keyed("a", nil, 1, 2, 9))
	b.submit(nil, 5)
	b.seq = 900
	b.event(taskstate.Succeeded, 5, ids.Token{Position: ids.NewPosition(500, 2), Version: 1})
	asked := 0
	for range 2 {
		asked += len(b.step(Tick{}).Searches)
	}
	if asked != 1 {
		t.Errorf("%d searches", asked)
	}
}

// TestATakeoverReadsThatAPageIsWritten, and has the submits of its tasks behind it: they come by the page, and go away with it.
func TestATakeoverReadsThatAPageIsWritten(t *testing.T) {
	b, page := shelved(t, nil)
	state := cloneTask(b.r.Get(id(2)))
	cp := Checkpoint{Floor: page.Tasks[0].AsOf}
	cp.Ack[ids.LaneKeyed], cp.Read[ids.LaneKeyed] = 2, 2
	next := b.reads(cp)
	next.seq = page.Seq
	next.carries(&state, state.Position, cp.Floor)
	next.saidAgain(page)
	next.away("while it reads", 0)
	next.step(Recovered{})
	next.step(Tick{})
	next.away("when all is read", 2)
}

// TestARecordLeavesWhatIsAboutALaterStay: a takeover has the task by its record, and an event waits for a lane that is not read so far.
func TestARecordLeavesWhatIsAboutALaterStay(t *testing.T) {
	cp := Checkpoint{}
	cp.Ack[3], cp.Read[3] = 1, 1
	b := &bench{T: t, r: New(newBench(t, Config{}).r.cfg, cp, 0), now: Now{MS: scenarioStart}, seq: 5}
	b.event(taskstate.Started, 1, ids.Token{Position: ids.NewPosition(5, 2), Version: 1})
	state := taskstate.Task{ID: id(1), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy, State: taskstate.Ready}
	b.r.rooms[2].demand = 0
	b.seq = 7
	b.carries(&state, ids.NewPosition(1, 3), 7)
	if b.r.Get(id(1)) == nil || len(b.r.early.of(id(1))) != 1 || b.r.rooms[2].demand != 5 {
		t.Errorf("the task is %+v, %d events wait, up to %d is demanded", b.r.Get(id(1)), len(b.r.early.of(id(1))), b.r.rooms[2].demand)
	}
}
