package replica

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// parkedKey submits a task of a domain that fails and parks its key, and so many behind it.
func (b *bench) parkedKey(domain, key string, first, behind int) *Effects {
	b.Helper()
	b.seq++
	in := &Submits{Lane: ids.LaneKeyed, Domain: domain, Seq: b.seq, At: b.now.MS, Bytes: 10}
	for n := first; n <= first+behind; n++ {
		e := &Entry{Task: taskstate.Task{ID: wideID(n), Domain: domain, Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy}}
		e.Extra = &taskstate.Extra{Order: &taskstate.Order{Key: key, Blocks: true, Parks: true}}
		in.Tasks = append(in.Tasks, e)
	}
	b.step(in)
	head := wideID(first)
	e := b.r.tasks[head]
	fence := e.Token()
	fence.Version++
	b.seq++
	b.step(&Events{Seq: b.seq, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Started, ID: head, Fence: fence}}})
	b.seq++
	b.now.MS += shelveEveryMS
	return b.step(&Events{Seq: b.seq, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Failed, ID: head, Fence: fence, NonRetryable: true}}})
}

func wideID(n int) (id ids.TaskID) {
	id[13], id[14], id[15] = byte(n>>16), byte(n>>8), byte(n)
	return id
}

// TestPagesAreLeftForOthers: a domain that parks many keys, with a task or two behind each, does not take the pages that others need.
func TestPagesAreLeftForOthers(t *testing.T) {
	b := newBench(t, Config{})
	b.r.cfg.Pages = 20
	n := 1
	for i := range b.r.cfg.Pages {
		fx := b.parkedKey("flood", fmt.Sprint(i), n, 1)
		n += 2
		if fx.Shelve == nil {
			break
		}
		b.written(fx)
	}
	if _, pages := b.r.Shelved(); pages != b.r.cfg.Pages/2 {
		t.Fatalf("it has %d pages", pages)
	}
	fx := b.parkedKey("shop", "a", n, 50)
	if len(fx.Shelve) != 50 || fx.Shelve[0].Domain != "shop" {
		t.Errorf("of the other domain %d tasks are shelved", len(fx.Shelve))
	}
}

// TestTheFewestPagesComeFirst: a domain whose lines are long does not keep others from the shelf.
func TestTheFewestPagesComeFirst(t *testing.T) {
	for range 8 { // which line is looked at first depends on a map
		b := newBench(t, Config{})
		b.written(b.parkedKey("flood", "a", 1, 9))
		fx := b.parkedKey("flood", "b", 11, 50)
		b.parkedKey("shop", "a", 101, 3)
		b.parkedKey("flood", "c", 201, 30)
		if len(fx.Shelve) != 50 {
			t.Fatalf("%d tasks are shelved", len(fx.Shelve))
		}
		b.now.MS += shelveEveryMS
		if fx := b.step(Stored{Kind: JobShelve}); len(fx.Shelve) != 3 || fx.Shelve[0].Domain != "shop" {
			t.Errorf("%d tasks are shelved next", len(fx.Shelve))
		}
	}
}

// TestAGrabDoesNotWaitForAnothersPage: it is of a task that has left memory, whose id lies among those of a page, and which never was in a line.
func TestAGrabDoesNotWaitForAnothersPage(t *testing.T) {
	for place, waits := range map[string]bool{"another lane": false, "another lane between": false, "in front of the page": false, "behind the page": false, "the page": true} {
		b := newBench(t, Config{})
		b.r.cfg.LineTasks, b.r.cfg.PageTasks, b.r.cfg.WindowTasks = 1, 2, 8
		b.keyed("b", nil, 40)
		b.r.shelveAt = b.now.MS + 1<<40
		b.keyed("a", nil, 1, 2)
		b.submit(nil, 21)
		b.r.shelveAt = 0
		b.written(b.keyed("a", nil, 9))
		b.submit(nil, 20)
		b.keyed("b", nil, 30)
		of := map[string]int{"another lane": 20, "another lane between": 21, "in front of the page": 40, "behind the page": 30, "the page": 1}[place]
		grab := taskstate.Event{Kind: taskstate.Started, ID: id(5), Fence: ids.Token{Position: b.r.Get(id(of)).Position, Version: 1}}
		b.seq++
		fx := b.step(&Events{Seq: b.seq, At: b.now.MS, ReplyTo: "matching", Events: []taskstate.Event{grab}})
		if answered := len(fx.Answers) > 0; answered == waits || waits != (len(fx.Pages) > 0) {
			t.Errorf("%s: answered %v, pages %v", place, answered, fx.Pages)
		}
	}
}

// TestReadsAreShared: a domain that has its pages read all the time does not keep others from theirs, and of its own the one wanted for longest is next.
func TestReadsAreShared(t *testing.T) {
	b := newBench(t, Config{})
	n := 1
	pages := make(map[uint64]*Page)
	shelve := func(domain, key string) (last *Page) {
		last = b.written(b.parkedKey(domain, key, n, 2))
		pages[last.Seq] = last
		n += 3
		return last
	}
	for i := range 3 * readsMax {
		shelve("flood", fmt.Sprint(i))
	}
	shop := shelve("shop", "a")
	asked, ever := make(map[uint64]bool), make(map[uint64]bool)
	read := func(fx *Effects) {
		for _, seq := range fx.Pages {
			asked[seq], ever[seq] = true, true
		}
	}
	for _, p := range pages {
		if p != shop {
			b.r.wantPage(b.r.pages[p.Seq])
		}
	}
	read(b.step(Tick{}))
	b.r.wantPage(b.r.pages[shop.Seq])
	for round := range 4 * readsMax {
		if round == 2 && !ever[shop.Seq] {
			t.Error("the page of the other domain is not read")
		}
		for seq, p := range pages {
			if asked[seq] {
				delete(asked, seq)
				again := *p
				fx := b.step(&again)
				if p != shop {
					b.r.wantPage(b.r.pages[seq])
				}
				read(fx)
				break
			}
		}
	}
	if len(asked) != readsMax || len(ever) != len(pages) {
		t.Errorf("%d pages are being read, %d of %d were", len(asked), len(ever), len(pages))
	}
}

// TestAPageThatIsWantedAgain keeps its place among those that wait to be read.
func TestAPageThatIsWantedAgain(t *testing.T) {
	b := newBench(t, Config{})
	var pages []*Page
	for i := range readsMax + 2 {
		pages = append(pages, b.written(b.parkedKey("flood", fmt.Sprint(i), 1+3*i, 2)))
	}
	want := func(i int) {
		b.r.wantPage(b.r.pages[pages[i].Seq])
		b.step(Tick{})
	}
	for i := range readsMax {
		want(i)
	}
	want(readsMax)
	want(readsMax + 1)
	want(readsMax)
	if fx := b.step(pages[0]); len(fx.Pages) != 1 || fx.Pages[0] != pages[readsMax].Seq {
		t.Errorf("pages %v are read next", fx.Pages)
	}
}
