package replica

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI5_LostTriggers: what is sent again, and what is spared (R33, R36).
func TestI5_LostTriggers(t *testing.T) {
	b := newBench(t, Config{})
	b.equal("submitted", triggered(b.submit(nil, 3, 1, 2)), []int{3, 1, 2})
	b.now.MS += dispatch.MissingAgeMS
	b.equal("hungry while they are on their way", triggered(b.hungry("shop", "mail")), nil)
	b.now.MS++
	b.equal("hungry elsewhere", triggered(b.hungry("shop", "other")), nil)
	b.equal("hungry elsewhere", triggered(b.hungry("rival", "mail")), nil)
	fx := b.hungry("shop", "mail")
	b.equal("hungry, in the order of the message", triggered(fx), []int{3, 1, 2})
	testkit.Equal(t, "counted", fx.Resent, 3)

	fx = new(Effects)
	shard := ids.MatchingShard("shop", "mail", 0, b.r.cfg.Shards)
	b.r.Retrigger("rival", -1, b.now.MS, &fx.Effects)
	b.r.Retrigger("", 1-shard, b.now.MS, &fx.Effects)
	b.equal("another domain or shard", triggered(fx), nil)
	testkit.Equal(t, "retriggered", b.r.Retrigger("shop", shard, b.now.MS, &fx.Effects), 3)
	if n := b.r.Retrigger("", shard, b.now.MS, &fx.Effects); n != 3 || fx.Sent != 6 || fx.Traced != nil {
		t.Errorf("%d retriggered, %d counted, traced %v", n, fx.Sent, fx.Traced)
	}
	b.r.Flush(b.now, new(Effects))

	b.start(1)
	b.start(2)
	b.start(3)
	b.now.MS += time.Hour.Milliseconds()
	b.equal("what runs is not ready", triggered(b.hungry("shop", "mail")), nil)
}

// TestI5_HungryFindsBothKindsOfReady: what is ready, and what waits for its next attempt and is due.
func TestI5_HungryFindsBothKindsOfReady(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1, 2)
	b.start(2)
	b.finish(taskstate.Failed, 2)
	b.now.MS += dispatch.MissingAgeMS
	b.equal("due by now", triggered(b.step(Tick{})), []int{2})
	b.now.MS += dispatch.MissingAgeMS + 1
	b.equal("one is ready, one is due", triggered(b.hungry("shop", "mail")), []int{1, 2})
}

// TestR33_HungryLeavesOutWhatIsThere: matching holds triggers of these types, and copies would pile up.
func TestR33_HungryLeavesOutWhatIsThere(t *testing.T) {
	b := newBench(t, Config{})
	typed := func(typ string) func(*taskstate.Task) { return func(t *taskstate.Task) { t.Type = typ } }
	b.submit(typed("there"), 1, 2)
	b.submit(typed("lost"), 3)
	b.submit(typed("too"), 4)
	b.now.MS += dispatch.MissingAgeMS + 1
	b.equal("of the others", triggered(b.hungry("shop", "mail", "there", "too", "unknown")), []int{3})
	b.now.MS += dispatch.MissingAgeMS + 1
	b.equal("of all", triggered(b.hungry("shop", "mail")), []int{1, 2, 3, 4})
}

// TestI5_RetriggerOfEachShard: of one shard, the first one too, or of all.
func TestI5_RetriggerOfEachShard(t *testing.T) {
	b := newBench(t, Config{})
	want := map[int][]int{}
	for n := 1; n <= 8; n++ {
		b.submit(func(t *taskstate.Task) { t.Tasklist = string(rune('a' + n)) }, n)
		shard := ids.MatchingShard("shop", string(rune('a'+n)), 0, b.r.cfg.Shards)
		want[shard] = append(want[shard], n)
		want[-1] = append(want[-1], n)
	}
	if len(want) != 3 {
		t.Fatalf("tasks of %d shards", len(want)-1)
	}
	for shard, numbers := range want {
		fx := new(Effects)
		b.r.Retrigger("", shard, b.now.MS, &fx.Effects)
		b.r.Flush(b.now, fx)
		b.equal("retriggered", triggered(fx), numbers)
	}
}

// TestI5_OvertakenTasksAreTriggeredAgain: a task that others of its column, ready well after it,
// were granted before, has lost its trigger.
func TestI5_OvertakenTasksAreTriggeredAgain(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	b.now.MS += dispatch.PassedOverMS
	b.submit(nil, 2)
	b.now.MS++
	b.submit(nil, 3)
	b.now.MS += dispatch.MissingAgeMS + dispatch.PassedOverMS + dispatch.HealEveryMS
	b.equal("nothing was granted", triggered(b.step(Tick{})), nil)
	b.start(2)
	b.now.MS += dispatch.HealEveryMS
	b.equal("granted 2, just in time", triggered(b.step(Tick{})), nil)
	b.start(3)
	b.now.MS += dispatch.HealEveryMS - 1
	b.equal("too early to look again", triggered(b.step(Tick{})), nil)
	b.now.MS++
	b.equal("granted 3", triggered(b.step(Tick{})), []int{1})
	b.now.MS += dispatch.HealEveryMS
	b.equal("its trigger is on the way", triggered(b.step(Tick{})), nil)
	b.now.MS += dispatch.OldAgeMS - dispatch.HealEveryMS
	b.equal("not old so far, but overtaken", triggered(b.step(Tick{})), []int{1})
}

func TestI5_OldTasksAreTriggeredAgain(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	b.now.MS += dispatch.OldAgeMS
	b.equal("not old enough", triggered(b.step(Tick{})), nil)
	b.now.MS += dispatch.HealEveryMS
	b.equal("old", triggered(b.step(Tick{})), []int{1})
}

// TestGroupsFitIntoAMessage: triggers are gathered by column, and cut by bytes.
func TestGroupsFitIntoAMessage(t *testing.T) {
	b := newBench(t, Config{})
	n := dispatch.PackBytesMax/ids.TriggerBytes + 2
	var all []int
	for i := range n {
		all = append(all, i+1)
	}
	fx := b.submit(nil, all...)
	if len(fx.Triggers) != 2 || len(fx.Triggers[1].Packed) != ids.TriggerBytes {
		t.Fatalf("%d groups", len(fx.Triggers))
	}
	fx = b.submit(func(t *taskstate.Task) { t.Priority = int32(t.ID[15] % 2) }, n+1, n+2, n+3)
	if len(fx.Triggers) != 2 || len(fx.Triggers[0].Packed) != 2*ids.TriggerBytes && len(fx.Triggers[1].Packed) != 2*ids.TriggerBytes {
		t.Fatalf("groups by priority: %+v", fx.Triggers)
	}
}

// TestReleasesAreGathered by column, and cut by bytes.
func TestReleasesAreGathered(t *testing.T) {
	b := newBench(t, Config{})
	n := dispatch.PackBytesMax/ids.BookingBytes + 2
	in := &Events{Seq: 2, At: b.now.MS}
	var all []int
	for i := range n {
		all = append(all, i+1)
		fence := ids.Token{Position: ids.NewPosition(1, 3), Version: 1}
		in.Events = append(in.Events, taskstate.Event{Kind: taskstate.Started, ID: id(i + 1), Fence: fence, Limits: typeSend},
			taskstate.Event{Kind: taskstate.Succeeded, ID: id(i + 1), Fence: fence})
	}
	b.submit(nil, all...)
	fx := b.step(in)
	if len(fx.Releases) != 2 || len(fx.Releases[1].Packed) != ids.BookingBytes || fx.Releases[0].Type != "send" || fx.Releases[0].Domain != "shop" {
		t.Fatalf("%d groups", len(fx.Releases))
	}
}

// TestReads: get, list, describe and the bookings of a domain.
func TestReads(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1, 2, 3)
	b.now.MS += 10
	b.submit(func(t *taskstate.Task) { t.Type = "bill"; t.Tasklist = "other" }, 4)
	b.start(2)
	b.start(4)
	b.start(3)
	b.finish(taskstate.Failed, 3)
	want := dispatch.Census{Ready: 1, Running: 1, Backoff: 1, Failed: 1, Admitted: 3, Started: 2, OldestReadyAt: scenarioStart}
	if got := b.r.Describe("shop", "mail"); got != want {
		t.Errorf("%+v", got)
	}
	if got := b.r.Describe("shop", "none"); got != (dispatch.Census{}) {
		t.Errorf("%+v", got)
	}
	all := func(*taskstate.Task) bool { return true }
	if hits, more := b.list(Newest("shop", 2, all)); !more || len(hits) != 2 || hits[0].ID != id(4) || hits[1].ID != id(3) {
		t.Errorf("the newest first: %v", hits)
	}
	if hits, more := b.list(Newest("shop", 9, func(t *taskstate.Task) bool { return t.State == taskstate.Running })); more || len(hits) != 2 {
		t.Errorf("%d run", len(hits))
	}
	if b.r.Len() != 4 {
		t.Errorf("%d tasks", b.r.Len())
	}
	b.now.MS = b.r.Get(id(3)).DueAt
	b.step(Tick{})
	if got := b.r.Describe("shop", "mail"); got.Ready != 2 || got.Backoff != 0 {
		t.Errorf("once the wait of one is over: %+v", got)
	}
	b.finish(taskstate.Succeeded, 2)
	b.now.MS += archiveLingerMS
	b.step(Tick{})
	if fx := b.step(Stored{Kind: JobArchive, Seq: 1}); fx.Counts.Archived != 1 {
		t.Errorf("%+v", fx.Counts)
	}
	if b.r.Len() != 3 || b.r.Get(id(2)).State != taskstate.Completed || b.r.Get(id(9)) != nil {
		t.Error("what has ended is there for questions only")
	}
	if got := b.r.Describe("shop", "mail"); got.Completed != 1 || got.Running != 0 {
		t.Errorf("%+v", got)
	}
	b.event(taskstate.Cancel, 1, ids.Token{})
	b.now.MS += 2000
	b.start(3)
	b.seq++
	b.step(&Events{Seq: b.seq, At: b.now.MS, Events: []taskstate.Event{
		{Kind: taskstate.Failed, ID: id(3), Fence: b.r.Get(id(3)).Token(), NonRetryable: true},
	}})
	if got := b.r.Describe("shop", "mail"); got != (dispatch.Census{Completed: 1, Dead: 1, Failed: 2, Admitted: 3, Started: 3}) {
		t.Errorf("%+v", got)
	}
	if at, ok := b.r.NextWake(); !ok || at != b.r.Get(id(4)).WakeAt() {
		t.Errorf("wake at %d", at)
	}
}

// TestTasklistsAreListed by name, behind one, up to a limit: those that have unfinished tasks.
func TestTasklistsAreListed(t *testing.T) {
	b := newBench(t, Config{})
	for n, name := range map[int]string{1: "c", 2: "a", 3: "b", 4: "b", 5: "d"} {
		b.submit(func(t *taskstate.Task) { t.Tasklist = name }, n)
	}
	b.submit(func(t *taskstate.Task) { t.Domain, t.Tasklist = "lab", "bb" }, 6)
	b.start(4)
	b.start(5)
	b.finish(taskstate.Succeeded, 5)
	for _, c := range []struct {
		after string
		limit int
		want  []dispatch.ListCounts
	}{
		{"", 9, []dispatch.ListCounts{{Tasklist: "a", Ready: 1}, {Tasklist: "b", Ready: 1, Running: 1}, {Tasklist: "c", Ready: 1}}},
		{"", 2, []dispatch.ListCounts{{Tasklist: "a", Ready: 1}, {Tasklist: "b", Ready: 1, Running: 1}}},
		{"a", 1, []dispatch.ListCounts{{Tasklist: "b", Ready: 1, Running: 1}}},
		{"bb", 9, []dispatch.ListCounts{{Tasklist: "c", Ready: 1}}},
		{"c", 9, nil},
	} {
		if got := b.r.Tasklists("shop", c.after, c.limit); !slices.Equal(got, c.want) {
			t.Errorf("%d behind %q: %v, want %v", c.limit, c.after, got, c.want)
		}
	}
	b.start(3)
	b.finish(taskstate.Failed, 3)
	if got := b.r.Tasklists("shop", "a", 1); !slices.Equal(got, []dispatch.ListCounts{{Tasklist: "b", Running: 1, Backoff: 1}}) {
		t.Errorf("after a failure: %v", got)
	}
}

// TestDescribeTellsTheOldest that is ready, of one tasklist.
func TestDescribeTellsTheOldest(t *testing.T) {
	b := newBench(t, Config{})
	for n := 1; n <= 4; n++ {
		b.submit(nil, n)
		b.submit(func(t *taskstate.Task) { t.Tasklist = "other" }, 10-n)
		b.now.MS++
	}
	for n := 1; n <= 3; n++ {
		if got := b.r.Describe("shop", "mail").OldestReadyAt; got != scenarioStart+int64(n-1) {
			t.Errorf("after %d grants it is %d", n-1, got-scenarioStart)
		}
		b.start(n)
	}
}

// TestCounts: what the metrics of a turn say.
func TestCounts(t *testing.T) {
	b := newBench(t, Config{})
	fx := b.submit(nil, 1, 2)
	if want := (Counts{SubmitBatches: 1, Loaded: 2}); fx.Counts != want || fx.Sent != 2 || fx.Traced != nil || fx.TracedTriggers != nil {
		t.Errorf("%+v, traced %v", fx.Counts, fx.Traced)
	}
	fx = b.start(1)
	if want := (Counts{EventBatches: 1, Events: 1, Granted: 1}); fx.Counts != want || fx.Traced != nil {
		t.Errorf("%+v, traced %v", fx.Counts, fx.Traced)
	}
	other := b.r.Get(id(1)).Token()
	other.Nonce++
	fx = b.event(taskstate.Succeeded, 1, other)
	if want := (Counts{EventBatches: 1, Events: 1, Refused: 1}); fx.Counts != want {
		t.Errorf("another attempt's: %+v", fx.Counts)
	}
}

// TestJobsWaitForCompany: archive jobs linger, park jobs do not, each is bounded.
func TestJobsWaitForCompany(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	b.start(1)
	if fx := b.finish(taskstate.Succeeded, 1); fx.Archive != nil || b.r.Idle() {
		t.Fatal("archived at once")
	}
	b.now.MS += archiveLingerMS - 1
	if fx := b.step(Tick{}); fx.Archive != nil {
		t.Fatal("archived early")
	}
	b.now.MS++
	if fx := b.step(Tick{}); len(fx.Archive) != 1 {
		t.Fatal("not archived")
	}
	b.step(Stored{Kind: JobArchive})
	if !b.r.Idle() {
		t.Fatal("not idle")
	}
	later := func(t *taskstate.Task) { t.DueAt = b.now.MS + 60_000 }
	var all []int
	for n := range jobTasksMax + 1 {
		all = append(all, 10+n)
	}
	if fx := b.submit(later, all...); fx.Park != nil || fx.Append == nil {
		t.Fatal("parked before the log says so, or that is not asked for")
	}
	fx := b.turn()
	testkit.MustEqual(t, "a job of", len(fx.Park), jobTasksMax)
	if fx = b.step(Stored{Kind: JobPark}); len(fx.Park) != 1 || fx.Counts.Parked != jobTasksMax {
		t.Fatalf("then one of %d", len(fx.Park))
	}
}

// TestBounced: only the attempt that was granted is taken back (R15).
func TestBounced(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1, 2)
	b.start(1)
	token := b.r.Get(id(1)).Token()
	other := token
	other.Nonce++
	fx := b.step(Bounced{[]GrantRef{{id(1), other}, {id(2), token}, {id(9), token}}})
	if fx.Append != nil || fx.Counts.Bounced != 0 {
		t.Fatalf("%+v", fx.Append)
	}
	fx = b.step(Bounced{[]GrantRef{{id(1), token}, {id(1), token}}})
	if len(fx.Append) != 1 || fx.Counts.Bounced != 2 || fx.Append[0].Kind != taskstate.Released || fx.Append[0].Fence != token || fx.Append[0].Message == "" {
		t.Fatalf("%+v", fx.Append)
	}
	if b.r.Idle() {
		t.Error("idle while it appends")
	}
	b.step(Stored{Kind: JobAppend})
	if !b.r.Idle() {
		t.Error("not idle")
	}
	b.event(taskstate.Released, 1, token)
	b.start(1)
	if fx = b.step(Bounced{[]GrantRef{{id(1), b.r.Get(id(1)).Token()}}}); len(fx.Append) != 1 {
		t.Fatal("the next attempt is another one")
	}
}

// TestUnknownKindHalts (R21): also one just above the last.
func TestUnknownKindHalts(t *testing.T) {
	for _, kind := range []taskstate.Kind{0, taskstate.Displace + 1} {
		b := newBench(t, Config{})
		b.submit(nil, 1)
		if fx := b.event(kind, 1, ids.Token{}); fx.Halt == nil || fx.Answers != nil || !strings.Contains(fx.Halt.Error(), "message 2") {
			t.Errorf("kind %d: %v", kind, fx.Halt)
		}
	}
}

// TestEmptyMessageIsAnswered: and traced tasks show what happens to them.
func TestEmptyMessageIsAnswered(t *testing.T) {
	b := newBench(t, Config{})
	if fx := b.step(&Events{Seq: 1, ReplyTo: "asker", RequestID: 9}); len(fx.Answers) != 1 || fx.Answers[0].RequestID != 9 {
		t.Error("an empty message is not answered")
	}
	if fx := b.step(&Events{Seq: 2}); len(fx.Answers) != 0 {
		t.Error("no one asked")
	}
	b.seq = 2
	fx := b.submit(func(t *taskstate.Task) { t.Trace = "trace" }, 1)
	if len(fx.Traced) != 1 || fx.Traced[0].What != TraceApplied || len(fx.TracedTriggers) != 1 {
		t.Errorf("%+v", fx.Traced)
	}
	fx = b.start(1)
	v := fx.Answers[0].Verdicts[0]
	if len(fx.Traced) != 1 || fx.Traced[0].What != TraceGranted || !v.Grant.First || !bytes.Equal(v.Trace, []byte("trace")) || v.Grant.DeadlineAt != scenarioStart+9000 {
		t.Errorf("%+v %+v", fx.Traced, v)
	}
	fx.Reset()
	if fx.Answers == nil || len(fx.Answers)+len(fx.Traced)+len(fx.TracedTriggers)+len(fx.Triggers) != 0 || fx.Counts != (Counts{}) || fx.Sent != 0 {
		t.Error("Reset empties and keeps memory")
	}
	if fx = b.event(taskstate.Heartbeat, 1, ids.Token{}); fx.Answers[0].Verdicts[0].Code != fault.Stale || fx.Counts.Refused != 0 {
		t.Errorf("%+v", fx.Answers[0].Verdicts[0])
	}
}
