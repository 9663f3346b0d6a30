package match

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// overflowAfter is when the policies of the tests act.
const overflowAfter = 200 * time.Millisecond

// stop decides what a policy asks for, as history does. No task is named that is not ready for long enough by the asker's own word.
func (w *world) stop(s *grab.Stop, stale bool) grab.Verdict {
	t := w.tasks[s.Trigger.ID]
	running := t.state == "running" && t.version == s.Trigger.Version
	switch {
	case stale:
		return grab.Verdict{Refused: string(fault.Stale), Fenced: true}
	case s.Displace && running:
		t.leaving = true
	case s.Displace:
		return grab.Verdict{Refused: string(fault.Stale)}
	case t.rejected && t.version+1 == s.Trigger.Version:
	case t.state != "ready" || t.version+1 != s.Trigger.Version:
		return grab.Verdict{Refused: string(fault.Stale)}
	case epochMS+t.readyAt.Milliseconds() > s.ReadyBy:
		return grab.Verdict{Refused: string(fault.FailedPrecondition)}
	default:
		if now := epochMS + w.now.Milliseconds(); s.ReadyBy > now-overflowAfter.Milliseconds() {
			w.t.Fatalf("%d ms before its time a task is rejected", s.ReadyBy+overflowAfter.Milliseconds()-now)
		}
		t.state, t.rejected = "done", true
	}
	w.stops = append(w.stops, *s)
	return grab.Verdict{}
}

// holders are the attempts that hold slots of limits, and the tasks that wait.
func (w *world) holders(a *question.Question) []overflow.Holders {
	all := make([]overflow.Holders, len(a.Holders))
	for i, q := range a.Holders {
		for _, t := range w.sorted() {
			switch {
			case t.id.Partition() != a.Partition || t.domain != a.Domain:
			case t.state == "ready":
				if slices.Contains(q.Types, t.typ) && (q.Group == "" || q.Group == t.group) && epochMS+t.readyAt.Milliseconds() <= q.ReadyBy && all[i].Waiting < q.Most {
					all[i].Waiting++
				}
			case t.state != "running" || !slices.Contains(t.path, q.Ref):
			case t.leaving:
				all[i].Leaving++
			default:
				all[i].Oldest = append(all[i].Oldest, overflow.OldHolder{
					Trigger: ids.Trigger{ID: t.id, Version: t.version}, StartedAtMS: t.triggeredAt.Milliseconds(),
				})
			}
		}
	}
	return all
}

// rooms has n polls of ten tasks each wait.
func (w *world) rooms(n int) {
	for i := range n {
		w.poll(fmt.Sprint("room", i), waiting.Poll{Domain: "d", Tasklist: "l0", Max: 10, For: time.Hour})
	}
}

// ended counts the tasks that were rejected, and the attempts that were asked to stop.
func (w *world) ended() (rejected, leaving int) {
	for _, t := range w.tasks {
		if t.rejected {
			rejected++
		}
		if t.leaving {
			leaving++
		}
	}
	return rejected, leaving
}

func (w *world) wantEnded(rejected, leaving int) {
	w.t.Helper()
	if r, l := w.ended(); r != rejected || l != leaving {
		w.t.Fatalf("%d are rejected and %d asked to stop, want %d and %d", r, l, rejected, leaving)
	}
}

// TestAFullLimitRejectsWhatHasWaited: not before its time, none that runs, and none that finds a slot.
func TestAFullLimitRejectsWhatHasWaited(t *testing.T) {
	for key, ref := range map[string]table.Ref{"d/a": "type/a", "d/a*": "type/a/group"} {
		w, o := begun(t, 2)
		w.ends, w.policies[key] = false, limit.RejectNewest
		w.group = func() string { return "g" }
		w.set(o, map[string]int{key: 2})
		w.ready("d", "l0", "a", 3, 7)
		w.serve("l0")
		w.run(overflowAfter / 2)
		w.wantEnded(0, 0)
		w.run(3 * time.Second)
		w.wantEnded(5, 0)
		if u := o.use(ref); u.Rejected != 5 {
			t.Errorf("%s: %+v", key, u)
		}
		for _, one := range w.sorted() {
			if one.state == "running" {
				w.over(one, "done")
			}
		}
		w.run(time.Second)
		w.ready("d", "l0", "a", 3, 2)
		w.run(3 * time.Second)
		w.wantEnded(5, 0)
		testkit.Equal(t, "running", w.runs(key[:3]), []int{2})
	}
}

// TestTheOldestMakeRoomOnce: one for each that waits, and no more while they are on their way out, however many rounds there are.
func TestTheOldestMakeRoomOnce(t *testing.T) {
	w, o := begun(t, 3)
	w.ends, w.policies["d/a"] = false, limit.CancelOldest
	w.set(o, map[string]int{"d/a": 4})
	var running []*task
	w.rooms(8)
	for range 4 {
		running = append(running, w.ready("d", "l0", "a", 3, 1)...)
		w.run(50 * time.Millisecond)
	}
	testkit.Equal(t, "running", w.runs("d/a"), []int{4})
	w.ready("d", "l0", "a", 3, 2)
	w.run(overflowAfter / 2)
	w.wantEnded(0, 0)
	w.run(10 * time.Second)
	w.wantEnded(0, 2)
	if !running[0].leaving || !running[1].leaving {
		t.Error("not the oldest were asked")
	}
	w.over(running[0], "done")
	w.over(running[1], "done")
	w.run(10 * time.Second)
	w.wantEnded(0, 0)
	testkit.Equal(t, "running", w.runs("d/a"), []int{4})
	if u := o.use("type/a"); u.Displaced != 2 || w.counts.Displaced != 2 {
		t.Errorf("%+v", u)
	}
}

// TestNoPolicyActsOnWhatIsNotFull: on a limit that is counted, on a pause, on a limit of which others hold the slots up, or without a worker.
func TestNoPolicyActsOnWhatIsNotFull(t *testing.T) {
	w, o := begun(t, 1)
	w.ends, w.policies["d/a"], w.policies["d/b"] = false, limit.RejectNewest, limit.CancelOldest
	w.pauses["d/b"] = true
	w.set(o, map[string]int{"d/a": 1, "d/b": 1, "d": 1})
	w.ready("d", "l0", "c", 3, 1)
	w.serve("l0")
	w.ready("d", "l0", "a", 3, 3)
	w.ready("d", "l0", "b", 3, 3)
	w.run(10 * time.Second)
	w.wantEnded(0, 0) // the domain is full, which has no policy
}

// TestANewOwnerRejectsOnlyWhatFindsNoSlot: however long tasks wait while a partition has not said what runs, they find the slots that are free. Then
// the policy acts as before.
func TestANewOwnerRejectsOnlyWhatFindsNoSlot(t *testing.T) {
	w, o := begun(t, 2)
	w.ends, w.policies["d/a"] = false, limit.RejectNewest
	w.set(o, map[string]int{"d/a": 4})
	w.ready("d", "l0", "a", 3, 2)
	w.serve("l0")
	testkit.Equal(t, "running", w.runs("d/a"), []int{2})
	o.dead = true
	w.partitions[1].silent = true
	w.own(0, 2)
	w.rooms(8)
	w.ready("d", "l0", "a", 3, 2)
	w.run(10 * time.Second)
	w.wantEnded(0, 0)
	testkit.Equal(t, "running", w.runs("d/a"), []int{2})
	w.speak(1)
	w.run(3 * time.Second)
	w.wantEnded(0, 0)
	testkit.Equal(t, "running", w.runs("d/a"), []int{4})
	w.ready("d", "l0", "a", 3, 3)
	w.run(3 * time.Second)
	w.wantEnded(3, 0)
}

// TestAPauseKeepsGroupsFromBeingRejected: what was set aside for a slot of its group waits for the pause once there is one.
func TestAPauseKeepsGroupsFromBeingRejected(t *testing.T) {
	for _, pause := range []string{"d/a", "d#l0"} {
		w, o := begun(t, 2)
		w.ends, w.policies["d/a*"] = false, limit.RejectNewest
		w.group = func() string { return "g" }
		w.set(o, map[string]int{"d/a*": 2})
		w.ready("d", "l0", "a", 3, 7)
		w.serve("l0")
		w.wantEnded(0, 0)
		w.pauses[pause] = true
		w.limitsChanged()
		w.run(10 * time.Second)
		w.wantEnded(0, 0)
	}
}

// TestOnlyWhatAPollWaitsForIsRejected: not what is of a type that no poll accepts, nor what waits when the polls are over.
func TestOnlyWhatAPollWaitsForIsRejected(t *testing.T) {
	for _, key := range []string{"d:a,b", "d:a,b*"} {
		for wait, rejected := range map[time.Duration]int{time.Hour: 1, overflowAfter / 2: 0} {
			w, o := begun(t, 2)
			w.shared = []string{"d:a,b"}
			w.ends, w.policies[key] = false, limit.RejectNewest
			w.group = func() string { return "g" }
			w.set(o, map[string]int{key: 2})
			w.ready("d", "l0", "a", 3, 3)
			w.ready("d", "l0", "b", 3, 4)
			for i := range 8 {
				w.poll(fmt.Sprint("room", i), waiting.Poll{Domain: "d", Tasklist: "l0", Types: []string{"a"}, Max: 10, For: wait})
			}
			w.run(10 * time.Second)
			w.wantEnded(rejected, 0)
		}
	}
}

// TestAPauseHoldsWhatWasToBeRejected: what waits on, by history's word, is of a group that was paused meanwhile. It starts no sooner than others of it.
func TestAPauseHoldsWhatWasToBeRejected(t *testing.T) {
	testkit.Slow(t, "pairs tens of thousands of tasks")
	for at := overflowAfter - 20*ms; at < overflowAfter+1200*ms; at += 2 * ms {
		w, o := begun(t, 2)
		w.ends, w.policies["d/a"] = false, limit.RejectNewest
		w.set(o, map[string]int{"d/a": 2})
		w.ready("d", "l0", "a", 3, 2)
		w.pollAll(40)
		w.run(100 * ms)
		for _, one := range w.grouped("g", "l0", "a", 5) {
			one.readyAt += time.Hour // so they have not waited for long enough
		}
		w.run(at)
		w.pauseGroup("g", true)
		w.run(time.Second)
		w.set(o, map[string]int{"d/a": 20})
		w.run(time.Second)
		w.wantStarted(fmt.Sprint("paused after ", at), map[string]int{"g": 0})
		w.pauseGroup("g", false)
		w.run(3 * time.Second)
		w.wantStarted(fmt.Sprint("it went on after ", at), map[string]int{"g": 5})
	}
}

// TestNothingIsRejectedThatIsPaused: a call may be under way that takes what is to be rejected when its group or its type is paused, or a batch.
func TestNothingIsRejectedThatIsPaused(t *testing.T) {
	for _, key := range []string{"d/a", "d/a*"} {
		for at := overflowAfter; at < overflowAfter+300*ms; at += ms {
			w, o := begun(t, 2, func(c *Config) { c.GrabEventsMax = 2 })
			w.ends, w.policies[key] = false, limit.RejectNewest
			w.delay = func() time.Duration { return 5 * ms }
			w.set(o, map[string]int{key: 2})
			w.grouped("g", "l0", "a", 7)
			w.pollAll(40)
			w.run(at)
			if at%(2*ms) == 0 { // checkPaused sees what is sent from now on
				w.pauseGroup("g", true)
			} else {
				w.pauses["d/a"] = true
				w.limitsChanged()
			}
			w.run(time.Second)
		}
	}
}

// openRound is a round that a silent partition holds open: as many run as may, and the two that had waited when it was asked start now,
// since two that ran have ended.
func openRound(t *testing.T, most int) *world {
	t.Helper()
	w, o := begun(t, 2)
	w.ends, w.policies["d/a"] = false, limit.CancelOldest
	w.set(o, map[string]int{"d/a": most})
	w.pollAll(40)
	running := w.readyIn(0, most)
	w.run(100 * ms)
	w.readyIn(0, 2)
	w.partitions[1].silent = true
	w.run(overflowAfter + time.Second)
	w.finish(running[most-2])
	w.finish(running[most-1])
	return w
}

// TestARoundIsOfWhatWaitsAtItsEnd: a partition was silent, and what had waited when it was asked has started meanwhile.
func TestARoundIsOfWhatWaitsAtItsEnd(t *testing.T) {
	w := openRound(t, 3)
	w.run(100 * ms)
	testkit.Equal(t, "running", w.runs("d/a"), []int{3})
	w.readyIn(0, 1)
	w.run(overflowAfter / 2)
	w.speak(1)
	w.run(20 * ms)
	w.wantEnded(0, 0)
	w.run(3 * time.Second)
	w.wantEnded(0, 1) // now it has waited
}

// TestARoundThatTookLongIsVoid: what waits at its end is not what was counted, though one of it has waited for long enough.
func TestARoundThatTookLongIsVoid(t *testing.T) {
	w := openRound(t, 4)
	w.run(3 * time.Second)
	w.readyIn(0, 1)
	w.run(2 * overflowAfter)
	w.readyIn(0, 3)
	w.speak(1)
	w.run(20 * ms)
	w.wantEnded(0, 0)
	w.run(3 * time.Second)
	w.wantEnded(0, 4)
}

// TestAQuestionIsBounded: many groups have many attempts each, and each group is asked about, though not all at once.
func TestAQuestionIsBounded(t *testing.T) {
	testkit.Slow(t, "pairs tens of thousands of tasks")
	w, o := begun(t, 1)
	w.ends, w.policies["d/a*"] = false, limit.CancelOldest
	const groups, each = 40, overflow.Max / 2
	w.set(o, map[string]int{"d/a*": each})
	for n := range groups {
		w.grouped(fmt.Sprint("g", n), "l0", "a", each)
	}
	for i := range 20 {
		w.poll(fmt.Sprint("worker", i), waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1000, For: time.Hour})
		w.run(20 * ms)
	}
	testkit.Equal(t, "running", len(w.tasks), w.grantedN)
	for n := range groups {
		w.grouped(fmt.Sprint("g", n), "l0", "a", each)
	}
	w.run(4 * time.Second)
	w.wantEnded(0, groups*each)
	for _, a := range w.asked {
		n := 0
		for _, q := range a.Holders {
			n += q.Most + len(q.Types)
		}
		if n > 4096 {
			t.Errorf("one question asks for %d attempts of %d limits", n, len(a.Holders))
		}
	}
}

// readyIn makes n tasks in a partition of the log.
func (w *world) readyIn(partition, n int) (made []*task) {
	for range n {
		made = append(made, w.task("d", "l0", "a", 3, partition))
	}
	w.trigger(made...)
	return made
}

// TestAFloodIsRejectedAsItComes: a call takes a part of it, and the next one follows.
func TestAFloodIsRejectedAsItComes(t *testing.T) {
	w, o := begun(t, 2)
	w.ends, w.policies["d/a"] = false, limit.RejectNewest
	w.set(o, map[string]int{"d/a": 2})
	w.pollAll(40)
	w.ready("d", "l0", "a", 3, 2)
	w.run(100 * ms)
	const flood = 20*overflow.Max + 7
	w.ready("d", "l0", "a", 3, flood)
	w.run(3 * time.Second)
	w.wantEnded(flood, 0)
	testkit.Equal(t, "running", w.runs("d/a"), []int{2})
}

// TestAPolicyActsInABusyDomain: there is always a call under way, for other tasks, and the tables are slow.
func TestAPolicyActsInABusyDomain(t *testing.T) {
	for policy, want := range map[limit.OnFull][2]int{limit.RejectNewest: {4, 0}, limit.CancelOldest: {0, 2}} {
		w, o := begun(t, 1)
		w.ends, w.policies["d/a"] = false, policy
		w.set(o, map[string]int{"d/a": 2})
		for i := range 8 {
			w.poll(fmt.Sprint("room", i), waiting.Poll{Domain: "d", Tasklist: "l0", Types: []string{"a"}, Max: 10, For: time.Hour})
		}
		w.run(100 * ms)
		w.ready("d", "l0", "a", 3, 6)
		w.delay = func() time.Duration { return 10 * ms }
		for range 3000 {
			w.ready("d", "l1", "b", 3, 1)
			w.run(ms)
		}
		w.wantEnded(want[0], want[1])
	}
}
