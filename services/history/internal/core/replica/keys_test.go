package replica

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
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
		q.Domain = "shop"
		found, more := b.r.OrderKeys().Find(&q)
		s := ""
		for _, l := range found {
			s += fmt.Sprintf("%s %d+%d %s; ", l.Key, l.Head.ID[15], l.Waiting, l.Head.State)
		}
		if more {
			s += "more"
		}
		return s
	}
	const mid, early, late = "mid 4+0 ready; ", "early 5+1 ready; ", "late 1+1 backoff; "
	for _, c := range []struct {
		name string
		q    line.Query
		want string
	}{
		{"all", line.Query{Limit: 9}, mid + early + late},
		{"the first", line.Query{Limit: 1}, mid + "more"},
		{"two", line.Query{Limit: 2}, mid + early + "more"},
		{"exactly", line.Query{Limit: 3}, mid + early + late},
		{"blocked", line.Query{Limit: 9, Blocked: true}, late},
		{"where one waits", line.Query{Limit: 9, Waiting: true}, early + late},
		{"by name", line.Query{Limit: 9, Key: "early"}, early},
		{"none of the name", line.Query{Limit: 9, Key: "x"}, ""},
		{"behind", line.Query{Limit: 9, After: line.Place{Since: b.r.Get(id(4)).Since(), Key: "mid"}}, early + late},
	} {
		testkit.Equal(t, c.name, list(c.q), c.want)
	}
	if found, _ := b.r.OrderKeys().Find(&line.Query{Domain: "bank", Limit: 9}); len(found) > 0 {
		t.Error("another domain's are listed")
	}
}
