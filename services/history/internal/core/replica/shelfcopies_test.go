package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// A domain may have stored several tasks of one id. Then one of them may lie on a page of its keys, and another be in memory.

// TestARecordOfAnotherCopyMeetsAPage: it is of a task without an order key, and waits for its lane while the page is read.
func TestARecordOfAnotherCopyMeetsAPage(t *testing.T) {
	b := smallShelf(t, 1, 2, 8)
	page := b.written(b.keyed("a", nil, 1, 2, 9))
	b.seq++
	unread := b.seq
	b.submit(nil, 5)
	fx := b.carries(b.r.Get(id(5)), ids.NewPosition(unread, 2), b.r.EventAt())
	if len(b.r.early.of(id(5))) != 1 || len(fx.Pages) != 0 {
		t.Fatalf("the record does not wait for its lane alone: pages %v", fx.Pages)
	}
	b.cancels("shop", 4)
	b.step(page)
	if len(b.r.early.of(id(5))) != 1 {
		t.Error("the record does not wait any more")
	}
	b.step(&Submits{Lane: 2, Seq: unread, At: b.now.MS, Bytes: 10})
	b.step(Tick{})
	if len(b.r.early.of(id(5))) != 0 || b.r.Get(id(5)).State != taskstate.Ready {
		t.Errorf("%d records wait, the task is %s", len(b.r.early.of(id(5))), b.r.Get(id(5)).State)
	}
}

// TestACopyOfATaskOnAPageIsNotCarriedBesideIt: a takeover has one copy from its record, the other lies on a page that is away. A record of that one,
// which the page has seen, does not bring it in.
func TestACopyOfATaskOnAPageIsNotCarriedBesideIt(t *testing.T) {
	b := newBench(t, Config{})
	b.r.cfg.LineTasks, b.r.cfg.PageTasks = 2, 2
	b.seq = 1 // the other copy lies there
	b.keyed("a", nil, 1, 2, 3, 4)
	b.submit(nil, 20)
	b.start(20)
	b.finish(taskstate.Succeeded, 20)
	b.r.cfg.WindowTasks = 8
	b.now.MS += shelveEveryMS
	page := b.written(b.step(Tick{}))
	onPage, cp := page.Tasks[1].Entry.Task, b.r.Checkpoint()
	cp.Floor, cp.Ack[2], cp.Ack[ids.LaneKeyed] = 3, 1, 2
	b.r = New(b.r.cfg, cp, b.now.Mono)
	b.step(page)
	b.seq = 3
	copied := onPage
	copied.Extra = nil
	b.carries(&copied, ids.NewPosition(1, 2), 3)
	if b.r.Get(onPage.ID) == nil {
		t.Fatal("the copy is not here")
	}
	b.carries(&onPage, onPage.Position, 4)
	if b.r.Get(onPage.ID).Order() != nil {
		t.Errorf("task %s is in memory, and on page %d", onPage.ID, page.Seq)
	}
}

// TestATaskThatAStayWaitsForDoesNotLeave: its end lies ahead in the log. No page takes it away, neither one that is written nor a later one.
func TestATaskThatAStayWaitsForDoesNotLeave(t *testing.T) {
	b := smallShelf(t, 1, 2, 4)
	page := b.rewrite(b.keyed("a", nil, 1, 4, 10))
	late := &Entry{Task: cloneTask(b.r.Get(id(4)))}
	late.Parkings, late.Extra = 1, &taskstate.Extra{Redriven: &taskstate.Redriven{Count: 1, Seq: 99}}
	b.seq++
	b.step(&Submits{Lane: 3, Domain: "shop", Seq: b.seq, At: b.now.MS, Bytes: 10, Tasks: []*Entry{late}})
	b.step(Stored{Kind: JobShelve})
	b.now.MS += shelveEveryMS
	fx := b.saidAgain(page)
	if tasks, _ := b.r.Shelved(); tasks != 0 || len(fx.Shelve) != 1 || fx.Shelve[0].ID != id(10) {
		t.Fatalf("%d tasks are away, %d are shelved next", tasks, len(fx.Shelve))
	}
	b.equal("the stay", triggered(b.ofKey(taskstate.Skipped, 4, 77)), []int{4})
}
