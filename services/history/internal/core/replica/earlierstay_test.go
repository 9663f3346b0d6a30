package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// redrivenLater is a skip at 5 of task 1, whose submit at 2 this owner has not read, and its stay after a redrive at 6 as another store has it.
func redrivenLater(t *testing.T) (b *bench, asked Search, later *Entry) {
	b = newBench(t, Config{})
	b.seq = 4
	fx := b.ofKey(taskstate.Skipped, 1, 77)
	if len(fx.Searches) != 1 || len(fx.Answers) != 0 {
		t.Fatalf("%d searches, %d answers", len(fx.Searches), len(fx.Answers))
	}
	later = &Entry{Task: taskstate.Task{ID: id(1), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy, Parkings: 1}}
	later.Extra = &taskstate.Extra{Redriven: &taskstate.Redriven{Count: 1, Seq: 6}}
	return b, fx.Searches[0], later
}

// TestACommandOfAStayThatIsNotRead is carried out when that is read, though a later stay is known by then: other owners have carried it out.
func TestACommandOfAStayThatIsNotRead(t *testing.T) {
	submitted := ids.NewPosition(2, ids.LaneKeyed)
	for name, give := range map[string]func(*Found, *Entry){
		"behind the read levels": func(f *Found, later *Entry) {
			later.Before, later.Position = submitted, ids.NewPosition(8, 2)
			f.Unread = later
		},
		"in the timer store": func(f *Found, later *Entry) {
			later.Position = submitted
			f.Waiting = later
		},
	} {
		b, asked, later := redrivenLater(t)
		found := &Found{Search: asked}
		give(found, later)
		if fx := b.step(found); len(fx.Answers) != 0 {
			t.Errorf("%s: the skip gets %+v", name, b.said(fx))
		}
		b.seq = 1
		v := b.said(b.keyed("a", nil, 1))
		if got := b.r.Get(id(1)); got.State != taskstate.Dead || v.Code != "" {
			t.Errorf("%s: it is %s, the skip gets %+v", name, got.State, v)
		}
	}
}

// TestACommandOfAStayThatIsRead, before the one that is found, hears what became of it: the task remembers its last request, and one before that may have been decided.
func TestACommandOfAStayThatIsRead(t *testing.T) {
	for request, want := range map[uint64]fault.Code{77: "", 78: fault.Unknown} {
		b, asked, later := redrivenLater(t)
		b.r.lanes[ids.LaneKeyed].Skip(2)
		later.Before, later.Position = ids.NewPosition(2, ids.LaneKeyed), ids.NewPosition(8, 2)
		later.Extra.Updates = &taskstate.Updates{Applied: 1, Seq: 5, Request: request}
		if v := b.said(b.step(&Found{Search: asked, Unread: later})); v.Code != want {
			t.Errorf("%d: %+v", request, v)
		}
	}
}

// TestASkipOfATaskThatIsNotRead is promised what it will get.
func TestASkipOfATaskThatIsNotRead(t *testing.T) {
	for key, want := range map[string]fault.Code{"a": "", "b": fault.FailedPrecondition} {
		b, asked, unread := redrivenLater(t)
		unread.Parkings, unread.Position = 0, ids.NewPosition(2, ids.LaneKeyed)
		unread.Extra = &taskstate.Extra{Order: &taskstate.Order{Key: key}}
		if v := b.said(b.step(&Found{Search: asked, Unread: unread})); v.Code != want {
			t.Errorf("%s: %+v", key, v)
		}
	}
}

// TestAnOutcomeOfAStayBefore gets its verdict again: the attempt failed, or was handed back and its task then skipped, and redriven.
func TestAnOutcomeOfAStayBefore(t *testing.T) {
	for kind, want := range map[taskstate.Kind]fault.Code{taskstate.Failed: fault.Stale, taskstate.Released: "", taskstate.Succeeded: fault.Stale} {
		b := newBench(t, Config{})
		b.keyed("a", nil, 1)
		b.start(1)
		ended := b.r.Get(id(1)).Token()
		b.finish(taskstate.Released, 1)
		b.ofKey(taskstate.Skipped, 1, 77)
		redriven := cloneTask(b.r.Get(id(1)))
		redriven.Parkings, redriven.State = 1, taskstate.None
		redriven.Extra = &taskstate.Extra{Redriven: &taskstate.Redriven{Count: 1, Seq: b.seq + 1}}
		b.seq += 2
		b.step(&Submits{Lane: 3, Domain: "shop", Seq: b.seq, At: b.now.MS, Bytes: 10, Tasks: []*Entry{{Task: redriven}}})
		b.seq++
		fx := b.step(&Events{Seq: b.seq, At: b.now.MS, ReplyTo: "worker", Events: []taskstate.Event{{Kind: kind, ID: id(1), Fence: ended}}})
		if v := b.said(fx); v.Code != want {
			t.Errorf("%s: %+v", kind, v)
		}
	}
}
