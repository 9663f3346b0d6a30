package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// pauseGroup has a group of domain d be paused, or go on.
func (w *world) pauseGroup(group string, paused bool) {
	if delete(w.pausedGroups, "d="+group); paused {
		w.pausedGroups["d="+group] = true
	}
	w.limitsChanged()
}

// startedOf counts the attempts of a group that have begun.
func (w *world) startedOf(group string) (n int) {
	for _, t := range w.tasks {
		if t.group == group && t.state != "ready" {
			n++
		}
	}
	return n
}

func (w *world) wantStarted(what string, want map[string]int) {
	w.t.Helper()
	for group, n := range want {
		if got := w.startedOf(group); got != n {
			w.t.Errorf("%s: of %q %d have started, want %d", what, group, got, n)
		}
	}
}

// pollAll has polls wait for so many tasks of both tasklists.
func (w *world) pollAll(n int) {
	for i := range n {
		w.poll(fmt.Sprint("inbox", w.now, i), waiting.Poll{Domain: "d", Tasklist: []string{"l0", "l1"}[i%2], Max: 1, For: time.Hour})
	}
}

// What waits of a group when it is paused, in columns that it shares or in its own, and what comes meanwhile, starts when it goes on and not before;
// all others start. A group of weight 0 and tasks without a group are no exception.
func TestAPausedGroupStartsWhenItGoesOn(t *testing.T) {
	for _, limited := range []bool{false, true} {
		for _, late := range []bool{false, true} { // the owner is another one than when the tasks came
			t.Run(fmt.Sprintf("limited=%v,late=%v", limited, late), func(t *testing.T) {
				w := newWorld(t, 2, 2)
				w.weights = map[string]float64{"idle": 0}
				if limited {
					w.limits["d*"] = 1000
				}
				w.own(0, 1)
				w.own(1, 1)
				groups := []string{"acme", "other", "idle", ""}
				add := func() {
					for range 10 {
						for _, group := range groups {
							w.grouped(group, "l0", "a", 1)
							w.grouped(group, "l1", "b", 1)
						}
					}
				}
				add()
				w.run(time.Second)
				if late {
					for shard := range 2 {
						w.kill(shard)
					}
				}
				w.pauseGroup("acme", true)
				w.pauseGroup("idle", true)
				if late {
					w.own(0, 2)
					w.own(1, 2)
				}
				w.run(time.Second)
				w.pollAll(200)
				w.run(5 * time.Second)
				add()
				w.run(20 * time.Second)
				w.wantStarted("paused", map[string]int{"acme": 0, "idle": 0, "other": 40, "": 40})
				w.pauseGroup("idle", false)
				w.run(2 * time.Second)
				w.wantStarted("one goes on", map[string]int{"acme": 0, "idle": 40})
				w.pauseGroup("acme", false)
				w.run(2 * time.Second)
				w.wantStarted("both go on", map[string]int{"acme": 40})
				w.run(time.Minute)
				for _, o := range w.owners {
					if !o.dead {
						for _, l := range o.s.lists {
							if !l.index.Empty() || l.source.Putting() {
								t.Errorf("%s holds %d triggers", l.Name, l.index.Triggers())
							}
						}
					}
				}
			})
		}
	}
}

// What a call that is under way takes while a group is paused is let go: it may be of that group. No task is lost.
func TestACallUnderWayDoesNotStartAPausedGroup(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.own(0, 1)
	for range 20 {
		w.grouped("acme", "l0", "a", 1)
		w.grouped("other", "l0", "a", 1)
	}
	w.run(time.Second)
	w.delay = func() time.Duration { return 300 * time.Millisecond }
	w.poll("inbox", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 40, For: time.Hour})
	w.run(50 * time.Millisecond)
	if !w.newest(0).s.domains["d"].Calling() {
		t.Fatal("no call is under way")
	}
	w.pauseGroup("acme", true)
	w.run(10 * time.Second)
	for range 4 {
		w.poll(fmt.Sprint("inbox", w.now), waiting.Poll{Domain: "d", Tasklist: "l0", Max: 40, For: time.Hour})
		w.run(5 * time.Second)
	}
	w.wantStarted("paused", map[string]int{"acme": 0, "other": 20})
}

// However much waits of a group that is paused, nothing is called for it, nothing kept, and history is not asked for it again and again.
func TestAPausedGroupCostsNothing(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.own(0, 1)
	w.pausedGroups["d=acme"] = true
	w.limitsChanged()
	w.pollAll(8)
	w.run(5 * time.Second)
	calls, retrigs := len(w.calls), len(w.retrigs)
	for range 40 {
		w.grouped("acme", "l0", "a", 100)
	}
	w.run(20 * time.Second)
	d := w.newest(0).s.domains["d"]
	if n := len(w.calls) - calls; n > 0 || len(w.retrigs) > retrigs || d.Chunks() > 0 {
		t.Errorf("%d calls, %d questions, %d chunks while all wait", n, len(w.retrigs)-retrigs, d.Chunks())
	}
	for _, l := range d.Sources {
		if !l.Index.Empty() {
			t.Errorf("%s has %d triggers", l.Name, l.Index.Triggers())
		}
	}
	w.pauseGroup("acme", false)
	w.run(2 * time.Second)
	testkit.Equal(t, "start for the 4 polls of their tasklist", w.startedOf("acme"), 4)
}

// What shared columns hold of other groups is asked for again at once, and stored behind all that is to be forgotten, however many columns
// there are: it starts before any poll is found to wait in vain.
func TestOtherGroupsAreFoundAgainAtOnce(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.own(0, 1)
	const many = 2*tablecall.CallCandidatesMax + 10
	for i := range many {
		w.grouped("other", "l0", fmt.Sprint("t", i), 1)
	}
	w.run(time.Second)
	w.delay = func() time.Duration { return time.Millisecond }
	asked := len(w.retrigs)
	w.pauseGroup("acme", true)
	w.run(2 * time.Second)
	testkit.Equal(t, "history is asked", len(w.retrigs)-asked, 1)
	testkit.Equal(t, "triggers are stored", w.newest(0).s.list(table.Tasklist{Domain: "d", Name: "l0"}).index.Triggers(), many)
	held := 0
	for _, c := range w.tables.Open("d", 0, "").Columns {
		held += c.Triggers
	}
	testkit.Equal(t, "the tables hold triggers", held, many)
}

// Grabs that have gathered when a group is paused, behind a batch that is under way, are taken back.
func TestWhatHasGatheredOfAPausedGroupIsTakenBack(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.own(0, 1, func(c *Config) { c.GrabEventsMax = 1 })
	w.delay = func() time.Duration { return 200 * time.Millisecond }
	w.pollAll(40)
	w.run(time.Second)
	w.grouped("acme", "l0", "a", 20)
	for w.newest(0).s.Census().Grabs < 2 { // one is under way
		w.run(10 * time.Millisecond)
	}
	w.pauseGroup("acme", true)
	w.run(time.Second)
	before := w.startedOf("acme")
	w.run(20 * time.Second)
	if n := w.startedOf("acme"); n != before || n == 20 || w.newest(0).s.Census().Grabs > 0 {
		t.Errorf("%d have started, %d later", before, n)
	}
	w.pauseGroup("acme", false)
	w.pollAll(60)
	w.run(time.Minute)
	w.wantStarted("it goes on", map[string]int{"acme": 20})
}
