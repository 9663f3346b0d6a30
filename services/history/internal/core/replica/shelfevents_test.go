package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// said reads again that a page is written.
func (b *bench) saidAgain(page *Page) *Effects {
	b.Helper()
	b.seq++
	return b.step(&Events{Seq: b.seq, At: b.now.MS, Page: page.Seq, OnPage: page.again().Tasks})
}

// TestAPageThatIsSaidTwice is as if it were said once: the append of an event is repeated if its outcome is not known.
func TestAPageThatIsSaidTwice(t *testing.T) {
	b, page := shelved(t, nil)
	b.saidAgain(page)
	if tasks, pages := b.r.Shelved(); tasks != 2 || pages != 1 {
		t.Fatalf("%d tasks on %d pages", tasks, pages)
	}
	b.finish(taskstate.Succeeded, 1)
	b.start(2)
	fx := b.finish(taskstate.Succeeded, 2)
	if len(fx.Pages) != 1 {
		t.Fatalf("to be read are %v", fx.Pages)
	}
	b.saidAgain(page)
	b.equal("the first of the page", triggered(b.step(page)), []int{3})
	b.saidAgain(page)
	b.start(3)
	b.equal("the second", triggered(b.finish(taskstate.Succeeded, 3)), []int{4})
}

// TestAPageThatIsSaidLate, behind a later one, is not relied on: the log may be about to forget it. Its tasks can be shelved again.
func TestAPageThatIsSaidLate(t *testing.T) {
	b := newBench(t, Config{})
	b.r.cfg.LineTasks, b.r.cfg.PageTasks, b.r.cfg.WindowTasks = 2, 2, 8
	fx := b.keyed("a", nil, 1, 2, 3, 4)
	page := b.rewrite(fx)
	b.seq++
	other := cloneTask(b.r.Get(id(2)))
	other.ID = id(9) // of an owner that was overtaken, and that is not known here
	b.saidAgain(&Page{Seq: b.seq, Tasks: []*Carried{{Entry: &Entry{Task: other}, AsOf: page.Tasks[0].AsOf}}})
	b.saidAgain(page)
	b.now.MS += shelveEveryMS
	fx = b.step(Stored{Kind: JobShelve})
	if tasks, _ := b.r.Shelved(); tasks != 0 || len(fx.Shelve) != 2 {
		t.Fatalf("%d tasks are away, %d are shelved again", tasks, len(fx.Shelve))
	}
}

// TestATakeoverKnowsTheLastPage: what its checkpoint names was said before it, and an earlier page that is said afterwards is late.
func TestATakeoverKnowsTheLastPage(t *testing.T) {
	b := smallShelf(t, 2, 2, 8)
	b.seq = 10
	page := b.written(b.keyed("a", nil, 1, 2, 3, 4))
	cp := b.r.Checkpoint()
	cfg := b.r.cfg
	b.r = New(cfg, cp, b.now.Mono)
	b.step(page)
	b.step(&Events{Seq: b.seq, At: b.now.MS, Page: page.Seq - 2}) // it is deleted
	b.step(Recovered{})
	b.keyed("a", nil, 5)
	task := cloneTask(b.r.Get(id(5)))
	b.saidAgain(&Page{Seq: page.Seq - 1, Tasks: []*Carried{{Entry: &Entry{Task: task}, AsOf: b.r.EventAt()}}})
	if tasks, pages := b.r.Shelved(); tasks != 2 || pages != 1 {
		t.Errorf("%d tasks are away, %d pages are needed", tasks, pages)
	}
}
