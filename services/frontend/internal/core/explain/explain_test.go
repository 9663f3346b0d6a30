package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// now is the instant of the tests, 2026-11-30 12:00:00 UTC.
var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).UnixMilli()

const (
	hour   = int64(time.Hour / time.Millisecond)
	minute = hour / 60
)

// facts are those of a task of a tasklist with a free worker, with a change.
func facts(change ...func(*Facts)) *Facts {
	f := &Facts{
		NowMS:   now,
		Task:    Task{Domain: "shop", Tasklist: "mail", Type: "send", OrderKey: "account-7"},
		Workers: Workers{Polled: 2, Takers: 1, Free: true, Last: "mailer-1", AgoMS: 1200, KnownMS: hour},
	}
	for _, c := range change {
		c(f)
	}
	return f
}

// said are reasons as "CODE text", and "about" behind those that are snapshots.
func said(all []Reason) string {
	var lines []string
	for _, r := range all {
		line := fmt.Sprint(r.Code, " ", r.Text)
		if r.About {
			line += " (about)"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// The changes that the tests put together.
func state(s State) func(*Facts) { return func(f *Facts) { f.Task.State = s } }
func busy(f *Facts)              { f.Workers.Free = false }
func away(f *Facts)              { f.Workers = Workers{KnownMS: hour} }
func paused(f *Facts) {
	f.Pauses = []Pause{
		{Kind: "domain", Name: "shop", By: "root", Why: "not paid.", SinceMS: now - hour},
		{Kind: "type", Name: "send", UntilMS: now + hour},
	}
}

func limits(all ...Limit) func(*Facts) { return func(f *Facts) { f.Limits = all } }

// TestEachReason: alone, with its sentence.
func TestEachReason(t *testing.T) {
	for name, c := range map[string]struct {
		change []func(*Facts)
		want   string
	}{
		"nothing": {nil, ""},
		"ended":   {[]func(*Facts){func(f *Facts) { f.Task.State, f.Task.Ended = Ended, "dead" }, paused, away}, "FINISHED The task has ended: it is dead."},
		"runs": {
			[]func(*Facts){func(f *Facts) { f.Task.State, f.Task.Worker, f.Task.SinceMS = Runs, "mailer-1", now-minute }, paused, away},
			"RUNNING Worker mailer-1 runs the task since 2026-11-30 11:59:00 UTC.",
		},
		"runs somewhere": {[]func(*Facts){state(Runs)}, "RUNNING A worker without a name runs the task."},
		"due later":      {[]func(*Facts){state(Waits), func(f *Facts) { f.Task.DueMS = now + hour }}, "DUE_LATER The task is due at 2026-11-30 13:00:00 UTC."},
		"overdue": {
			[]func(*Facts){state(Waits), func(f *Facts) { f.Task.DueMS = now }},
			"DUE_LATER The task was due at 2026-11-30 12:00:00 UTC and comes back from the timer store. (about)",
		},
		"backoff": {
			[]func(*Facts){state(Fails), func(f *Facts) {
				f.Task.DueMS, f.Task.Failures, f.Task.Failure = now+minute, 3, "smtp.452 mailbox\n full."
			}},
			"BACKOFF Failure 3: smtp.452 mailbox full; the next attempt is due at 2026-11-30 12:01:00 UTC.",
		},
		"blocked": {
			[]func(*Facts){state(Fails), func(f *Facts) { f.Task.Blocks, f.Task.Failure = true, "no such account" }},
			"BLOCKED The task failed for good and blocks its order key account-7 until it is unblocked, skipped or cancelled: no such account.",
		},
		"on disk": {
			[]func(*Facts){state(Queued), func(f *Facts) { f.Queue = &Queue{Ref: "p3", Unread: 84} }},
			"NOT_ADMITTED The task is on disk and is not admitted yet: messages of its queue p3, which is that of several domains, are not read. (about)",
		},
		"on disk, in a queue of its domain": {
			[]func(*Facts){state(Queued), func(f *Facts) { f.Queue = &Queue{Ref: "p3/shop", Unread: 84, Own: true} }},
			"NOT_ADMITTED The task is on disk and is not admitted yet: about 84 messages of its queue p3/shop are not read. (about)",
		},
		"on disk, over its rate": {
			[]func(*Facts){state(Queued), func(f *Facts) { f.Queue = &Queue{Ref: "p3/shop", Unread: 1, Own: true, LowClass: true} }},
			"NOT_ADMITTED The task is on disk and is not admitted yet: about 1 message of its queue p3/shop are not read." +
				" The domain shop is over its full_weight_tasks_per_s, so the queue has one turn of five. (about)",
		},
		"on disk, and just read": {[]func(*Facts){state(Queued)}, "NOT_ADMITTED The task is on disk and is not admitted yet. (about)"},
		"paused": {
			[]func(*Facts){paused},
			"SUSPENDED The domain shop is paused by root until it is resumed: not paid.\nPAUSED The type send is paused until 2026-11-30 13:00:00 UTC.",
		},
		"no worker":        {[]func(*Facts){away}, "NO_WORKER No worker has polled the tasklist mail within the last 5m."},
		"no worker so far": {[]func(*Facts){away, func(f *Facts) { f.Workers.KnownMS = 82_400 }}, "NO_WORKER No worker has polled the tasklist mail within the last 1m22s. (about)"},
		"no worker for it": {
			[]func(*Facts){busy, func(f *Facts) { f.Workers.Takers = 0 }},
			"NO_WORKER_FOR_TYPE No worker of the tasklist mail accepts the type send; worker mailer-1 polled last, 1s ago. (about)",
		},
		"all are busy": {[]func(*Facts){busy}, "NO_WORKER_FREE All workers of the tasklist mail are busy or away; worker mailer-1 polled last, 1s ago. (about)"},
		"drained": {
			[]func(*Facts){away, func(f *Facts) {
				f.Workers.Drained = []DrainedWorker{{Worker: "mailer-1", By: "ann", Why: "new version"}}
			}},
			"NO_WORKER No worker has polled the tasklist mail within the last 5m.\nDRAINED Worker mailer-1 is drained by ann until it is resumed: new version.",
		},
		"matching is silent": {
			[]func(*Facts){away, func(f *Facts) { f.Workers.Silent = []int{1, 3} }},
			"MATCHING_SILENT The matching shards of the tasklist mail did not answer, so limits and workers are not known: 1, 3. (about)",
		},
	} {
		testkit.Equal(t, name, said(Reasons(facts(c.change...))), c.want)
	}
}

// TestFirstTasksOfAnOrderKey: the reason names the task and says what that one waits for.
func TestFirstTasksOfAnOrderKey(t *testing.T) {
	for want, first := range map[string]First{
		"task A runs on w":  {State: "running", Worker: "w"},
		"task A is running": {State: "running"},
		"task A is ready":   {State: "ready", DueMS: now - hour},
		"task A is backoff, and due at 2026-11-30 12:01:00 UTC":                                             {State: "backoff", DueMS: now + minute},
		"task A failed for good and blocks the key until it is unblocked, skipped or cancelled: no account": {State: "backoff", Blocks: true, Why: "no account"},
	} {
		first.TaskID, first.Waiting = "A", 4
		all := Reasons(facts(func(f *Facts) { f.First = &first }))
		testkit.MustEqual(t, want, said(all), "BEHIND_ORDER_KEY An earlier task of its order key account-7 has to end first: "+want+".")
		testkit.Equal(t, want, fmt.Sprint(all[0].TaskID, all[0].Ref, all[0].Waiting), "Aaccount-74")
	}
}

// TestLimits: those that are full or closed are reasons, whichever shard says so, and others are not.
func TestLimits(t *testing.T) {
	for want, l := range map[string]Limit{
		"": {Ref: "domain", Max: 2, Used: 1},
		"RATE The rate of type/a has no start left; the next one is tried at 2026-11-30 12:01:00 UTC. (about)":                     {Ref: "rate/type/a", Closed: true, NextMS: now + minute},
		"LIMIT_FULL The limit type/a is full: 2 of 2 slots are in use. Task B has had its slot for the longest. (about)":           {Ref: "type/a", Max: 2, Used: 2, Holder: "B"},
		"LIMIT_FULL The free slots of the limit type/a are kept for tasks that have waited for longer: 1 of 2 are in use. (about)": {Ref: "type/a", Max: 2, Used: 1, Closed: true},
		"LIMIT_UNKNOWN The attempts that use slots of the limit type/a are being counted. (about)":                                 {Ref: "type/a", Max: 2, Used: 2, Closed: true, Counting: true},
	} {
		testkit.Equal(t, l.Ref, said(Reasons(facts(limits(l)))), want)
	}
	testkit.Equal(t, "an open rate", said(Reasons(facts(limits(Limit{Ref: "rate/domain"})))), "")
}

// TestReasonsComeTogether: all of them, in the order in which the task meets them. Workers that are busy are no reason beside others.
func TestReasonsComeTogether(t *testing.T) {
	all := []func(*Facts){
		state(Fails), func(f *Facts) { f.Task.DueMS = now + minute }, func(f *Facts) { f.First = &First{TaskID: "A", State: "ready"} }, paused,
		limits(Limit{Ref: "domain", Max: 1, Used: 1}, Limit{Ref: "rate/type/send", Closed: true}),
	}
	codes := func(change ...func(*Facts)) string {
		var names []string
		for _, r := range Reasons(facts(append(change, all...)...)) {
			names = append(names, string(r.Code))
		}
		return strings.Join(names, " ")
	}
	const others = "BACKOFF BEHIND_ORDER_KEY SUSPENDED PAUSED LIMIT_FULL RATE"
	testkit.Equal(t, "with a free worker", codes(), others)
	testkit.Equal(t, "with busy workers", codes(busy), others)
	testkit.Equal(t, "without a worker", codes(away), others+" NO_WORKER")
}

// TestPausesSayWhoAndUntilWhen: for programs, too.
func TestPausesSayWhoAndUntilWhen(t *testing.T) {
	all := Reasons(facts(paused))
	testkit.Equal(t, "of the domain", all[0], Reason{Code: Suspended, Text: all[0].Text, By: "root", Ref: "domain", SinceMS: now - hour})
	testkit.Equal(t, "of the type", all[1], Reason{Code: Paused, Text: all[1].Text, Ref: "type/send", UntilMS: now + hour})
}

func TestDurations(t *testing.T) {
	for ms, want := range map[int64]string{0: "0s", 40: "40ms", 1499: "1s", 60_000: "1m", 630_000: "10m30s", 620_000: "10m20s", hour: "1h0m"} {
		testkit.Equal(t, fmt.Sprint(ms, " ms"), duration(ms), want)
	}
}
