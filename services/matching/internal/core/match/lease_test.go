package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// keepPolling has some polls wait at any time, for d.
func (w *world) keepPolling(d time.Duration, list string, types ...string) {
	for end := w.now + d; w.now < end; w.run(ms) {
		polls := 0
		for _, o := range w.owners {
			for _, l := range o.s.lists {
				if l.Name == list {
					polls += l.queue.Alive()
				}
			}
		}
		for ; polls < 3; polls++ {
			w.count++
			w.poll(fmt.Sprint("inbox", w.count), waiting.Poll{Domain: "d", Tasklist: list, Max: 4, Types: types, For: time.Minute})
		}
	}
}

// taking counts the calls since one that take triggers.
func (w *world) taking(since int) int {
	n := 0
	for _, c := range w.calls[since:] {
		if len(c.Wants) > 0 {
			n++
		}
	}
	return n
}

// At a full limit a slot that becomes free goes to the next trigger at once: the tables are asked
// again once for each chunk, and not for each slot.
func TestSlotsAreUsedAgainWithoutACall(t *testing.T) {
	w, o := limited(t, 2, 5)
	w.ready("d", "l0", "a", 1, 300)
	calls := len(w.calls)
	began := w.now
	for w.done() < 300 && w.now-began < 10*time.Second {
		w.keepPolling(10*ms, "l0")
		if n := o.s.ahead(); n >= table.ChunkTriggersMax {
			t.Fatalf("%d triggers are read ahead", n)
		}
	}
	if w.done() != 300 || w.peak["d/a"] != 5 {
		t.Fatalf("after %v %d are done; %d ran at once, 5 may", w.now-began, w.done(), w.peak["d/a"])
	}
	if n := w.taking(calls); n > 30 { // three chunks, and once in leaseFor
		t.Errorf("%d calls took triggers of 300 tasks", n)
	}
	w.run(time.Second)
	if c := o.s.Census(); c.Reported != 0 || o.s.ahead() != 0 || o.s.list(table.Tasklist{Domain: "d", Name: "l0"}).ReadAhead() != 0 {
		t.Errorf("in the end %d slots are counted, %d triggers read ahead", c.Reported, o.s.ahead())
	}
}

// A trigger that is more urgent, or older, than those read ahead comes before them.
func TestWhatIsReadAheadOvertakesNothing(t *testing.T) {
	w, o := limited(t, 1, 2)
	w.ends = false
	late := w.ready("d", "l0", "a", 3, 20)
	w.keepPolling(40*ms, "l0")
	if n := o.s.ahead(); n != 18 {
		t.Fatalf("%d triggers are read ahead", n)
	}
	urgent := w.ready("d", "l0", "a", 1, 3)
	w.ready("d", "l1", "a", 1, 1) // of another tasklist, where no one polls
	w.run(20 * ms)
	testkit.Equal(t, "triggers are read ahead", o.s.ahead(), 0)
	w.finish(late[0])
	w.finish(late[1])
	w.keepPolling(20*ms, "l0")
	if urgent[0].state != "running" || urgent[1].state != "running" || w.running["d/a"] != 2 {
		t.Fatalf("the urgent ones are %s, %s; %d run", urgent[0].state, urgent[1].state, w.running["d/a"])
	}
	w.finish(urgent[0])
	w.finish(urgent[1])
	w.keepPolling(20*ms, "l0")
	if urgent[2].state != "running" || late[2].state != "running" || late[3].state != "ready" {
		t.Fatalf("then they are %s, %s, %s", urgent[2].state, late[2].state, late[3].state)
	}
	// Of one priority, by age.
	older := w.task("d", "l0", "a", 3, 0)
	now := w.now
	w.now = 0
	w.trigger(older)
	w.now = now
	w.run(20 * ms)
	w.finish(late[2])
	w.keepPolling(20*ms, "l0")
	if older.state != "running" || late[3].state != "ready" {
		t.Errorf("the older one is %s, the later %s", older.state, late[3].state)
	}
}

// Slots are not used again where another shard waits for them: the two take turns.
func TestSlotsAreNotUsedAgainWhereOthersWait(t *testing.T) {
	w := newWorld(t, 2, 2)
	w.limits["d/a"] = 4
	w.own(0, 1)
	w.own(1, 1)
	w.ready("d", "l0", "a", 1, 200)
	w.keepPolling(100*ms, "l0")
	testkit.MustEqual(t, "run", w.running["d/a"], 4)
	other := w.ready("d", "l1", "a", 1, 40)
	for i := range 100 {
		w.poll(fmt.Sprint("other", i), waiting.Poll{Domain: "d", Tasklist: "l1", Max: 1, For: time.Minute})
	}
	w.keepPolling(50*ms, "l0")
	calls := len(w.calls)
	w.keepPolling(250*ms, "l0")
	for _, c := range w.calls[calls:] { // what is read ahead would go back with the next call
		for _, want := range c.Wants {
			if want.Ahead > 0 {
				t.Fatalf("%+v", want)
			}
		}
	}
	done := 0
	for _, task := range other {
		if task.state == "done" {
			done++
		}
	}
	if done < 20 || w.done()-done < 20 || w.peak["d/a"] != 4 {
		t.Errorf("%d of the other shard are done and %d of this; %d ran at once", done, w.done()-done, w.peak["d/a"])
	}
}

// A limit that is not full costs no call per task: slots are leased ahead, and given back when they
// are not used.
func TestSlotsAreLeasedAhead(t *testing.T) {
	w, o := limited(t, 2, 1000)
	w.keepPolling(20*ms, "l0")
	began, calls := w.now, len(w.calls)
	for w.now-began < 500*ms {
		w.ready("d", "l0", "a", 1, 1)
		w.keepPolling(2*ms, "l0")
	}
	stored := 0
	for _, c := range w.calls[calls:] {
		for _, chunk := range c.Put {
			stored += chunk.Len()
		}
	}
	if all := len(w.tasks); stored > all/4 || len(w.calls)-calls > all/4 || all < 100 {
		t.Errorf("%d calls, %d of %d triggers were stored", len(w.calls)-calls, stored, all)
	}
	l := o.s.domains["d"].Limits["type/a"]
	if c := o.s.Census(); c.Reported <= c.Slots || c.Reported > 100 {
		t.Errorf("%d slots are leased, %d in use", c.Reported, c.Slots)
	}
	w.run(limit.LeaseFor + limit.ReportAfter + 20*ms)
	if n := o.s.Census().Reported; n != 0 || w.tables.Slots("d", []table.Ref{l.Ref}, epochMS)[0] != 0 {
		t.Errorf("%d slots are kept that no one uses", n)
	}
}

// Slots are used again within leaseFor only, up to a limit that was lowered meanwhile, and not by an
// owner that drains: it gives back what it leased and stores what it has read ahead.
func TestLeasesEnd(t *testing.T) {
	full := func() (*world, *owner, *limit.Limit, []*task) {
		w, o := limited(t, 1, 4)
		w.ends = false
		made := w.ready("d", "l0", "a", 1, 40)
		w.keepPolling(40*ms, "l0")
		l := o.s.domains["d"].Limits["type/a"]
		if w.running["d/a"] != 4 || o.s.ahead() != 36 {
			t.Fatalf("%d run, %d are read ahead", w.running["d/a"], o.s.ahead())
		}
		return w, o, l, made
	}

	w, _, _, made := full()
	w.run(limit.LeaseFor)
	calls := len(w.calls)
	w.finish(made[0])
	w.keepPolling(20*ms, "l0")
	if n := w.taking(calls); n == 0 || w.running["d/a"] != 4 {
		t.Errorf("after a while the tables were not asked; %d run", w.running["d/a"])
	}

	w, _, _, made = full()
	w.limit("d/a", 2)
	w.run(ms)
	for i := range 3 {
		w.finish(made[i])
	}
	w.keepPolling(30*ms, "l0")
	testkit.Equal(t, "run, 2 may by now", w.running["d/a"], 2)

	w, o, l, _ := full()
	o.give(func(in *Inputs) { in.Drain = true })
	w.run(3 * time.Second)
	stored := 0
	for _, k := range w.tables.Open("d", 0, "").Columns {
		stored += k.Triggers
	}
	if !o.drained || stored != 36 || w.running["d/a"] != 4 || w.tables.Slots("d", []table.Ref{l.Ref}, epochMS)[0] != 4 {
		t.Errorf("drained: %v; %d triggers are stored, %d run", o.drained, stored, w.running["d/a"])
	}

	w, o = limited(t, 1, 100)
	w.ends = false
	for range 10 {
		w.ready("d", "l0", "a", 1, 1)
		w.keepPolling(5*ms, "l0")
	}
	l = o.s.domains["d"].Limits["type/a"]
	leased := o.s.Census().Reported
	o.give(func(in *Inputs) { in.Drain = true })
	w.run(3 * time.Second)
	if n := w.tables.Slots("d", []table.Ref{l.Ref}, epochMS)[0]; !o.drained || leased <= 10 || n != 10 {
		t.Errorf("drained: %v; %d slots were leased, %d are counted, 10 are in use", o.drained, leased, n)
	}
}

// Tables that fail, or lose their memory, take nothing of what was read ahead along.
func TestWhatIsReadAheadIsNotLost(t *testing.T) {
	for _, what := range []string{"down", "forgotten", "no limit"} {
		w, o := limited(t, 1, 2)
		w.ends = false
		made := w.ready("d", "l0", "a", 1, 10)
		w.keepPolling(40*ms, "l0")
		testkit.MustEqual(t, "triggers are read ahead", o.s.ahead(), 8)
		switch what {
		case "down":
			w.down["d"] = true
			w.finish(made[0])
			w.ready("d", "l0", "a", 1, 1) // has it called
			w.keepPolling(500*ms, "l0")
			w.down["d"] = false
		case "forgotten":
			w.tables.Forget()
		case "no limit":
			w.limit("d/a", 0)
		}
		w.ends = true
		for _, task := range made {
			if task.state == "running" {
				w.finish(task)
			}
		}
		w.keepPolling(2*time.Second, "l0")
		if w.done() != len(w.tasks) || o.s.ahead() != 0 {
			t.Errorf("%s: %d of %d are done, %d are ahead: %s", what, w.done(), len(w.tasks), o.s.ahead(), w.undone())
		}
	}
}

// Polls that wait for a slot of triggers that were read ahead do not wait in vain.
func TestWhatIsReadAheadIsNotMissed(t *testing.T) {
	w, o := limited(t, 1, 2)
	w.ends = false
	w.ready("d", "l0", "a", 1, 10)
	w.keepPolling(40*ms, "l0")
	w.run(10 * time.Second)
	if ready, _ := counts(o.s, "d", "l0"); ready != 8 || len(w.hungry) > 0 {
		t.Errorf("%d triggers are said to be ready; history was asked for %v", ready, w.hungry)
	}
}

// What was read ahead waits while the table may give a poll something more urgent; else it needs no call.
func TestWhatIsReadAheadLetsTheMoreUrgentGoFirst(t *testing.T) {
	for _, c := range []struct {
		name     string
		priority int
		types    []string
		poll     time.Duration // when it comes; the slot is free after 3 ms
		first    bool          // the other one is
	}{
		{"the poll comes with the slot", 1, nil, 3 * ms, true},
		{"the tables are being asked", 1, nil, 2 * ms, true},
		{"as urgent", 3, nil, 3 * ms, false},
		{"less urgent", 4, nil, 3 * ms, false},
		{"of no use to the poll", 1, []string{"a"}, 0, false},
	} {
		w, o := limited(t, 1, 2)
		w.ends = false
		w.wait("first", 20)
		w.run(ms)
		made := w.ready("d", "l0", "a", 3, 20)
		w.run(10 * ms)
		other := w.ready("d", "l0", "b", c.priority, 1)[0]
		w.run(5 * ms)
		if w.running["d/a"] != 2 || o.s.ahead() != 18 || other.state != "ready" {
			t.Fatalf("%s: %d run, %d are read ahead, the other is %s", c.name, w.running["d/a"], o.s.ahead(), other.state)
		}
		w.after(2*ms, func() { w.finish(made[0]) }) // it is heard of a millisecond later
		w.after(c.poll, func() { w.wait("p", 1, c.types...) })
		calls := len(w.calls)
		w.run(12 * ms)
		if first := other.state == "running"; first != c.first || w.running["d/a"] == 2 == c.first {
			t.Errorf("%s: the other is %s, %d run", c.name, other.state, w.running["d/a"])
		}
		if n := w.taking(calls); n > 0 != c.first {
			t.Errorf("%s: %d calls took triggers", c.name, n)
		}
	}
}

// ahead counts the triggers that are read ahead.
func (s *Shard) ahead() (n int) {
	for _, l := range s.lists {
		n += l.ReadAhead()
	}
	return n
}
