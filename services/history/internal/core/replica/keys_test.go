package replica

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/line"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// ofKey reads an operator's command about the order key a.
func (b *bench) ofKey(kind taskstate.Kind, n int, request uint64) *Effects {
	b.Helper()
	b.seq++
	return b.step(&Events{Seq: b.seq, At: b.now.MS, ReplyTo: "operator", Events: []taskstate.Event{{
		Kind: kind, ID: id(n), Domain: "shop", OrderKey: "a", Message: "by ann", Update: &taskstate.Update{Request: request, Since: isNew},
	}}})
}

// TestACommandOfAKeyWaitsForItsTask that is not read yet. The caller learns at once what follows when it is: a task that is delayed is not skipped.
func TestACommandOfAKeyWaitsForItsTask(t *testing.T) {
	for delay, ends := range map[int64]bool{0: true, 60_000: false} {
		b := newBench(t, Config{})
		b.seq = 40
		task := taskstate.Task{
			ID: id(1), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy, DueAt: (b.now.MS + delay) * min(delay, 1),
			Extra: &taskstate.Extra{Order: &taskstate.Order{Key: "a"}},
		}
		f := &Found{Search: b.ofKey(taskstate.Skipped, 1, 77).Searches[0]}
		found := task
		found.Position = ids.NewPosition(30, ids.LaneKeyed)
		f.Unread, f.Ends[ids.LaneKeyed] = &found, 30
		if v := b.said(b.step(f)); (v.Code == "") != ends {
			t.Errorf("delayed by %d: %+v", delay, v)
		}
		b.step(&Submits{Lane: ids.LaneKeyed, Place: "shop", Seq: 30, At: b.now.MS, Bytes: 10, Tasks: []*Entry{{Task: task}}})
		if e := b.r.Get(id(1)); (e.State == taskstate.Dead) != ends {
			t.Errorf("delayed by %d: %s", delay, e.State)
		}
	}
}

// TestLinesOfKeys: those that wait for longest at first, page by page, of one domain.
func TestLinesOfKeys(t *testing.T) {
	b := newBench(t, Config{})
	block := func(task *taskstate.Task) {
		p := *task.Policy
		p.MaxAttempts = 1
		task.Policy, task.Extra.Order.Blocks = &p, true
	}
	b.keyed("late", block, 1, 2, 3)
	b.now.MS += 10
	b.keyed("mid", nil, 4)
	b.now.MS += 10
	b.keyed("early", nil, 5, 6)
	b.now.MS += 10
	b.start(1)
	b.finish(taskstate.Failed, 1)
	b.cancels("shop", 3)
	list := func(q line.Query) string {
		var found []line.Line
		b.r.Walk(&dispatch.Walk{Domain: "shop"}, func(e *dispatch.Entry) {
			if l, ok := q.Pick(e.Seat); ok {
				found = dispatch.KeepFirst(found, l, 9, func(a, b line.Line) int { return a.Compare(b.Place) })
			}
		})
		s := ""
		for _, l := range found {
			s += fmt.Sprintf("%s %d+%d %s; ", l.Key, l.Head.ID[15], l.Waiting, l.Head.State)
		}
		return s
	}
	const mid, early, late = "mid 4+0 ready; ", "early 5+1 ready; ", "late 1+1 backoff; "
	for _, c := range []struct {
		name string
		q    line.Query
		want string
	}{
		{"all", line.Query{}, mid + early + late},
		{"blocked", line.Query{Blocked: true}, late},
		{"where one waits", line.Query{Waiting: true}, early + late},
		{"behind", line.Query{After: line.Place{Since: b.r.Get(id(4)).Since(), Key: "mid"}}, early + late},
	} {
		testkit.Equal(t, c.name, list(c.q), c.want)
	}
	if l, ok := b.r.OrderKeys().Of("shop", "early"); !ok || l.Head.ID != id(5) || l.Waiting != 1 {
		t.Errorf("by name: %+v, %t", l, ok)
	}
	for _, at := range [][2]string{{"shop", "x"}, {"bank", "early"}} {
		if _, ok := b.r.OrderKeys().Of(at[0], at[1]); ok {
			t.Errorf("%v has a line", at)
		}
	}
}
