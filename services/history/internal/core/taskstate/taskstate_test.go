package taskstate

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const t0 = int64(1_700_000_000_000)

func policy() *Policy {
	return &Policy{
		MaxAttempts: 3, InitialIntervalMS: 1000, Backoff: 4, MaxIntervalMS: 60_000, StartToCloseMS: 10_000, HeartbeatTimeoutMS: 2_000,
	}
}

func fresh() *Task {
	t := &Task{
		ID: ids.NewTaskID(time.UnixMilli(t0), 1, 42), Domain: "shop", Tasklist: "mail", Type: "send",
		Priority: 3, Policy: policy(), Position: ids.NewPosition(7, 3),
	}
	Load(t, t0)
	return t
}

// in returns a task brought into a state by its own events.
func in(s State) *Task {
	t := fresh()
	t.Attempt.Limits = NewPath("type/send")
	grab := Event{Kind: Started, ID: t.ID, Fence: ids.Token{Position: t.Position, Version: 1, Nonce: 9}, Worker: NewWorker("w", "", 0), Limits: NewPath("type/send")}
	if s == Ready {
		return t
	}
	if s == Lapsed {
		t.Extra = &Extra{Expiry: Expiry{FinishBy: t0}}
		Apply(t, &Event{Kind: Lapse, ID: t.ID, Fence: t.Token()}, t0)
		return t
	}
	if s == Cancelled {
		Apply(t, &Event{Kind: Cancel, ID: t.ID}, t0)
		return t
	}
	Apply(t, &grab, t0)
	switch s {
	case Completed:
		Apply(t, &Event{Kind: Succeeded, ID: t.ID, Fence: t.Token()}, t0)
	case Dead:
		Apply(t, &Event{Kind: Failed, ID: t.ID, Fence: t.Token(), NonRetryable: true}, t0)
	case Backoff:
		Apply(t, &Event{Kind: Failed, ID: t.ID, Fence: t.Token()}, t0)
	case Waiting:
		Apply(t, &Event{Kind: Failed, ID: t.ID, Fence: t.Token(), DelayMS: 60_000}, t0)
	}
	return t
}

var (
	allStates = []State{Waiting, Ready, Running, Backoff, Completed, Dead, Cancelled, Lapsed}
	allKinds  = []Kind{Started, Succeeded, Failed, Heartbeat, Released, Cancel, Expired, Lapse, Reject, Displace}
)

// policies are one of each kind.
var policies = map[string]func(*Policy){
	"plain":      func(*Policy) {},
	"fails":      func(p *Policy) { p.OnLost, p.OnTimeout = LostFails, TimeoutFails },
	"dies":       func(p *Policy) { p.OnLost, p.OnTimeout = LostDies, TimeoutDies },
	"deliveries": func(p *Policy) { p.MaxDeliveries = 1 },
	"rules":      func(p *Policy) { p.Rules = &Rules{NonRetryable: []string{"", "lost"}} },
	"waits":      func(p *Policy) { p.Rules = &Rules{ByError: []ErrorRule{{InitialIntervalMS: 60_000}}} },
}

func TestEveryPairOfStateAndEvent(t *testing.T) {
	for name, change := range policies {
		t.Run(name, func(t *testing.T) { everyPair(t, change) })
	}
}

func everyPair(t *testing.T, change func(*Policy)) {
	for _, s := range allStates {
		testkit.MustEqual(t, fmt.Sprintf("cannot bring a task into %s: it", s), in(s).State, s)
		for _, k := range allKinds {
			for _, stale := range []bool{false, true} {
				task := in(s)
				change(task.Policy)
				if k == Lapse {
					task.Extra = &Extra{Expiry: Expiry{FinishBy: t0 + 5_000}}
				}
				before := *task
				before.Steps = slices.Clone(task.Steps)
				ev := Event{Kind: k, ID: task.ID, Fence: task.Token()}
				if k == Started {
					ev.Fence = ids.Token{Position: task.Position, Version: task.Version + 1, Nonce: 77}
				}
				if k == Reject {
					ev.Fence.Version, ev.ReadyBy = task.Version+1, t0+5_000
				}
				if stale {
					ev.Fence.Nonce++
					ev.Fence.Version--
				}
				v, fx := Apply(task, &ev, t0+5_000)
				row := table[s][k]
				name := fmt.Sprintf("%s × %s (stale %v): %+v %+v", s, k, stale, v, fx)
				if row.do == nil || stale && (row.Fenced || k == Started || k == Reject || k == Displace) {
					if !reflect.DeepEqual(*task, before) || fx != (Effects{}) {
						t.Errorf("%s: a refused event changed the task", name)
					}
					continue
				}
				if v.Code != "" {
					t.Errorf("%s: refused", name)
				}
				if !slices.Contains(row.To, task.State) {
					t.Errorf("%s: went to %s, the table says %v", name, task.State, row.To)
				}
				if task.State.Finished() != fx.Finish || (task.State == Waiting) != fx.Park {
					t.Errorf("%s: effects do not fit the state %s", name, task.State)
				}
				ended := s == Running && task.State != Running
				if ended != (fx.Release != nil) || ended && fx.ReleaseVersion != 1 {
					t.Errorf("%s: the slot of an ended attempt must be released, and only then", name)
				}
			}
		}
	}
}

// TestReadmeShowsTheTable draws the state diagram from the table and compares it with
// the README's; run with YARD_UPDATE=1 to write it.
func TestReadmeShowsTheTable(t *testing.T) {
	const path, begin, end = "../../../README.md", "<!-- states -->\n", "<!-- /states -->"
	var lines []string
	for _, row := range transitions {
		for _, to := range row.To {
			lines = append(lines, fmt.Sprintf("    %s --> %s: %s\n", row.From, to, row.On))
		}
	}
	sort.Strings(lines)
	want := begin + "```mermaid\nstateDiagram-v2\n    [*] --> ready: submit, fired\n    [*] --> waiting: submit, due later; or fired early\n" +
		strings.Join(lines, "") + "    waiting --> [*]: to the timer store\n```\n" + end
	readme, err := os.ReadFile(path)
	testkit.NoError(t, err)
	head, rest, ok := strings.Cut(string(readme), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %s…%s", path, begin, end)
	}
	updated := head + want + tail
	if os.Getenv("YARD_UPDATE") != "" {
		testkit.NoError(t, os.WriteFile(path, []byte(updated), 0o644))
		return
	}
	if updated != string(readme) {
		t.Errorf("the README's diagram is out of date: run with YARD_UPDATE=1")
	}
}

func TestAnotherDomainCannotTouchIt(t *testing.T) {
	for _, k := range []Kind{Cancel, Succeeded, Failed, Heartbeat} {
		task := in(Running)
		if v, _ := Apply(task, &Event{Kind: k, ID: task.ID, Domain: "media", Fence: task.Token()}, t0); v.Code != fault.NotFound || task.State != Running {
			t.Errorf("%s: %+v", k, v)
		}
	}
}

// TestI3_I4_AnyEventsGiveOneHolderAndOneHistory drives a task with random events and checks
// that a second owner decides the same, that a repeated event gets the same verdict
// and changes nothing, and that only the last granted fence is ever obeyed.
func TestI3_I4_AnyEventsGiveOneHolderAndOneHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := fresh(), fresh()
		expires := rapid.Bool().Draw(t, "expires")
		if expires {
			a.Extra = &Extra{Expiry: Expiry{StartBy: t0 + 9_000, FinishBy: t0 + 20_000}}
			b.Extra = a.Extra
		}
		now := t0
		var holder *ids.Token
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			now += rapid.Int64Range(0, 4000).Draw(t, "later")
			ev := Event{
				Kind: rapid.SampledFrom(allKinds).Draw(t, "kind"), ID: a.ID,
				Fence: ids.Token{
					Position: a.Position, Version: rapid.Uint32Range(0, a.Version+1).Draw(t, "version"),
					Nonce: rapid.Uint64Range(0, 2).Draw(t, "nonce"),
				},
				DelayMS:     rapid.SampledFrom([]int64{0, 0, 5, 5000}).Draw(t, "delay"),
				Undelivered: rapid.Bool().Draw(t, "undelivered"),
				Snooze:      rapid.Bool().Draw(t, "snooze"),
			}
			before := a.State
			v, fx := Apply(a, &ev, now)
			if v2, fx2 := Apply(b, &ev, now); v2 != v || fx2 != fx || !reflect.DeepEqual(a, b) {
				t.Fatalf("two owners differ on %+v: %+v %+v, %+v %+v", ev, v, fx, v2, fx2)
			}
			if v.Granted && (before == Ready || before == Backoff) {
				fence := ev.Fence
				holder = &fence
			}
			outcome := ev.Kind == Succeeded || ev.Kind == Failed || ev.Kind == Released
			if v.Granted && !v.Repeated && expires && (now >= t0+20_000 || now >= t0+9_000 && a.Failures == 0 && a.Lost == 0) {
				t.Fatalf("granted at +%d, when its time was over", now-t0)
			}
			if a.State == Lapsed && before != Lapsed && now < t0+9_000 && a.Failures == 0 {
				t.Fatalf("it expired at +%d", now-t0)
			}
			if v.Code == "" && (outcome || ev.Kind == Heartbeat) && (holder == nil || ev.Fence != *holder) {
				t.Fatalf("obeyed %+v, the holder is %+v", ev, holder)
			}
			if v.Code == "" && (outcome || ev.Kind == Started) && a.State != Backoff {
				snapshot := *a
				if again, fx := Apply(a, &ev, now); again.Code != "" || again.Granted != v.Granted || fx != (Effects{}) || !reflect.DeepEqual(*a, snapshot) {
					t.Fatalf("repeated %+v: first %+v, then %+v %+v", ev, v, again, fx)
				}
			}
			if a.State == Waiting {
				return
			}
		}
	})
}
