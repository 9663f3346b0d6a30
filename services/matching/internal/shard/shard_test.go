package shard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/report"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var errAway = errors.New("away")

// world is everything around the loop, in virtual time: a core that does what step says, and
// tables, history and others that note what they are asked.
type world struct {
	t     *testing.T
	shard *Shard
	start time.Time
	done  chan error

	mu sync.Mutex
	// step is the core's; it runs with mu held.
	step func(in *match.Inputs, fx *match.Effects)
	// log is what happened, with its time: "0s step", "1s do a b".
	log []string
	// hung are the groups of tables that answer nothing; refuses are domains whose calls fail.
	hung    map[string]bool
	refuses map[string]bool
	// slow is how long a batch of calls takes.
	slow time.Duration
	// silent are the partitions that answer nothing.
	silent map[int]bool
	// unsent: answers cannot be sent.
	unsent bool
	// roundTrips counts them.
	roundTrips int
	// opens are the outcomes of Open, one after the other.
	opens []error
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked(format, args...)
}

func (w *world) noteLocked(format string, args ...any) {
	w.log = append(w.log, time.Since(w.start).String()+" "+fmt.Sprintf(format, args...))
}

// Step implements Core.
func (w *world) Step(in *match.Inputs, _ match.Now, fx *match.Effects) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*fx = match.Effects{}
	for _, o := range in.Outcomes {
		w.noteLocked("outcome %s failed=%v", o.Domain, o.Failed)
	}
	for _, o := range in.Opened {
		w.noteLocked("opened %s failed=%v %s", o.Domain, o.Failed, o.Opened.Epoch)
	}
	for _, a := range in.Answers {
		w.noteLocked("answer %d failed=%v", a.Question.ID, a.Failed)
	}
	for _, id := range in.Bounced {
		w.noteLocked("bounced %d", id)
	}
	if in.Broke || in.Proven > 0 {
		w.noteLocked("broke %v, proven %v", in.Broke, in.Proven)
	}
	if w.step != nil {
		w.step(in, fx)
	}
	if in.Drain {
		fx.Drained = fx.Wake == 0
	}
}

// Tasklist implements Core.
func (w *world) Tasklist(domain, name string) []match.PartitionCount {
	return []match.PartitionCount{{Partition: 3, Ready: len(domain) - 1, Polls: len(name)}, {Partition: 7, Ready: 1}}
}

func (w *world) Pollers(_, _, after string, limit int, _ match.Now) report.Page {
	return report.Page{
		Seen: []report.Seen{{Worker: after + "+", Version: "v1", Types: []string{"a"}, TypesN: limit, Ago: 2 * time.Second, Waiting: 3}},
		More: true, All: 7, Known: time.Minute,
	}
}

func (w *world) FullLimits(int, match.Now) []match.FullLimit { return nil }

func (w *world) LimitsInUse(domain string, each int, _ match.Now) ([]limit.InUse, int) {
	return []limit.InUse{{
		Ref: "type/a", Max: 3, Running: 2, Entry: 4, Full: time.Minute, Observed: time.Hour, FullFor: 5 * time.Second, Reclaimed: 6, Lists: 7, Tasks: 8,
		Holders: []limit.SlotHolder{{ID: ids.TaskID{1}, For: 9 * time.Second}},
		Waiters: []limit.SlotWaiter{{Tasklist: domain, Priority: each, For: 10 * time.Second, Tasks: 11}},
	}}, 12
}

func (w *world) Explain(k match.Kind, holders int, _ match.Now) match.Explained {
	limits, _ := w.LimitsInUse(k.Domain, holders, match.Now{})
	limits[0].Closed, limits[0].Counting, limits[0].Next = true, true, 250*time.Millisecond
	seen := w.Pollers("", "", k.Type+k.Group, 1, match.Now{}).Seen[0]
	return match.Explained{Limits: limits, Workers: report.Serving{All: 3, Takers: 2, Last: &seen, Known: time.Minute}, Polled: true, Triggers: 4}
}

// Group implements tables.Tables: the domain's last letter is its group.
func (w *world) Group(domain string) string { return domain[len(domain)-1:] }

func (w *world) busy(ctx context.Context, domain string, slow time.Duration) error {
	w.mu.Lock()
	hung := w.hung[w.Group(domain)]
	w.mu.Unlock()
	if hung {
		slow = time.Hour
	}
	timer := time.NewTimer(slow)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Do implements tables.Tables.
func (w *world) Do(ctx context.Context, calls []table.Call) ([]table.Outcome, []error) {
	var names []string
	for _, c := range calls {
		names = append(names, c.Domain)
	}
	w.note("do %s", strings.Join(names, " "))
	outcomes, errs := make([]table.Outcome, len(calls)), make([]error, len(calls))
	err := w.busy(ctx, calls[0].Domain, w.slow)
	for i, c := range calls {
		if errs[i] = err; w.refuses[c.Domain] {
			errs[i] = errAway
		}
	}
	return outcomes, errs
}

// Open implements tables.Tables.
func (w *world) Open(ctx context.Context, domain string) (table.Opened, error) {
	return table.Opened{Epoch: "e" + domain}, w.busy(ctx, domain, 200*time.Millisecond)
}

// Slots implements tables.Tables.
func (w *world) Slots(ctx context.Context, domain string, limits []table.Ref) ([]int, error) {
	w.mu.Lock()
	hung := w.hung[w.Group(domain)]
	w.mu.Unlock()
	if hung {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	counts := make([]int, len(limits))
	for i, l := range limits {
		counts[i] = len(l)
	}
	return counts, nil
}

// Drop implements tables.Tables.
func (w *world) Drop(_ context.Context, domain string, limit table.Ref) error {
	w.note("drop %s %s", domain, limit)
	return errAway
}

// Answer implements Outbox.
func (w *world) Answer(a *grab.Answer) error {
	w.note("answer to %s", a.ReplyTo)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unsent {
		return errAway
	}
	return nil
}

// roundTrip is Deps.RoundTrip: the first finds no subscriber, and by the second the connection broke.
func (w *world) roundTrip(context.Context) (broke bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roundTrips++
	if w.roundTrips == 1 {
		return false, errAway
	}
	return w.roundTrips == 2, nil
}

// Refuse implements Outbox.
func (w *world) Refuse(r *waiting.Refusal) { w.note("refuse %s", r.ReplyTo) }

// Batch implements Outbox.
func (w *world) Batch(b *grab.Batch) { w.note("batch %d", b.Number) }

// Hints implements Outbox.
func (w *world) Hints(freed, restore []match.LimitHint, hungry []match.Hungry) {
	w.note("hints %d %d %d", len(freed), len(restore), len(hungry))
}

// Ack implements Outbox.
func (w *world) Ack(delivery uint64) { w.note("ack %d", delivery) }

// Ask implements History.
func (w *world) Ask(ctx context.Context, a question.Question) (question.Answer, error) {
	w.note("ask %d", a.ID)
	w.mu.Lock()
	silent := w.silent[a.Partition]
	w.mu.Unlock()
	if silent {
		return question.Answer{}, errAway
	}
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return question.Answer{}, ctx.Err()
}

func (w *world) open(context.Context) error {
	w.note("open")
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.opens) == 0 {
		return nil
	}
	err := w.opens[0]
	w.opens = w.opens[1:]
	return err
}

// inWorld runs a test in a bubble with a running shard, whose first step is over.
func inWorld(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		inBubble(t, func(w *world, cancel context.CancelFunc) {
			test(w)
			cancel()
			testkit.Check(t, <-w.done)
		})
	})
}

// inBubble is inWorld for tests that end the shard themselves.
func inBubble(t *testing.T, test func(w *world, cancel context.CancelFunc)) {
	w := &world{
		t: t, start: time.Now(), done: make(chan error, 1),
		hung: map[string]bool{}, refuses: map[string]bool{}, silent: map[int]bool{},
	}
	w.shard = New(Deps{
		Partitions: 2, Core: w, Clock: NewClock(nil), Tables: w, Outbox: w, History: w, Open: w.open, RoundTrip: w.roundTrip,
		Metrics: NewMetrics(nil, 1), Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { w.done <- w.shard.Run(ctx) }()
	synctest.Wait()
	test(w, cancel)
}

// run has the core ask for fx in its next step, and lets d pass.
func (w *world) run(fx match.Effects, d time.Duration) {
	w.mu.Lock()
	w.step = func(_ *match.Inputs, out *match.Effects) { *out, w.step = fx, nil }
	w.mu.Unlock()
	w.shard.Put(func(*match.Inputs) {})
	time.Sleep(d)
	synctest.Wait()
}

// expect compares the log, without the entries that have none of the words. What happens at
// the same time has no order.
func (w *world) expect(words string, want ...string) {
	w.t.Helper()
	got := w.having(words)
	slices.Sort(got)
	slices.Sort(want)
	testkit.MustEqual(w.t, "result", got, want)
}

func (w *world) having(words string) (got []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.log {
		if word := strings.Fields(line)[1]; slices.Contains(strings.Fields(words), word) {
			got = append(got, line)
		}
	}
	return got
}

func calls(domains ...string) (all []table.Call) {
	for _, d := range domains {
		all = append(all, table.Call{Domain: d})
	}
	return all
}

// A group of tables that hangs fails its own domains after a second; the others go on. R8.
func TestR8_HungGroupHarmsOnlyItsOwnDomains(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hung["1"] = true
		w.run(match.Effects{Requests: tablecall.Requests{Calls: calls("a1", "b2", "c1")}}, 100*time.Millisecond)
		w.expect("outcome", "0s outcome b2 failed=false")
		w.run(match.Effects{Requests: tablecall.Requests{Calls: calls("b2")}}, 2*time.Second)
		w.expect("do outcome",
			"0s do a1 c1", "0s do b2", "0s outcome b2 failed=false",
			"100ms do b2", "100ms outcome b2 failed=false",
			"1s outcome a1 failed=true", "1s outcome c1 failed=true")
		testkit.Equal(t, "calls failed", w.shard.Metrics.TableFailed.Value(), 2)
	})
}

// One call that fails does not fail the others of its round trip.
func TestR8_CallsFailOneByOne(t *testing.T) {
	inWorld(t, func(w *world) {
		w.refuses["a1"] = true
		w.run(match.Effects{Requests: tablecall.Requests{Calls: calls("a1", "c1")}}, 0)
		w.expect("outcome", "0s outcome a1 failed=true", "0s outcome c1 failed=false")
	})
}

// What comes while a group is busy goes together in its next round trip.
func TestCallsOfABusyGroupGather(t *testing.T) {
	inWorld(t, func(w *world) {
		w.slow = 300 * time.Millisecond
		w.run(match.Effects{Requests: tablecall.Requests{Calls: calls("a1")}}, 100*time.Millisecond)
		w.run(match.Effects{Requests: tablecall.Requests{Calls: calls("b1")}}, 100*time.Millisecond)
		w.run(match.Effects{Requests: tablecall.Requests{Calls: calls("c1")}}, time.Second)
		w.expect("do", "0s do a1", "300ms do b1 c1")
	})
}

// Opening many domains of a group that hangs takes one timeout, not one each, and no
// call waits for it.
func TestR8_OpeningHungTablesIsBounded(t *testing.T) {
	inWorld(t, func(w *world) {
		var opens []string
		for i := range 30 {
			opens = append(opens, fmt.Sprint("d", i, "-1"))
		}
		w.run(match.Effects{Requests: tablecall.Requests{Opens: opens, Calls: calls("a1")}}, time.Second)
		w.expect("outcome", "0s outcome a1 failed=false")
		n := strings.Count(strings.Join(w.log, "\n"), "failed=false e")
		if n != len(opens) {
			t.Fatalf("%d of %d domains were opened within a second: %q", n, len(opens), w.log)
		}
		w.hung["1"], w.log = true, nil
		w.run(match.Effects{Requests: tablecall.Requests{Opens: opens}}, callTimeout)
		if n := strings.Count(strings.Join(w.log, "\n"), "failed=true"); n != len(opens) {
			t.Fatalf("%d of %d failed within a second: %q", n, len(opens), w.log)
		}
	})
}

// A partition that does not answer is asked at a measured pace, and holds up no other. R31.
func TestR31_SilentPartitionHoldsUpNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		w.silent[0] = true
		w.run(match.Effects{Asks: []question.Question{{ID: 1}, {ID: 2}, {ID: 3, Partition: 1}, {ID: 4, Partition: 1}}}, time.Second)
		w.expect("ask answer",
			"0s ask 1", "0s ask 3", "100ms answer 3 failed=false", "100ms ask 4", "200ms answer 4 failed=false",
			"250ms answer 1 failed=true", "250ms ask 2", "500ms answer 2 failed=true")
	})
}

// The order of effects is that of their fields.
func TestEffectsAreCarriedOutInOrder(t *testing.T) {
	inWorld(t, func(w *world) {
		w.run(match.Effects{
			Replies: waiting.Replies{Answers: []grab.Answer{{ReplyTo: "a"}}, Refusals: []waiting.Refusal{{ReplyTo: "b"}}},
			Effects: grab.Effects{Batches: []grab.Batch{{Number: 1}, {Number: 2}}},
			Freed:   make([]match.LimitHint, 1),
			Restore: make([]match.LimitHint, 2),
			Hungry:  make([]match.Hungry, 3),
			Acks:    []uint64{7},
		}, 0)
		got := w.having("answer refuse batch hints ack")
		want := []string{"0s answer to a", "0s refuse b", "0s batch 1", "0s batch 2", "0s hints 1 2 3", "0s ack 7"}
		testkit.MustEqual(t, "result", got, want)
	})
}

func TestDroppedLimitsAreForgotten(t *testing.T) {
	inWorld(t, func(w *world) {
		w.run(match.Effects{Drops: []match.LimitHint{{Domain: "d1", Limits: []table.Ref{"x", "y"}}}}, 0)
		w.expect("drop", "0s drop d1 x", "0s drop d1 y")
	})
}

// What could not be sent was not delivered; an empty answer is due to no one.
func TestAnUnsentAnswerIsBounced(t *testing.T) {
	inWorld(t, func(w *world) {
		w.unsent = true
		w.run(match.Effects{Replies: waiting.Replies{Answers: []grab.Answer{{ID: 5, ReplyTo: "a"}, {ReplyTo: "b"}}}}, 0)
		w.expect("bounced", "0s bounced 5")
	})
}

// A round trip that fails has the core ask again; one behind a break proves nothing. What proves is when it began.
func TestRoundTripsProveOrTellOfABreak(t *testing.T) {
	inWorld(t, func(w *world) {
		for range 3 {
			w.run(match.Effects{Prove: true}, time.Second)
		}
		w.expect("broke", "1s broke true, proven 0s", "2s broke false, proven 3s") // its clock began a second before
	})
}

func TestTheCoreIsWokenWhenItAsks(t *testing.T) {
	inWorld(t, func(w *world) {
		steps := 0
		w.mu.Lock()
		w.step = func(_ *match.Inputs, fx *match.Effects) {
			steps++
			w.noteLocked("step")
			switch steps {
			case 1:
				fx.Wake = w.shard.Clock.Now().Mono + 3*time.Second
			case 2:
				fx.Wake = w.shard.Clock.Now().Mono // at once
			}
		}
		w.mu.Unlock()
		w.shard.Put(func(*match.Inputs) {})
		time.Sleep(time.Hour)
		synctest.Wait()
		w.expect("step", "0s step", "3s step", "3s step")
	})
}

// Every input of one turn is empty in the next.
func TestInputsAreTakenOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		total := map[string]int{}
		w.mu.Lock()
		w.step = func(in *match.Inputs, _ *match.Effects) {
			total["limits"] += len(in.Limits)
			total["verdicts"] += len(in.Verdicts)
			total["freed"] += len(in.Freed)
			total["restore"] += len(in.Restore)
			total["hints"] += len(in.Hints)
			total["polls"] += len(in.Polls)
			if in.HintsLost {
				total["lost"]++
			}
		}
		w.mu.Unlock()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 100 {
					w.shard.Put(func(in *match.Inputs) {
						in.Limits, in.Verdicts = append(in.Limits, "d"), append(in.Verdicts, grab.Verdicts{})
						in.Freed, in.Restore = append(in.Freed, match.LimitHint{}), append(in.Restore, match.LimitHint{})
						in.Hints, in.Polls = append(in.Hints, match.Hints{}), append(in.Polls, waiting.Poll{})
					})
				}
			})
		}
		all.Wait()
		w.shard.Put(func(in *match.Inputs) { in.HintsLost = true })
		synctest.Wait()
		w.shard.Put(func(*match.Inputs) {})
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		for what, want := range map[string]int{"limits": 800, "verdicts": 800, "freed": 800, "restore": 800, "hints": 800, "polls": 800, "lost": 1} {
			testkit.Equal(t, what, total[what], want)
		}
	})
}
