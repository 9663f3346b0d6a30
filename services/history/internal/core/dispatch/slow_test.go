package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/line"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// slowLists are lists in which tasks of the domain shop are late after 5 s and stuck after 10 s. Those of the domain late are never stuck, and the other way
// around. Attempts of the type film are stuck after a minute.
func slowLists() *Lists {
	return New(Config{Shards: 1, SlowAfter: func(domain string) (lateMS int64, stuckMS func(typ string) int64) {
		after := map[string][2]int64{"shop": {5000, 10_000}, "late": {5000, 0}, "stuck": {0, 10_000}}[domain]
		return after[0], func(typ string) int64 {
			if typ == "film" {
				return 60_000
			}
			return after[1]
		}
	}})
}

// found are the tasks that a search finds at a time, by what they are, since when, and their tasklist.
func found(x *Lists, nowMS int64) (all []string) {
	for _, o := range FindSlow(x, time.Duration(nowMS)*time.Millisecond, nowMS, nil) {
		kind := "late"
		if o.Stuck {
			kind = "stuck"
		}
		all = append(all, fmt.Sprint(kind, " ", o.Since, " ", o.Task.Tasklist))
	}
	return all
}

// starts lets a task run from a time on.
func (x *Lists) starts(e *Entry, atMS int64) {
	e.State, e.Attempt.StartedAt = taskstate.Running, atMS
	x.Recount(e)
}

// A task is late once for each time that it waits, and stuck once for each attempt, whichever shard has it.
func TestATaskIsSlowOnceEachTime(t *testing.T) {
	x, fx := slowLists(), new(Effects)
	e := ready(x, "mail", 0)
	e.ReadyAt = 1000
	x.Trigger(e, 1000, fx)
	testkit.Equal(t, "not late yet", found(x, 6000), nil)
	testkit.Equal(t, "late", found(x, 7001), []string{"late 1000 mail"})
	x.Trigger(e, 8000, fx)
	testkit.Equal(t, "its trigger was sent again", found(x, 9000), nil)
	x.starts(e, 9000)
	testkit.Equal(t, "it runs", found(x, 19_000), nil)
	testkit.Equal(t, "stuck", found(x, 20_001), []string{"stuck 9000 mail"})
	testkit.Equal(t, "still", found(x, 30_000), nil)
	e.State, e.ReadyAt = taskstate.Ready, 31_000
	x.Recount(e)
	x.Trigger(e, 31_000, fx)
	testkit.Equal(t, "the next time", found(x, 40_000), []string{"late 31000 mail"})
	e.Attempt.Shard = 3
	x.starts(e, 41_000)
	testkit.Equal(t, "an attempt of another shard", found(x, 60_000), []string{"stuck 41000 mail"})
	limited := ready(x, "mail", 1)
	limited.Attempt.Limits = new(taskstate.Path)
	x.starts(limited, 70_000)
	testkit.Equal(t, "an attempt that has a slot of a limit", found(x, 90_000), []string{"stuck 70000 mail"})
}

// The type of a task says after how long its attempt is stuck, and otherwise its domain.
func TestATypeSaysWhenAnAttemptIsStuck(t *testing.T) {
	x := slowLists()
	for n, typ := range []string{"film", "mail"} {
		e := ready(x, typ, uint64(n))
		e.Type = typ
		x.starts(e, 1000)
	}
	testkit.Equal(t, "after 10 s", found(x, 12_000), []string{"stuck 1000 mail"})
	testkit.Equal(t, "after a minute", found(x, 62_000), []string{"stuck 1000 film"})
}

// Attempts that run for too long are listed, those that run for longest first, of all shards, however many tasks wait.
func TestStuckAttemptsAreListed(t *testing.T) {
	x, fx := slowLists(), new(Effects)
	for n := range uint64(100) {
		x.Trigger(ready(x, "mail", 1000+n), 1, fx)
	}
	run := func(domain, tasklist, typ string, n uint64, shard uint16, atMS int64) {
		e := &Entry{Task: &taskstate.Task{ID: ids.NewTaskID(time.UnixMilli(1), 0, n), Domain: domain, Tasklist: tasklist, Type: typ, State: taskstate.Ready}}
		x.Enqueue(e)
		x.Recount(e)
		e.Attempt.Shard = shard
		x.starts(e, atMS)
	}
	run("shop", "mail", "send", 1, 0, 3000)
	run("shop", "mail", "film", 2, 3, 2000)
	run("shop", "sms", "send", 3, 0, 1000)
	run("shop", "mail", "send", 4, 0, 99_000)
	run("bank", "mail", "send", 5, 0, 1000)
	after := func(typ string) int64 {
		if typ == "film" {
			return 50_000
		}
		return 10_000
	}
	for name, c := range map[string]struct {
		q    StuckQuery
		want string
	}{
		"all":                {StuckQuery{Domain: "shop", Most: 9, NowMS: 100_000}, "3 [3 2 1]"},
		"two of them":        {StuckQuery{Domain: "shop", Most: 2, NowMS: 100_000}, "3 [3 2]"},
		"of a tasklist":      {StuckQuery{Domain: "shop", Tasklist: "mail", Most: 9, NowMS: 100_000}, "2 [2 1]"},
		"of a type":          {StuckQuery{Domain: "shop", Type: "film", Most: 9, NowMS: 100_000}, "1 [2]"},
		"before the type is": {StuckQuery{Domain: "shop", Most: 9, NowMS: 40_000}, "2 [3 1]"},
		"of another domain":  {StuckQuery{Domain: "bank", Most: 9, NowMS: 100_000}, "1 [5]"},
		"of no domain":       {StuckQuery{Domain: "cafe", Most: 9, NowMS: 100_000}, "0 []"},
	} {
		c.q.AfterMS = after
		oldest, found := x.Stuck(&c.q)
		var got []int
		for _, task := range oldest {
			got = append(got, int(task.ID[15]))
		}
		testkit.Equal(t, name, fmt.Sprint(found, got), c.want)
	}
}

// TestAnUpdateDoesNotReportATaskAgain: it has waited for as long as before.
func TestAnUpdateDoesNotReportATaskAgain(t *testing.T) {
	x, fx := slowLists(), new(Effects)
	e := ready(x, "mail", 0)
	x.Trigger(e, 1, fx)
	testkit.Equal(t, "late", found(x, 10_000), []string{"late 0 mail"})
	update := func(change func(*taskstate.Task)) {
		change(e.Task)
		x.Replace(e)
		x.Recount(e)
		x.Trigger(e, 10_000, fx)
	}
	update(func(task *taskstate.Task) { task.Priority = 5 })
	testkit.Equal(t, "with another priority", found(x, 20_000), nil)
	x.starts(e, 20_000)
	testkit.Equal(t, "its attempt", found(x, 40_000), []string{"stuck 20000 mail"})
}

// A domain that names no time after which a task is late, or stuck, has no such task.
func TestADomainWithoutTimesHasNoSlowTasks(t *testing.T) {
	for domain, want := range map[string][2][]string{"bank": {}, "late": {{"late 0 mail"}, nil}, "stuck": {nil, {"stuck 1000000 mail"}}} {
		x := slowLists()
		e := &Entry{Task: &taskstate.Task{Domain: domain, Tasklist: "mail", Type: "t", State: taskstate.Ready}}
		x.Enqueue(e)
		x.Recount(e)
		x.Trigger(e, 1, new(Effects))
		testkit.Equal(t, domain+" waits", found(x, 1_000_000), want[0])
		x.starts(e, 1_000_000)
		testkit.Equal(t, domain+" runs", found(x, 2_000_000), want[1])
	}
}

// A task that the timer fired late is late since it was due, and one that it fired early since then. One that had to wait for its order key is late since its
// turn came, but not before it is ready.
func TestSinceWhenATaskIsLate(t *testing.T) {
	x, fx := slowLists(), new(Effects)
	fired, keyed := ready(x, "fired", 1), ready(x, "keyed", 2)
	fired.ReadyAt, fired.DueAt, fired.Steps = 8000, 2000, []taskstate.Step{{Kind: taskstate.StepFired, At: 8000}}
	keyed.ReadyAt, keyed.Seat = 1000, &line.Seat{Task: keyed.Task, TurnAt: 3000}
	early, again := ready(x, "early", 3), ready(x, "again", 4)
	early.ReadyAt, early.DueAt, early.Steps = 1500, 9000, []taskstate.Step{{Kind: taskstate.StepFired, At: 1500}}
	again.ReadyAt, again.Seat = 2500, &line.Seat{Task: again.Task, TurnAt: 1000}
	for _, e := range []*Entry{fired, keyed, early, again} {
		x.Trigger(e, 8000, fx)
	}
	testkit.Equal(t, "late", found(x, 8001), []string{"late 2000 fired", "late 3000 keyed", "late 1500 early", "late 2500 again"})
}

// A tasklist with very many tasks that are late has them found some at a time. They delay neither another tasklist nor an attempt that is stuck.
func TestManyTasksAreLateSomeAtATime(t *testing.T) {
	x, fx := slowLists(), new(Effects)
	for n := range uint64(slowMax + 5) {
		x.Trigger(ready(x, "mail", n), 1, fx)
	}
	x.Trigger(ready(x, "sms", 1), 1, fx)
	x.starts(ready(x, "mail", slowMax+5), 1)
	all := found(x, 20_000)
	testkit.Equal(t, "at first", len(all), slowMax+1)
	testkit.Equal(t, "stuck", slices.Contains(all, "stuck 1 mail"), true)
	testkit.Equal(t, "of another tasklist", slices.Contains(all, "late 0 sms"), true)
	testkit.Equal(t, "then", len(found(x, 25_000)), 6)
	testkit.Equal(t, "at last", len(found(x, 30_000)), 0)
}

// TestManyTasklistsAreLateSomeAtATime: a domain that spreads its late tasks over many tasklists does not have an owner report them all in one turn. Tasklists
// take turns, so each of them is reported.
func TestManyTasklistsAreLateSomeAtATime(t *testing.T) {
	const lists = 40
	x, fx := slowLists(), new(Effects)
	for n := range uint64(lists * slowMax) {
		x.Trigger(ready(x, fmt.Sprint("l", n%lists), n), 1, fx)
	}
	all := 0
	for at := int64(20_000); at < 400_000; at += 10_000 {
		n := len(found(x, at))
		if n > slowTogether+slowMax {
			t.Fatalf("%d tasks are found together", n)
		}
		all += n
		x.Trigger(ready(x, "always", uint64(lists*slowMax)+uint64(at)), at, fx)
	}
	testkit.Equal(t, "found", all >= lists*slowMax, true)
}

// A search follows a second after the one before, and later after one that has visited very many tasks.
func TestSlowTasksAreSearchedNowAndThen(t *testing.T) {
	x, fx := slowLists(), new(Effects)
	x.Trigger(ready(x, "mail", 1), 1, fx)
	testkit.Equal(t, "late", found(x, 6000), []string{"late 0 mail"})
	x.Trigger(ready(x, "sms", 1), 1, fx)
	testkit.Equal(t, "within a second", found(x, 6999), nil)
	testkit.Equal(t, "after a second", found(x, 7000), []string{"late 0 sms"})
	for n := range uint64(40_000) {
		e := ready(x, "push", n)
		e.ReadyAt = 20_000
		x.Trigger(e, 20_000, fx)
	}
	testkit.Equal(t, "none of many is late", found(x, 20_000), nil)
	x.Trigger(ready(x, "sms", 2), 1, fx)
	testkit.Equal(t, "a second after many were visited", found(x, 21_000), nil)
	testkit.Equal(t, "later", found(x, 24_000), []string{"late 0 sms"})
}
