package shard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/memtable"
)

// world is everything around a shard, in virtual time: it notes what the shard
// sends and answers grabs as decide says; nil is silence.
type world struct {
	t     *testing.T
	shard *Shard
	store *memtable.Store
	start time.Time

	mu      sync.Mutex
	decide  func(e *logv1.Event) *logv1.EventVerdict
	events  []string // "1s STARTED 7" and so on
	answers []string // "2s r1: 3 tasks"
	hungry  []string
	running []table.Booking // as history knows them
	// versions are the log versions of the event batches.
	versions []uint32
	limit    map[string]int
	down     bool
	calls    int
	logged   strings.Builder
}

// failing is the world's tables, which can be taken away.
type failing struct {
	Tables
	w *world
}

var errDown = errors.New("down")

func (f failing) try() error {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.w.calls++
	if f.w.down {
		return errDown
	}
	return nil
}

func (f failing) Open(ctx context.Context, d string) (table.Opened, error) {
	if err := f.try(); err != nil {
		return table.Opened{}, err
	}
	return f.Tables.Open(ctx, d)
}

func (f failing) Put(ctx context.Context, c []table.Chunk) error {
	if err := f.try(); err != nil {
		return err
	}
	return f.Tables.Put(ctx, c)
}

func (f failing) Pop(ctx context.Context, w []table.Want) ([]table.Taken, error) {
	if err := f.try(); err != nil {
		return nil, err
	}
	return f.Tables.Pop(ctx, w)
}

func (f failing) Settle(ctx context.Context, s []table.Settlement) ([]table.Settled, error) {
	if err := f.try(); err != nil {
		return nil, err
	}
	return f.Tables.Settle(ctx, s)
}

func (w *world) at() string { return time.Since(w.start).Round(100 * time.Millisecond).String() }

// Events implements Outbox.
func (w *world) Events(_ int, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b logv1.EventBatch
	if err := b.UnmarshalVT(data); err != nil {
		return err
	}
	w.versions = append(w.versions, b.LogVersion)
	v := &logv1.VerdictBatch{RequestId: b.RequestId}
	for _, e := range b.Events {
		kind := strings.TrimPrefix(e.Kind.String(), "EVENT_KIND_")
		w.events = append(w.events, fmt.Sprintf("%s %s %d", w.at(), kind, e.TaskId[15]))
		if w.decide != nil {
			v.Verdicts = append(v.Verdicts, w.decide(e))
		}
	}
	if w.decide != nil {
		w.shard.Verdicts(v)
	}
	return nil
}

// Answer implements Outbox.
func (w *world) Answer(to string, _ bool, tasks [][]byte, _ uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, fmt.Sprintf("%s %s: %d tasks", w.at(), to, len(tasks)))
	return nil
}

// Refuse implements Outbox.
func (w *world) Refuse(to string, why *fault.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, fmt.Sprintf("%s %s: %s", w.at(), to, why.Code))
}

// Freed implements Outbox.
func (w *world) Freed(string, []string) {}

// Hungry implements Outbox.
func (w *world) Hungry(_, tasklist string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hungry = append(w.hungry, w.at())
}

// Bookings implements History.
func (w *world) Bookings(context.Context, int, string) ([]table.Booking, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running, nil
}

// Retrigger implements History.
func (w *world) Retrigger(context.Context, int, string) error { return nil }

// Limit implements Limits.
func (w *world) Limit(_, typ string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limit[typ]
}

// Limited implements Limits.
func (w *world) Limited(string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.limit))
}

// inWorld runs a test in a bubble with a running shard whose domain is open.
func inWorld(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, store: memtable.New(), start: time.Now(), limit: map[string]int{}}
		w.shard = New(Deps{
			Partitions: 1, AnswerBytesMax: 1000, Tables: failing{w.store.Shard(0), w}, Outbox: w, History: w, Limits: w,
			Config: DefaultConfig(), Metrics: NewMetrics(nil, 1), Log: slog.New(slog.NewTextHandler(&w.logged, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.shard.Run(ctx) }()
		w.poll("first", 0)
		synctest.Wait()
		w.answers, w.calls = nil, 0
		test(w)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (w *world) poll(to string, wait time.Duration) {
	w.shard.Poll(&rpcv1.Poll{Domain: "d", Tasklist: "l", MaxTasks: 10, ReplyTo: to, UntilMs: time.Now().Add(wait).UnixMilli()})
}

// ready brings the trigger of task n. It returns what will tell whether the hint was
// taken care of.
func (w *world) ready(typ string, n byte) *string {
	outcome := new(string)
	w.shard.Hints(Delivery{
		Hints: &logv1.Hints{Triggers: []*logv1.TriggerGroup{{
			Domain: "d", Tasklist: "l", Type: typ, Priority: 3, ReadyAtUs: 1, Triggers: ids.AppendTrigger(nil, trigger(n)),
		}}},
		Done: func(ok bool) { *outcome = fmt.Sprint(ok) },
	})
	return outcome
}

func trigger(n byte) ids.Trigger {
	return ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, uint64(n)), Version: 1}
}

// after lets virtual time pass.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) expect(what string, got []string, want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		w.t.Fatalf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// granting grants every grab and is fine with hand-backs.
func granting(e *logv1.Event) *logv1.EventVerdict {
	if e.Kind != logv1.EventKind_EVENT_KIND_STARTED {
		return &logv1.EventVerdict{}
	}
	return &logv1.EventVerdict{Task: []byte("task"), DeadlineMs: time.Now().Add(time.Minute).UnixMilli()}
}

func TestI4_SilentHistoryIsAskedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.limit["pay"] = 1
		w.poll("r", time.Hour)
		w.ready("pay", 7)
		w.after(9500 * time.Millisecond)
		if n := len(w.events); n < 8 || n > 10 {
			t.Fatalf("asked %d times in 9.5 s: %q", n, w.events)
		}
		w.mu.Lock()
		w.decide = granting
		w.mu.Unlock()
		w.after(2 * time.Second)
		if len(w.answers) != 1 || !strings.HasSuffix(w.answers[0], "r: 1 tasks") {
			t.Fatalf("answered %q", w.answers)
		}
	})
}

func TestI8_GivenUpGrabKeepsItsSlotUntilHistoryAnswers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.limit["pay"] = 1
		w.poll("r", time.Hour)
		w.ready("pay", 7)
		w.ready("pay", 8)
		w.after(11 * time.Second)
		for _, e := range w.events {
			if strings.HasSuffix(e, "STARTED 8") {
				t.Fatalf("the slot was given away: %q", w.events)
			}
		}
		if last := w.events[len(w.events)-1]; !strings.HasSuffix(last, "RELEASED 7") {
			t.Fatalf("sent %q", w.events)
		}
		w.mu.Lock()
		w.events, w.decide = nil, granting
		w.mu.Unlock()
		w.after(2 * time.Second) // the hand-back is repeated and answered: both go on
		if len(w.answers) != 1 || !strings.HasSuffix(w.answers[0], "r: 1 tasks") {
			t.Fatalf("answered %q after %q", w.answers, w.events)
		}
	})
}

func TestPollIsAnsweredInTimeAndLateGrantsGoBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.poll("r", time.Second)
		w.ready("a", 7)
		w.after(5 * time.Second)
		w.expect("answers", w.answers, "3s r: 0 tasks")
		w.mu.Lock()
		w.events, w.decide = nil, granting
		w.mu.Unlock()
		w.after(1500 * time.Millisecond)
		if n := len(w.events); n == 0 || !strings.HasSuffix(w.events[n-1], "RELEASED 7") {
			t.Fatalf("a late grant led to %q", w.events)
		}
	})
}

func TestComplaintsGrowRarer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.poll("r", time.Hour)
		w.after(100 * time.Second)
		if n := len(w.hungry); n < 6 || n > 8 { // after 1, 2, 4, 8, 16, 30, 30 s
			t.Fatalf("complained at %q", w.hungry)
		}
	})
}

func TestI8_LapsedSlotIsFoundWithoutWord(t *testing.T) {
	inWorld(t, func(w *world) {
		w.decide = granting
		w.limit["pay"] = 1
		// Another owner booked a slot and died before its grab.
		tables := w.store.Shard(0)
		other := table.Tasklist{Domain: "d", Name: "other"}
		at := table.Column{Priority: 3, Type: "pay"}
		chunk := table.Chunk{Tasklist: other, Column: at, ReadyAt: 1, Triggers: ids.AppendTrigger(nil, trigger(9))}
		if err := tables.Put(t.Context(), []table.Chunk{chunk}); err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		if _, err := tables.Pop(t.Context(), []table.Want{{
			Tasklist: other, N: 1, Candidates: []table.Candidate{{Column: at, Limit: 1}}, Now: now.UnixMilli(), Until: now.Add(bookingTTL).UnixMilli(),
		}}); err != nil {
			t.Fatal(err)
		}
		w.poll("r", time.Hour)
		w.ready("pay", 7)
		w.after(bookingTTL - time.Second)
		w.expect("answers before it lapses", w.answers)
		w.after(3 * time.Second)
		if len(w.answers) != 1 {
			t.Fatalf("answered %q", w.answers)
		}
	})
}

// TestI8_SlotOfAnAttemptThatIsOverComesBack: nobody says that an attempt is over,
// and its deadline is far away.
func TestI8_SlotOfAnAttemptThatIsOverComesBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.decide = granting // for a minute
		w.limit["pay"] = 1
		w.running = []table.Booking{{Type: "pay", Member: trigger(7).Booking()}}
		w.poll("r", time.Hour)
		w.ready("pay", 7)
		w.after(time.Second)
		w.expect("answers", w.answers, "0s r: 1 tasks")
		w.poll("s", time.Hour)
		w.ready("pay", 8)
		w.after(5 * time.Second)
		w.expect("answers while it runs", w.answers, "0s r: 1 tasks")
		w.mu.Lock()
		w.running = nil
		w.mu.Unlock()
		w.after(2 * auditEvery)
		if len(w.answers) != 2 {
			t.Fatalf("answered %q", w.answers)
		}
	})
}

// TestI8_LostHintsBringAnAudit: there is no wait for a limit that is full.
func TestI8_LostHintsBringAnAudit(t *testing.T) {
	inWorld(t, func(w *world) {
		w.decide = granting
		w.limit["pay"] = 2
		w.poll("r", time.Hour)
		w.ready("pay", 7)
		w.after(time.Second)
		w.expect("answers", w.answers, "0s r: 1 tasks")
		inUse := func() int {
			counts, err := w.store.Shard(0).Slots(t.Context(), "d", []string{"pay"}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return counts[0]
		}
		if n := inUse(); n != 1 {
			t.Fatalf("%d slots in use", n)
		}
		w.shard.HintsLost()
		w.after(time.Second)
		if n := inUse(); n != 0 {
			t.Fatalf("%d slots in use after the audit", n)
		}
	})
}

func TestI5_TablesAway(t *testing.T) {
	inWorld(t, func(w *world) {
		w.decide = granting
		w.mu.Lock()
		w.down = true
		w.mu.Unlock()
		outcome := w.ready("a", 7)
		w.after(time.Second)
		if *outcome != "false" {
			t.Fatalf("a hint that found neither poll nor table: %q", *outcome)
		}
		w.poll("r", time.Hour)
		w.after(time.Second)
		outcome = w.ready("a", 8) // meets the poll
		w.after(10 * time.Second)
		if *outcome != "true" || len(w.answers) != 1 {
			t.Fatalf("without tables: %q, answered %q", *outcome, w.answers)
		}
		if n := strings.Count(w.logged.String(), "level=ERROR"); n != 1 {
			t.Fatalf("logged %d times: %s", n, w.logged.String())
		}
		w.mu.Lock()
		w.down = false
		w.mu.Unlock()
		outcome = w.ready("a", 9)
		w.poll("s", time.Hour)
		w.after(time.Second)
		if *outcome != "true" || len(w.answers) != 2 {
			t.Fatalf("with tables again: %q, answered %q", *outcome, w.answers)
		}
	})
}

func TestIdleShardSleeps(t *testing.T) {
	inWorld(t, func(w *world) {
		w.after(10 * time.Minute)
		if w.calls != 0 {
			t.Fatalf("%d calls to the tables by an idle shard", w.calls)
		}
		w.poll("r", 10*time.Minute)
		w.after(10 * time.Minute)
		if w.calls != 0 {
			t.Fatalf("%d calls to the tables by a poll on an empty table", w.calls)
		}
	})
}

// TestTimesHangTogether: what the quarantine and the bookings rely on.
func TestTimesHangTogether(t *testing.T) {
	if bookingFresh+callTimeout > Quarantine {
		t.Error("a grab may be sent after the quarantine with a booking made before it")
	}
	if bookingTTL <= resendAfter+housekeepEvery+callTimeout+bookingFresh {
		t.Error("a booking may lapse before its grab is sent again, which renews it")
	}
	if bookingSlack <= bookingTTL {
		t.Error("an audit takes a booking without a verdict for one that has one")
	}
	if pollGrace <= resendAfter {
		t.Error("a poll ends before a lost grab was repeated")
	}
}
