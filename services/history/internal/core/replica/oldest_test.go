package replica

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// oldestIs looks for the oldest ready task, so many seconds later.
func (b *bench) oldestIs(what string, later int64, want time.Duration) {
	b.Helper()
	b.now.MS += later * 1000
	b.now.Mono += time.Duration(later) * time.Second
	b.step(Tick{})
	if got := b.r.OldestReady(b.now.MS); got != want {
		b.Errorf("%s: the oldest has waited for %v, want %v", what, got, want)
	}
}

// TestTheOldestReadyTask is found whichever its tasklist is, and however often its trigger was sent again. One that runs does not
// count, one whose next attempt is due does from then on.
func TestTheOldestReadyTask(t *testing.T) {
	b := newBench(t, Config{})
	b.oldestIs("nothing is there", 1, 0)
	b.submit(nil, 1)
	b.oldestIs("one", 100, 100*time.Second)
	b.submit(func(t *taskstate.Task) { t.Tasklist = "sms" }, 2, 3)
	b.oldestIs("a younger one came", 10, 110*time.Second)
	b.equal("sent again", triggered(b.hungry("shop", "mail")), []int{1})
	b.oldestIs("its trigger is new", 1, 111*time.Second)
	b.start(1)
	b.start(2)
	b.oldestIs("the first ones run", 1, 12*time.Second)
	b.finish(taskstate.Cancel, 3)
	b.finish(taskstate.Failed, 2)
	b.oldestIs("one has failed, and it was not looked again", 0, 12*time.Second)
	b.oldestIs("it waits for its next attempt", 1, 0)
	due := b.r.tasks[id(2)].DueAt
	b.now.MS = due
	b.oldestIs("which is due", 5, 5*time.Second)
}

// TestTasklistsThatNoOneTakes come with their oldest task that is not paused, the oldest first.
func TestTasklistsThatNoOneTakes(t *testing.T) {
	var paused func(tasklist, typ, group string) bool
	b := newBench(t, Config{WindowTasks: 1000, WindowBytes: 1 << 20, Shards: 2, CheckpointEveryMS: 1 << 50, PurgeEveryMS: 1 << 50, SnapshotBytes: 1 << 50, SnapshotEveryMS: 1 << 50, Paused: func(string) func(tasklist, typ, group string) bool { return paused }})
	found := func(what string, want ...string) {
		t.Helper()
		b.now.MS, b.now.Mono = b.now.MS+1000, b.now.Mono+time.Second
		b.step(Tick{})
		var got []string
		for _, x := range b.r.NotTaken() {
			got = append(got, fmt.Sprintf("%s/%s %ds", x.Domain, x.Name, (b.now.MS-x.ReadyAt)/1000))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: found %v, want %v", what, got, want)
		}
	}
	found("nothing is there")
	b.submit(nil, 1)
	found("one", "shop/mail 1s")
	b.submit(func(task *taskstate.Task) { task.Tasklist, task.Type = "sms", "long" }, 2)
	b.submit(func(task *taskstate.Task) { task.Tasklist = "sms" }, 3)
	found("two tasklists", "shop/mail 2s", "shop/sms 1s")
	paused = func(tasklist, typ, _ string) bool { return tasklist == "mail" || typ == "long" }
	found("a tasklist and a type are paused", "shop/sms 2s")
	b.start(3)
	found("and the rest runs")
}

// TestTheOldestReadyTaskIsLookedForSeldom: not more often than once a second, and the less often the more tasks there are.
func TestTheOldestReadyTaskIsLookedForSeldom(t *testing.T) {
	for tasks, next := range map[int]time.Duration{1000: time.Second, 30_000: 1500 * time.Millisecond} {
		r, now := readyTasks(tasks)
		after := func(d time.Duration) time.Duration {
			at := Now{MS: now.MS + d.Milliseconds(), Mono: now.Mono + d}
			r.Step(Tick{}, at, new(Effects))
			return r.OldestReady(at.MS)
		}
		after(0)
		for _, e := range r.tasks {
			e.ReadyAt -= 60_000
			break
		}
		if age := after(next - 1); age >= time.Minute {
			t.Errorf("%d tasks: it is looked again before %v are over", tasks, next)
		}
		if age := after(next); age < time.Minute {
			t.Errorf("%d tasks: the oldest has waited for %v", tasks, age)
		}
	}
}

// TestAttemptsThatEndInSilence are counted by their reason, once, and not again by a takeover.
func TestAttemptsThatEndInSilence(t *testing.T) {
	b := newBench(t, Config{})
	late := *storyPolicy
	late.HeartbeatTimeoutMS = 0
	b.submit(nil, 1, 2)
	b.submit(func(t *taskstate.Task) { t.Policy = &late }, 3)
	for n := 1; n <= 3; n++ {
		b.start(n)
	}
	b.now.MS += storyPolicy.StartToCloseMS + 60_000
	silent := func(n int, undelivered bool, beats int64) Counts {
		t := b.r.Get(id(n))
		b.seq++
		at := b.now.MS
		if beats > 0 {
			at = t.Attempt.StartedAt + beats
		}
		return b.step(&Events{Seq: b.seq, At: at, Events: []taskstate.Event{
			{Kind: taskstate.Expired, ID: id(n), Fence: t.Token(), Undelivered: undelivered},
			{Kind: taskstate.Expired, ID: id(n), Fence: t.Token(), Undelivered: undelivered}, // refused: it is over
		}}).Counts
	}
	for what, c := range map[string]struct {
		got, want Counts
	}{
		"no heartbeat":  {silent(1, false, storyPolicy.HeartbeatTimeoutMS), Counts{Silent: 1}},
		"not delivered": {silent(2, true, 0), Counts{Undelivered: 1}},
		"the deadline":  {silent(3, false, 0), Counts{Overdue: 1}},
	} {
		if got := (Counts{Silent: c.got.Silent, Overdue: c.got.Overdue, Undelivered: c.got.Undelivered}); got != c.want {
			t.Errorf("%s: %+v", what, got)
		}
	}
	again := &bench{T: t, r: New(smallConfig(), begin(time.Hour)), now: Now{MS: scenarioStart}}
	again.submit(nil, 1)
	again.start(1)
	again.seq++
	fence := ids.Token{Position: ids.NewPosition(1, 3), Version: 1, Nonce: 5}
	fx := again.step(&Events{Seq: again.seq, At: again.now.MS + 3_600_000, Events: []taskstate.Event{{Kind: taskstate.Expired, ID: id(1), Fence: fence}}})
	if fx.Counts.Silent+fx.Counts.Overdue != 0 || again.r.Get(id(1)).State == taskstate.Running {
		t.Errorf("a takeover: %+v, the task is %s", fx.Counts, again.r.Get(id(1)).State)
	}
}
