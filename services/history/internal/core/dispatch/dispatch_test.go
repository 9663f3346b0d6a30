package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// ready is a task of a tasklist that is ready, and in the lists.
func ready(x *Lists, tasklist string, n uint64) *Entry {
	e := &Entry{Task: &taskstate.Task{ID: ids.NewTaskID(time.UnixMilli(1), 0, n), Domain: "shop", Tasklist: tasklist, Type: "t", State: taskstate.Ready}}
	x.Enqueue(e)
	x.Recount(e)
	return e
}

// A sweep goes on behind the task that it has come to, if that is granted meanwhile.
func TestASweepPassesOver(t *testing.T) {
	x, fx, all := New(Config{Shards: 1}), new(Effects), []*Entry(nil)
	for n := range uint64(3) {
		all = append(all, ready(x, "mail", n))
		x.Trigger(all[n], 1, fx)
	}
	x.sweep = sweep{running: true, next: all[1]}
	all[1].State = taskstate.Running
	x.Recount(all[1])
	testkit.Equal(t, "the sweep is at", x.sweep.next, all[2])
	testkit.NoError(t, x.Check(all))
	if x.Heal(1, fx); x.sweep.running {
		t.Error("the sweep does not end")
	}
}

// What is used once is forgotten: tasklists, and owners of a shard that have delivered everything.
func TestWhatIsUsedOnceIsForgotten(t *testing.T) {
	x := New(Config{Shards: 1})
	for n := range uint64(10_000) {
		x.Leave(ready(x, fmt.Sprint("list-", n), n))
		b := x.Batch(1, n+1, 1, 1, nil, 1)
		b.Fence()
	}
	testkit.NoError(t, x.Check(nil))
	if len(x.lists) > idleMax || cap(x.idle) > 4*idleMax || len(x.by[1].owners) > ownersMax+1 {
		t.Errorf("%d tasklists, %d owners", len(x.lists), len(x.by[1].owners))
	}
}

// Grants are made several at a time: one that is over keeps nothing in memory.
func TestI7_AGrantThatStaysKeepsNoOther(t *testing.T) {
	x, over := New(Config{Shards: 1}), []*grant(nil)
	b := x.Batch(1, 1, 1, 0, []Poll{{}}, grantsMax)
	for n := range uint64(grantsMax) {
		e := ready(x, "mail", n)
		e.State = taskstate.Running
		x.Recount(e)
		x.Granted(e, b, &taskstate.Event{Poll: 1})
		if over = append(over, e.grant); n > 0 {
			e.Received()
		}
	}
	for _, g := range over[1:] {
		testkit.Equal(t, "a grant that is over", *g, grant{})
	}
}

// Check sees what it is there for.
func TestCheckFinds(t *testing.T) {
	for what, spoil := range map[string]func(e *Entry){
		"counts":             func(e *Entry) { e.column.list.active[taskstate.Ready]++ },
		"counts 2 tasks, it": func(e *Entry) { e.column.tasks++ },
		"is of shard 2":      func(e *Entry) { e.Attempt.Shard = 2 },
		"its own shard":      func(e *Entry) { e.column.list.elsewhere = map[uint16]*runs{1: {}} },
		"waits for a grant":  func(e *Entry) { e.waits = false },
	} {
		x := New(Config{Shards: 1})
		e := ready(x, "mail", 1)
		x.Trigger(e, 1, new(Effects))
		testkit.NoError(t, x.Check([]*Entry{e}))
		if spoil(e); x.Check([]*Entry{e}) == nil {
			t.Errorf("%q is not found", what)
		}
	}
}

// The tasks of a domain are added up over its tasklists, and those that have most come first.
func TestDomainsAreCountedOverTheirTasklists(t *testing.T) {
	x, fx := New(Config{Shards: 1}), new(Effects)
	for n, of := range [][2]string{{"small", "mail"}, {"big", "mail"}, {"big", "sms"}, {"big", "mail"}, {"also", "mail"}} {
		e := &Entry{Task: &taskstate.Task{
			ID: ids.NewTaskID(time.UnixMilli(1), 0, uint64(n)), Domain: of[0], Tasklist: of[1], Type: "t", State: taskstate.Ready, ReadyAt: int64(1000 - n),
		}}
		x.Enqueue(e)
		x.Recount(e)
		x.Trigger(e, 1, fx)
	}
	x.FindOldest(0)
	all := x.Domains("", 2)
	testkit.Equal(t, "the first", all[0], DomainCensus{"big", Census{Ready: 3, Admitted: 3, OldestReadyAt: 997}})
	testkit.Equal(t, "the second", all[1], DomainCensus{"also", Census{Ready: 1, Admitted: 1, OldestReadyAt: 996}})
	testkit.Equal(t, "of two", len(all), 2)
	testkit.Equal(t, "of one domain", x.Domains("small", 9), []DomainCensus{{"small", Census{Ready: 1, Admitted: 1, OldestReadyAt: 1000}}})
}

// Domains are counted once a second, and the more seldom the more there are.
func TestDomainsAreCountedSeldom(t *testing.T) {
	for domains, next := range map[int]time.Duration{1: time.Second, 3000: 3 * time.Second} {
		x := New(Config{Shards: 1})
		come := func() {
			for n := range domains {
				e := &Entry{Task: &taskstate.Task{Domain: fmt.Sprint("d", n), Tasklist: "mail", Type: "t", State: taskstate.Ready}}
				x.Enqueue(e)
				x.Recount(e)
			}
		}
		counted := func(what string, after, at time.Duration, ready int64) {
			x.CountDomains(time.Minute + after)
			all, counted := x.LastCensus()
			testkit.Equal(t, what+": at", counted, time.Minute+at)
			testkit.MustEqual(t, what+": domains", len(all), domains)
			testkit.Equal(t, what+": ready", all[0].Ready, ready)
		}
		come()
		counted("at first", 0, 0, 1)
		before, _ := x.LastCensus()
		come()
		counted("too early", next-1, 0, 1)
		counted("in time", next, next, 2)
		testkit.Equal(t, "the former one", before[0].Ready, 1)
	}
}

// The ends of tasks count for their domain after their tasklist is forgotten, as long as it has another one.
func TestADomainCountsWhatEndedInForgottenTasklists(t *testing.T) {
	x := New(Config{Shards: 1})
	ready(x, "stays", 1)
	for n := range uint64(idleMax + 10) {
		e := ready(x, fmt.Sprint("brief", n), n)
		e.State = taskstate.Completed
		x.CountFailure(e)
		x.CountEnd(e)
		x.Leave(e)
	}
	testkit.Equal(t, "tasklists", len(x.order), 1+idleMax)
	all := x.Domains("", 9)
	testkit.Equal(t, "completed", all[0].Completed, int64(idleMax+10))
	testkit.Equal(t, "failed", all[0].Failed, int64(idleMax+10))
	testkit.Equal(t, "ready", all[0].Ready, 1)
	testkit.Equal(t, "admitted", all[0].Admitted, int64(idleMax+11))
}

// A task that comes back from the timer store is not admitted again, and each attempt counts as started.
func TestTasksAreAdmittedOnceAndStartWithEachAttempt(t *testing.T) {
	x := New(Config{Shards: 1})
	e := ready(x, "mail", 1)
	for range 2 {
		e.State = taskstate.Running
		x.Recount(e)
		x.Recount(e)
		e.State = taskstate.Backoff
		x.Recount(e)
	}
	x.Leave(e)
	e.Parkings++
	x.Enqueue(e)
	all := x.Domains("", 9)
	testkit.Equal(t, "admitted", all[0].Admitted, 1)
	testkit.Equal(t, "started", all[0].Started, 2)
}
